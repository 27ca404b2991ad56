# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def work(state: State) -> dict:
    rows = sorted(state["inputs"]["rows"], key=lambda row: row["n"], reverse=True)
    rows.sort(key=lambda row: row["m"])
    return {"node_results": {"work": rows}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
