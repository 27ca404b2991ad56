# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

SEEN = []
count = 0


def work(state: State) -> dict:
    global count
    count += 1
    SEEN.append(count)
    return {"node_results": {"work": SEEN}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
