# SPDX-License-Identifier: Apache-2.0
import re
from typing import Optional, TypedDict

from langgraph.graph import StateGraph, START, END


class Ticket(TypedDict, total=False):
    """What travels through the graph."""

    subject: str
    body: str
    category: str
    urgent: bool
    order_id: Optional[str]
    reply: str


ORDER_RE = re.compile(r"#(\d{4,8})")
KEYWORDS = {
    "billing": ["invoice", "refund", "charged", "payment"],
    "shipping": ["parcel", "tracking", "delivery", "arrived"],
}
URGENT_WORDS = ("urgent", "asap", "immediately")


def text_of(state: Ticket) -> str:
    return (state.get("subject", "") + "\n" + state.get("body", "")).lower()


def classify(state: Ticket):
    # most keyword hits wins, first one on a tie
    text = text_of(state)
    best, best_hits = "other", 0
    for category, words in KEYWORDS.items():
        hits = len([w for w in words if w in text])
        if hits > best_hits:
            best, best_hits = category, hits
    print("classified as", best)
    return {"category": best, "urgent": any(w in text for w in URGENT_WORDS)}


def extract_order(state: Ticket):
    match = ORDER_RE.search(text_of(state))
    return {"order_id": match.group(1) if match else None}


def billing(state: Ticket):
    order = state.get("order_id") or "your order"
    return {"reply": f"Billing will look at {order} within {'4 hours' if state['urgent'] else '2 days'}."}


def shipping(state: Ticket):
    if state.get("order_id") is None:
        return {"reply": "Please send us your order number so that we can trace the parcel."}
    return {"reply": f"We are tracing the parcel of order {state['order_id']}."}


def other(state: Ticket):
    return {"reply": "Thanks, somebody will read this soon."}


def route(state: Ticket) -> str:
    return state["category"]


builder = StateGraph(Ticket)
builder.add_node("classify", classify)
builder.add_node("extract_order", extract_order)
builder.add_node(billing)
builder.add_node(shipping)
builder.add_node(other)

builder.add_edge(START, "classify")
builder.add_edge("classify", "extract_order")
builder.add_conditional_edges(
    "extract_order",
    route,
    {"billing": "billing", "shipping": "shipping", "other": "other"},
)
for leaf in ("billing", "shipping", "other"):
    builder.add_edge(leaf, END)

graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"subject": "Refund??", "body": "I was charged twice for #12345, urgent!"}))
