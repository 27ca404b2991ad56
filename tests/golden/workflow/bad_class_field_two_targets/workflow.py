from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes import CodeNode


class C(CodeNode):
    a = b = 1
    def run(self, state, config):
        return {}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", C())
    graph.add_edge(START, "a")
    return graph
