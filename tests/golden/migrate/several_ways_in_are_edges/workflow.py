# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def a(state):
    return {"node_results": {"a": 1}}


def b(state):
    return {"node_results": {"b": 2}}


def c(state):
    return {"node_results": {"c": [state["node_results"]["a"], state["node_results"]["b"]]}}


def pick(state):
    return "a" if state["inputs"]["n"] > 1 else "b"


graph = StateGraph(State)
graph.add_node("a", a)
graph.add_node("b", b)
graph.set_entry_point("a")
graph.set_entry_point("b")
