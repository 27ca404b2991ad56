from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes.ai import AgentNode, WorkflowTool


def helper():
    h = StateGraph()
    h.add_node("x", SetVariableNode(variables={}))
    h.set_entry_point("x")
    return h


class Query(BaseModel):
    text: str
    n: int = 3


def orcheo_workflow():
    graph = StateGraph(State)
    inner = StateGraph(State)
    inner.add_node("i", SetVariableNode(variables={}))
    inner.set_entry_point("i")
    graph.add_node("a", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=helper(), args_schema=Query)]))
    graph.add_edge(START, "a")
    return graph
