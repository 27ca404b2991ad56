from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    inner = StateGraph(State)
    inner.add_node("a", SetVariableNode(variables={}))
    inner.add_edge(START, "a")
    graph.add_node("b", inner)
    graph.add_node("a", SetVariableNode(variables={}))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    return graph
