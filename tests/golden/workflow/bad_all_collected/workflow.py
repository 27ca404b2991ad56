from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


import os

x = 1


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("b", Nope())
    graph.add_node("c", SetVariableNode(variables={"k": x}))
    graph.add_edge("a", b)
    graph.add_edge("a", "zz")
    graph.add_node("a", SetVariableNode(variables={"x": 1}))
    graph.add_edge(START, "a")
    return graph
