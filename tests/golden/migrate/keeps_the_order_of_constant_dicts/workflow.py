# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

WORDS = {"z": 1, "a": 2}


def work(state: State) -> dict:
    names = [name for name in WORDS]
    pairs = [f"{k}={v}" for k, v in WORDS.items()]
    first = next(iter(WORDS.values()))
    return {"node_results": {"work": names + pairs + [first], "known": "a" in WORDS, "count": len(WORDS)}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
