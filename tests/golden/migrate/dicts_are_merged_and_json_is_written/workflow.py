# SPDX-License-Identifier: Apache-2.0
import json
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def work(state: State) -> dict:
    both = {**state["inputs"], "a": 1, "b": state["inputs"]["b"], **{}}
    name = state["inputs"]["name"].strip().capitalize()
    return {"assistant_message": json.dumps(both, sort_keys=True), "node_results": {"name": name}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
