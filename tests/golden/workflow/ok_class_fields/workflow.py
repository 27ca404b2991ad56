from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes import CodeNode


class C(CodeNode):
    "doc"
    a: int
    b: int = 1
    c = "x"
    d: "anything[at all]" = [1, (2, 3), {"k": None}]
    "more"
    def run(self, state, config):
        return {}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", C())
    graph.add_edge(START, "a")
    return graph
