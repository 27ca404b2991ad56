# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

def merged(x):
    return x


def state_graph(x):
    return [x]


def work(state: State) -> dict:
    rounded = round(state["inputs"]["x"], 1)
    return {"node_results": {"work": [rounded, state_graph(merged({**state["inputs"]}))]}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
