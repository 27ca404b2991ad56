from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.utility import SubWorkflowNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node(
        "steps", SubWorkflowNode(name="steps", steps=[{"type": "{{inputs.type}}", "name": "a"}])
    )
    graph.add_edge(START, "steps")
    graph.add_edge("steps", END)
    return graph
