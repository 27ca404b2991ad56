# SPDX-License-Identifier: Apache-2.0
"""Check every expense of a batch side by side, let a person approve the large ones."""
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

LIMIT = 200


class Batch(TypedDict):
    expenses: list[dict]
    checked: Annotated[list[dict], operator.add]
    approved: bool


def fan_out(state: Batch):
    return [Send("check_one", {"expense": e}) for e in state["expenses"]]


def check_one(state: dict):
    expense = state["expense"]
    return {"checked": [{**expense, "large": expense["amount"] > LIMIT}]}


def gate(state: Batch) -> Command:
    if any(e["large"] for e in state["checked"]):
        return Command(goto="ask")
    return Command(goto=END, update={"approved": True})


def ask(state: Batch):
    answer = interrupt({"question": "Approve?", "expenses": [e for e in state["checked"] if e["large"]]})
    return {"approved": answer == "yes"}


builder = StateGraph(Batch)
builder.add_node("check_one", check_one)
builder.add_node("gate", gate, destinations=("ask", END))
builder.add_node("ask", ask)
builder.add_conditional_edges(START, fan_out, ["check_one"])
builder.add_edge("check_one", "gate")
builder.add_edge("ask", END)

graph = builder.compile(checkpointer=MemorySaver())
