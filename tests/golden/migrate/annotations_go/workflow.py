# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def work(state: State) -> dict:
    from typing import Any
    items: list[Any] = []
    later: int
    later = 1
    return {"node_results": {"work": items + [later]}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
