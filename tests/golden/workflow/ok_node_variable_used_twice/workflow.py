from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    n = SetVariableNode(variables={"v": 2})
    graph.add_node("a", n)
    graph.add_node("b", n)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    return graph
