from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"s": "x", "i": 1, "f": 1.5, "t": True, "n": None, "neg": -3, "pos": +2.0, "zero": -0.0, "hex": 0x10, "under": 1_000, "exp": 1e16, "tiny": 5e-324}))
    graph.add_edge(START, "a")
    return graph
