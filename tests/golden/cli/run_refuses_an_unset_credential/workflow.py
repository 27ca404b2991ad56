from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("greet", SetVariableNode(name="greet", variables={"text": "Hello {{inputs.name}}!"}))
    graph.add_edge(START, "greet")
    graph.add_edge("greet", END)
    return graph
