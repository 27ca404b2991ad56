from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    n = SetVariableNode(name="a", variables={})
    graph.add_node(n)
    graph.add_edge(START, "a")
    return graph
