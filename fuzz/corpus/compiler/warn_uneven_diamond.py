from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"x": 1}))
    graph.add_edge(START, "a")
    graph.add_node("b", SetVariableNode(variables={}))
    graph.add_node("c", SetVariableNode(variables={}))
    graph.add_node("d", SetVariableNode(variables={}))
    graph.add_node("e", SetVariableNode(variables={}))
    graph.add_edge("a", "b")
    graph.add_edge("a", "c")
    graph.add_edge("b", "d")
    graph.add_edge("c", "e")
    graph.add_edge("e", "d")
    return graph
