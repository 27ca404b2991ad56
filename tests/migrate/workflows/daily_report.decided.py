# SPDX-License-Identifier: Apache-2.0
"""The daily sales report. Cron starts it in the morning, but people also start it by hand.

Whoever starts it says what time it is: inputs["now"], ISO 8601, local time.
"""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

TARGET_PER_DAY = 500


class Sale(TypedDict):
    product: str
    amount: float


def greeting(hour: int) -> str:
    if hour < 11:
        return "Good morning"
    if hour < 18:
        return "Good afternoon"
    return "Good evening"


def totals(state: State) -> dict[str, Any]:
    sales: list[Sale] = state["inputs"].get("sales", [])
    per_product: dict[str, float] = {}
    for sale in sales:
        per_product[sale["product"]] = per_product.get(sale["product"], 0) + sale["amount"]
    total = sum(per_product.values())
    return {
        "node_results": {
            "totals": {
                "per_product": per_product,
                "total": total,
                "status": "good" if total >= TARGET_PER_DAY else "low",
            }
        }
    }


def good_day(state: State) -> dict[str, Any]:
    top = max(state["node_results"]["totals"]["per_product"].items(), key=lambda kv: kv[1])
    return {"node_results": {"remark": {"text": f"Target reached, best seller: {top[0]}."}}}


def slow_day(state: State) -> dict[str, Any]:
    missing = TARGET_PER_DAY - state["node_results"]["totals"]["total"]
    return {"node_results": {"remark": {"text": f"{missing:.0f} short of the target."}}}


def compose(state: State) -> dict[str, Any]:
    now = state["inputs"]["now"]
    day, _, time = now.partition("T")
    hour = int(time.split(":")[0])
    results = state["node_results"]
    text = (
        f"{greeting(hour)}! Sales of {day}: "
        f"{results['totals']['total']:.2f}. {results['remark']['text']}"
    )
    return {"assistant_message": text}


workflow = StateGraph(State)
workflow.add_node("totals", totals)
workflow.add_node("good_day", good_day)
workflow.add_node("slow_day", slow_day)
workflow.add_node("compose", compose)
workflow.add_edge(START, "totals")
workflow.add_conditional_edges(
    "totals",
    lambda state: state["node_results"]["totals"]["status"],
    {"good": "good_day", "low": "slow_day"},
)
workflow.add_edge("good_day", "compose")
workflow.add_edge("slow_day", "compose")
workflow.add_edge("compose", END)


if __name__ == "__main__":
    app = workflow.compile()
    demo = {"now": "2026-03-09T08:15:00", "sales": [{"product": "tea", "amount": 620}]}
    print(app.invoke({"inputs": demo, "node_results": {}})["assistant_message"])
