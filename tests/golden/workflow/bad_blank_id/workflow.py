from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node(" ", SetVariableNode(variables={}))
    graph.add_edge(START, " ")
    return graph
