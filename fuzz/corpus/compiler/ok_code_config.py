from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes import CodeNode


class C(CodeNode):
    a = 1
    b: int
    def run(self, state, config):
        return {"x": self.a, "y": self.b, "z": self.c}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", C(c=[1, "{{a.b}}"], a=2, workflow_tools=1, response_format="x"))
    graph.add_edge(START, "a")
    return graph
