from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"a": 9223372036854775807, "b": 9223372036854775808, "c": -9223372036854775808, "d": 123456789012345678901234567890, "e": -0xFFFFFFFFFFFFFFFFFFFFFFFF, "f": 1000000000000000000000000000}))
    graph.add_edge(START, "a")
    return graph
