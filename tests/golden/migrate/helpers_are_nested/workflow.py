# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

STEP = 2


# Adds a step.
def inner(n: int, times: int = 1) -> int:
    return n + STEP * times


def outer(n: int) -> int:
    """Twice."""
    return inner(inner(n))


def unused():
    return 1


def work(state: State) -> dict:
    return {"node_results": {"work": outer(state["inputs"]["n"])}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
