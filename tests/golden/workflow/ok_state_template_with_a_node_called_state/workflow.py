from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("state", SetVariableNode(variables={"x": 1}))
    graph.add_node("b", SetVariableNode(variables={"y": "{{state.x}}"}))
    graph.add_edge(START, "state")
    graph.add_edge("state", "b")
    return graph
