# SPDX-License-Identifier: Apache-2.0
"""Workflow files with one agent, for tests; the same text is run by us and by the peer."""

TEMPLATE = '''from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.ai import AgentNode, LLMNode, WorkflowTool
from orcheo.nodes.logic import SetVariableNode
from orcheo.schema import BaseModel, Field, Literal


class Query(BaseModel):
    text: str = Field(description="what to look up", min_length=1)
    limit: int = Field(default=5, ge=1, le=50)
    mode: Literal["fast", "exact"] = "fast"


def echo():
    graph = StateGraph(State)
    graph.add_node("echo", SetVariableNode(name="echo", variables={{
        "text": "{{{{inputs.text}}}}", "list": [1, {{"a": "ö"}}], "number": 2.5}}))
    graph.add_edge(START, "echo")
    graph.add_edge("echo", END)
    return graph


def two_steps():
    inner = StateGraph(State)
    inner.add_node("inner", SetVariableNode(name="inner", variables={{"said": "in: {{{{inputs.text}}}}"}}))
    inner.add_edge(START, "inner")
    graph = StateGraph(State)
    graph.add_node("sub", inner.compile())
    graph.add_node("last", SetVariableNode(name="last", variables={{"said": "{{{{inner.said}}}}!"}}))
    graph.add_edge(START, "sub")
    graph.add_edge("sub", "last")
    graph.add_edge("last", END)
    return graph


def inner_agent():
    graph = StateGraph(State)
    graph.add_node("helper", AgentNode(
        name="helper", ai_model="openai:inner-model", model_kwargs={model_kwargs},
        system_prompt="You help.",
        response_format={{"title": "Reply", "type": "object", "properties": {{"answer": {{"type": "string"}}}},
                         "required": ["answer"]}},
        workflow_tools=[WorkflowTool(name="echo", description="Gives back", graph=echo(), args_schema=Query,
                                     output_path="node_results.echo.text")]))
    graph.add_edge(START, "helper")
    graph.add_edge("helper", END)
    return graph


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("agent", {node}(name="agent", ai_model="openai:outer-model", model_kwargs={model_kwargs}{more}))
    graph.add_node("seed", SetVariableNode(name="seed", variables={seed}))
    graph.add_edge(START, "seed")
    graph.add_edge("seed", "agent")
    graph.add_edge("agent", END)
    return graph
'''

TOOLS = '''[
        WorkflowTool(name="echo", description="Gives back", graph=echo(), args_schema=Query,
                     output_path="node_results.echo.text"),
        WorkflowTool(name="all", description="Gives all back", graph=echo(), args_schema=Query,
                     output_path="node_results.echo"),
        WorkflowTool(name="item", description="Gives an item", graph=echo(), args_schema=Query,
                     output_path="node_results.echo.list.-1"),
        WorkflowTool(name="direct", description="Says it", graph=two_steps(), args_schema=Query,
                     output_path="node_results.last.said", return_direct=True),
        WorkflowTool(name="bare", description="Takes anything", graph=echo(), output_path="inputs"),
        WorkflowTool(name="lost", description="Looks in the wrong place", graph=echo(),
                     output_path="node_results.nothing.here"),
        WorkflowTool(name="ask", description="Asks a helper", graph=inner_agent(), args_schema=Query,
                     output_path="structured_response.answer"),
    ]'''


def source(base_url, *, node="AgentNode", tools=False, key="sk-test", kwargs=None, messages=None, **fields):
    """`fields` are values of the node's configuration, written as literals; `messages` are in the state before it."""
    model_kwargs = repr({"base_url": base_url, "api_key": key} | (kwargs or {}))
    more = "".join(f", {name}={value!r}" for name, value in fields.items())
    if tools:
        more += f", workflow_tools={TOOLS}"
    seed = {} if messages is None else {"messages": messages}
    return TEMPLATE.format(node=node, model_kwargs=model_kwargs, more=more, seed=repr(seed))


def call(name, arguments, number=1):
    return {"id": f"call_{number}", "name": name, "arguments": arguments}

