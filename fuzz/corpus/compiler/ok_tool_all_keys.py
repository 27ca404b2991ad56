from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes.ai import AgentNode, WorkflowTool


def helper():
    h = StateGraph()
    h.add_node("x", SetVariableNode(variables={}))
    h.set_entry_point("x")
    return h


def orcheo_workflow():
    graph = StateGraph(State)
    inner = StateGraph(State)
    inner.add_node("i", SetVariableNode(variables={}))
    inner.set_entry_point("i")
    graph.add_node("a", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(args_schema={"type": "object"}, return_direct=True, output_path="node_results.x", graph=helper(), description="d", name="t")]))
    graph.add_edge(START, "a")
    return graph
