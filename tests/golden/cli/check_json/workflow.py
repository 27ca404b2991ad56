import os
from orcheo.graph import END, START, StateGraph

x = 1


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(name="a", variables={"x": f"{1}"}))
    graph.add_node("a", NoSuchNode(name="a"))
    return graph
