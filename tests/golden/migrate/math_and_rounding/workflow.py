# SPDX-License-Identifier: Apache-2.0
import math
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def work(state: State) -> dict:
    x = state["inputs"]["x"]
    numbers = [math.floor(x), math.ceil(x) ** 2, math.trunc(x), math.pi]
    return {"node_results": {"work": numbers, "round": round(x / 3, 2), "whole": round(x)}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
