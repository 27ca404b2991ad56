# SPDX-License-Identifier: Apache-2.0
import functools
import time

from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

RATES = {"EUR": 1.0, "USD": 1.08}
_seen = {}  # sku -> when we last quoted it
_calls = 0


@functools.lru_cache(maxsize=None)
def convert(amount, currency):
    return round(amount * RATES[currency], 2)


def quote(state: State) -> dict:
    global _calls
    _calls += 1
    sku = state["inputs"]["sku"]
    again = sku in _seen and time.time() - _seen[sku] < 3600
    _seen[sku] = time.time()
    price = convert(state["inputs"]["price"], state["inputs"].get("currency", "EUR"))
    return {"node_results": {"quote": {"price": price, "again": again, "calls": _calls}}}


class Formatter:
    def __init__(self, unit):
        self.unit = unit

    def __call__(self, state: State) -> dict:
        return {"assistant_message": f"{state['node_results']['quote']['price']} {self.unit}"}


graph = StateGraph(State)
graph.add_node("quote", quote)
graph.add_node("format", Formatter("per piece"))
graph.add_edge(START, "quote")
graph.add_edge("quote", "format")
graph.add_edge("format", END)
