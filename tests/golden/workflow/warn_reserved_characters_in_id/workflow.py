from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a:b", SetVariableNode(variables={}))
    graph.add_node("c|d", SetVariableNode(variables={}))
    graph.add_edge(START, "a:b")
    graph.add_edge("a:b", "c|d")
    return graph
