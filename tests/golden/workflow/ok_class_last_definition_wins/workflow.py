from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


class C(CodeNode):
    a = 1

    def run(self, state, config):
        return {}


class C(CodeNode):
    b = 2

    def run(self, state, config):
        return {"b": self.b}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", C())
    graph.add_edge(START, "a")
    return graph
