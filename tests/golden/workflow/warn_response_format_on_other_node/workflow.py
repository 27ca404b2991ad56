from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode


class Query(BaseModel):
    text: str
    n: int = 3


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={}, response_format=Query))
    graph.add_edge(START, "a")
    return graph
