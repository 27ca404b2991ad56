# SPDX-License-Identifier: Apache-2.0
"""Ask three carriers for a price side by side, take the cheapest.

The address check is a graph of its own, other workflows use it too.
"""
from typing import Any
import math

from langgraph.graph import StateGraph, START, END
from orcheo.graph.state import State
from orcheo.nodes.data import MergeNode

ZONES = {"DE": 1, "AT": 2, "CH": 3}
BASE_PRICE = {"snail": 3.2, "falcon": 7.5, "mule": 4.9}
PER_KILO = {"snail": 1.1, "falcon": 0.8, "mule": 0.95}
MAX_KILO = {"snail": 5, "falcon": 30, "mule": 70}


def volume_weight(parcel: dict) -> float:
    """Kilos to pay for: the heavier of scale and volume (5000 cm3 = 1 kg)."""
    volume = parcel.get("length", 0) * parcel.get("width", 0) * parcel.get("height", 0)
    return max(parcel["kilos"], volume / 5000)


def quote(carrier: str, state: State) -> dict[str, Any]:
    kilos = math.ceil(volume_weight(state["inputs"]["parcel"]))
    if kilos > MAX_KILO[carrier]:
        return {"node_results": {carrier: {carrier: None}}}
    zone = state["node_results"]["zone"]["zone"]
    price = (BASE_PRICE[carrier] + PER_KILO[carrier] * kilos) * (1 + 0.25 * (zone - 1))
    return {"node_results": {carrier: {carrier: round(price, 2)}}}


def snail(state: State):
    return quote("snail", state)


def falcon(state: State):
    return quote("falcon", state)


def mule(state: State):
    return quote("mule", state)


def clean_address(state: State):
    address = state["inputs"].get("address", {})
    country = address.get("country", "DE").strip().upper()
    postcode = "".join(c for c in address.get("postcode", "") if c.isdigit())
    return {"node_results": {"address": {"country": country, "postcode": postcode}}}


def find_zone(state: State):
    country = state["node_results"]["address"]["country"]
    return {"node_results": {"zone": {"zone": ZONES.get(country, 4)}}}


def cheapest(state: State):
    offers = state["node_results"]["offers"]["result"]
    possible = {name: price for name, price in offers.items() if price is not None}
    if not possible:
        return {"node_results": {"cheapest": {"carrier": None}}, "assistant_message": "No carrier takes this parcel."}
    name = min(possible, key=lambda n: (possible[n], n))
    return {
        "node_results": {"cheapest": {"carrier": name, "price": possible[name]}},
        "assistant_message": "%s for %.2f EUR" % (name, possible[name]),
    }


# --- address check -----------------------------------------------------------
address_graph = StateGraph(State)
address_graph.add_node("clean_address", clean_address)
address_graph.add_node("find_zone", find_zone)
address_graph.set_entry_point("clean_address")
address_graph.add_edge("clean_address", "find_zone")
address_graph.set_finish_point("find_zone")

# --- main graph --------------------------------------------------------------
builder = StateGraph(State)
builder.add_node("check_address", address_graph.compile())
for carrier in (snail, falcon, mule):
    builder.add_node(carrier.__name__, carrier)
    builder.add_edge("check_address", carrier.__name__)
builder.add_node(
    "offers", MergeNode(name="offers", mode="dict", items=["{{snail}}", "{{falcon}}", "{{mule}}"])
)
builder.add_node("cheapest", cheapest)
builder.add_edge(START, "check_address")
builder.add_edge(["snail", "falcon", "mule"], "offers")
builder.add_edge("offers", "cheapest")
builder.add_edge("cheapest", END)

graph = builder.compile()
