# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def a(state):
    return {"node_results": {"b": 1}}


def b(state):
    return {"assistant_message": "b"}


graph = StateGraph(State)
graph.add_node("a", a)
graph.add_node("b", b)
graph.add_edge(START, "a")
graph.add_edge("a", "b")
