from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    inner = StateGraph(State)
    graph.add_node("b", inner)
    inner.add_node("i", SetVariableNode(variables={}))
    inner.set_entry_point("i")
    graph.add_edge(START, "b")
    return graph
