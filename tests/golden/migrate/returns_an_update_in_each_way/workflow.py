# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def work(state: State) -> dict:
    if state["inputs"].get("a"):
        return
    if state["inputs"].get("b"):
        return None
    if state["inputs"].get("c"):
        return {"node_results": {"other": 1}} if state["inputs"]["c"] > 1 else {"assistant_message": "c"}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
