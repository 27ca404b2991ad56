from orcheo.graph import END, START as S, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={}))
    graph.add_edge(S, "a")
    return graph
