from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={}))
    graph.add_node("b", SetVariableNode(variables={}))
    graph.set_entry_point("b")
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    return graph
