# SPDX-License-Identifier: Apache-2.0
import logging
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

log = logging.getLogger(__name__)


def work(state: State) -> dict:
    n = state["inputs"]["n"]
    print("n is", n)
    if n:
        print(f"{n!r}")
    else:
        log.info("none")
    return {"node_results": {"work": n}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
