from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"a": "x" 'y', "raw": r"\n", "esc": "\x00\u00e9\U0001f600\N{BULLET}", "tpl": "{{inputs.x}}", "cred": "[[token]]"}))
    graph.add_edge(START, "a")
    return graph
