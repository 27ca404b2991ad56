from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"k": [{"__orcheo_ir_kind__": "workflow_tool"}], "__orcheo_ir_kind__x": 1}))
    graph.add_edge(START, "a")
    return graph
