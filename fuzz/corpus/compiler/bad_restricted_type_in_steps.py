from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("b", SubWorkflowNode(steps=[{"type": "SubWorkflowNode", "steps": [{"type": "BrowserCloseNode"}]}, {"type": "PostgresNode", "query": "q"}]))
    graph.add_edge(START, "b")
    return graph
