from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    helper = make().graph
    helper.add_node("x", SetVariableNode(variables={}))
    for n in nodes:
        graph.add_node(n, SetVariableNode(variables={}))
    graph.add_node("b", Nope())
    graph.add_edge("b", "made_in_the_loop")
    graph.add_node("c", SetVariableNode(variables={"k": x[0]}))
    graph.add_edge("b", "c")
    graph.add_node("a", SetVariableNode(variables={"x": 1}))
    graph.add_edge(START, "a")
    return graph
