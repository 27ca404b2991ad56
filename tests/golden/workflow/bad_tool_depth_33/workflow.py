from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.logic import SetVariableNode
from orcheo.nodes.ai import AgentNode, WorkflowTool


def h0():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h1())]))
    h.set_entry_point("x")
    return h


def h1():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h2())]))
    h.set_entry_point("x")
    return h


def h2():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h3())]))
    h.set_entry_point("x")
    return h


def h3():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h4())]))
    h.set_entry_point("x")
    return h


def h4():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h5())]))
    h.set_entry_point("x")
    return h


def h5():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h6())]))
    h.set_entry_point("x")
    return h


def h6():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h7())]))
    h.set_entry_point("x")
    return h


def h7():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h8())]))
    h.set_entry_point("x")
    return h


def h8():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h9())]))
    h.set_entry_point("x")
    return h


def h9():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h10())]))
    h.set_entry_point("x")
    return h


def h10():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h11())]))
    h.set_entry_point("x")
    return h


def h11():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h12())]))
    h.set_entry_point("x")
    return h


def h12():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h13())]))
    h.set_entry_point("x")
    return h


def h13():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h14())]))
    h.set_entry_point("x")
    return h


def h14():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h15())]))
    h.set_entry_point("x")
    return h


def h15():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h16())]))
    h.set_entry_point("x")
    return h


def h16():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h17())]))
    h.set_entry_point("x")
    return h


def h17():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h18())]))
    h.set_entry_point("x")
    return h


def h18():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h19())]))
    h.set_entry_point("x")
    return h


def h19():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h20())]))
    h.set_entry_point("x")
    return h


def h20():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h21())]))
    h.set_entry_point("x")
    return h


def h21():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h22())]))
    h.set_entry_point("x")
    return h


def h22():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h23())]))
    h.set_entry_point("x")
    return h


def h23():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h24())]))
    h.set_entry_point("x")
    return h


def h24():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h25())]))
    h.set_entry_point("x")
    return h


def h25():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h26())]))
    h.set_entry_point("x")
    return h


def h26():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h27())]))
    h.set_entry_point("x")
    return h


def h27():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h28())]))
    h.set_entry_point("x")
    return h


def h28():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h29())]))
    h.set_entry_point("x")
    return h


def h29():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h30())]))
    h.set_entry_point("x")
    return h


def h30():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h31())]))
    h.set_entry_point("x")
    return h


def h31():
    h = StateGraph()
    h.add_node("x", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h32())]))
    h.set_entry_point("x")
    return h


def h32():
    h = StateGraph()
    h.add_node("x", SetVariableNode(variables={}))
    h.set_entry_point("x")
    return h


def orcheo_workflow():
    graph = StateGraph(State)
    inner = StateGraph(State)
    inner.add_node("i", SetVariableNode(variables={}))
    inner.set_entry_point("i")
    graph.add_node("a", AgentNode(ai_model="m", workflow_tools=[WorkflowTool(name="t", description="d", graph=h0())]))
    graph.add_edge(START, "a")
    return graph
