from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode, SetVariableNode as SV
from orcheo.nodes.ai import AgentNode, WorkflowTool


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"a": AgentNode, "l": [SV, (WorkflowTool,)]}))
    graph.add_edge(START, "a")
    return graph
