from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", AgentNode(ai_model="m", response_format={"type": "object"}))
    graph.add_edge(START, "a")
    return graph
