# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

# Rates of the year.
RATES = {"a": 1.5, "b": 2}
_LIMIT: int = -3  # never below
SIZES = (1, 2, 3)
DAY = 24 * 60
UNUSED = "gone"


def work(state: State) -> dict:
    used = [RATES["a"], _LIMIT, RATES.get("b", 0)]
    return {"node_results": {"work": used, "in": 3 in SIZES, "day": DAY}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
