# SPDX-License-Identifier: Apache-2.0
"""Invoice totals.

Takes the line items of an invoice, adds them up, applies the volume discount
and the VAT of the buyer's country, and leaves a printable summary behind.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List

from langgraph.graph import END, START, StateGraph

from orcheo.graph.state import State

# VAT in percent. Keep in sync with the accounting sheet!
VAT_RATES = {"DE": 19, "FR": 20, "NL": 21, "CH": 8.1}
DEFAULT_VAT = 0
DISCOUNT_FROM = 1000.0
DISCOUNT_PERCENT = 5


def _to_cents(amount: float) -> int:
    """Money is counted in cents, halves are rounded up."""
    return int(math.floor(amount * 100 + 0.5))


def _line_total(item: Dict[str, Any]) -> int:
    quantity = item.get("quantity", 1)
    return _to_cents(item["price"]) * quantity


def collect_lines(state: State) -> dict:
    """One total per line, lines without a price are skipped."""
    lines: List[Dict[str, Any]] = []
    skipped = 0
    for item in state["inputs"].get("items", []):
        if "price" not in item:
            skipped += 1
            continue
        lines.append({"sku": item.get("sku", "?"), "cents": _line_total(item)})
    return {"node_results": {"lines": {"lines": lines, "skipped": skipped}}}


def sum_up(state: State) -> dict:
    lines = state["node_results"]["lines"]["lines"]
    net = sum(line["cents"] for line in lines)
    discount = 0
    if net >= DISCOUNT_FROM * 100:
        discount = net * DISCOUNT_PERCENT // 100
    return {"node_results": {"net": {"cents": net - discount, "discount": discount}}}


def add_vat(state: State) -> dict:
    country = state["inputs"].get("country", "").upper()
    rate = VAT_RATES.get(country, DEFAULT_VAT)
    net = state["node_results"]["net"]["cents"]
    vat = int(math.floor(net * rate / 100 + 0.5))
    return {"node_results": {"gross": {"rate": rate, "vat": vat, "cents": net + vat}}}


def summarize(state: State) -> dict:
    results = state["node_results"]
    gross = results["gross"]["cents"] / 100
    net = results["net"]["cents"] / 100
    text = f"net {net:.2f}, VAT {results['gross']['rate']}%, total {gross:.2f}"
    if results["lines"]["skipped"]:
        text += f" ({results['lines']['skipped']} line(s) without a price)"
    return {"assistant_message": text}


builder = StateGraph(State)
builder.add_node("collect_lines", collect_lines)
builder.add_node("sum_up", sum_up)
builder.add_node("add_vat", add_vat)
builder.add_node("summarize", summarize)

builder.add_edge(START, "collect_lines")
builder.add_edge("collect_lines", "sum_up")
builder.add_edge("sum_up", "add_vat")
builder.add_edge("add_vat", "summarize")
builder.add_edge("summarize", END)


if __name__ == "__main__":
    demo = {
        "country": "de",
        "items": [{"sku": "A-1", "price": 19.99, "quantity": 3}, {"sku": "B-7"}],
    }
    app = builder.compile()
    final = app.invoke({"inputs": demo, "node_results": {}, "messages": []})
    print(final["assistant_message"])
