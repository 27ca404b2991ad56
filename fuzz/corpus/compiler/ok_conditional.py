from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"x": 1}))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", {"path": "node_results.a.x", "mapping": {"1": "a", "true": END}, "default": "a"})
    return graph
