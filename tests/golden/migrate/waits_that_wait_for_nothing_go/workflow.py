# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

async def add_one(n: int) -> int:
    return n + 1


async def work(state: State) -> dict:
    return {"node_results": {"work": await add_one(state["inputs"]["n"])}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
