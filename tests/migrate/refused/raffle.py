# SPDX-License-Identifier: Apache-2.0
"""Draws the winners of the monthly raffle and keeps a protocol."""
import random
from pathlib import Path

from langgraph.graph import StateGraph
from orcheo.graph.state import State

PROTOCOL = Path("raffle.log")


def draw(state: State):
    entries = sorted(set(state["inputs"]["entries"]))
    count = min(len(entries), state["inputs"].get("winners", 1))
    return {"node_results": {"draw": {"winners": random.sample(entries, count)}}}


def protocol(state: State):
    with PROTOCOL.open("a") as log:
        log.write(", ".join(state["node_results"]["draw"]["winners"]) + "\n")
    return {}


builder = StateGraph(State)
builder.add_node("draw", draw)
builder.add_node("protocol", protocol)
builder.set_entry_point("draw")
builder.add_edge("draw", "protocol")
builder.set_finish_point("protocol")
