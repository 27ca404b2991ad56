from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def helper():
    h = StateGraph()
    h.add_node("x", Nope())
    h.add_edge(START, "y")


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"x": 1}))
    graph.add_edge(START, "a")
    return graph
