from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes.ai import AgentNode, WorkflowTool


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(variables={"a": AgentNode, **x}))
    graph.add_edge(START, "a")
    return graph
