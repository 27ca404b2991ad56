# SPDX-License-Identifier: Apache-2.0
from typing import Annotated, TypedDict
import operator

from langgraph.graph import END, START, StateGraph
from orcheo.nodes.logic import SetVariableNode


class Talk(TypedDict, total=False):
    topic: str
    mood: str
    lines: Annotated[list[str], operator.add]
    turns: int


def opening(state: Talk) -> dict:
    return {"mood": "calm", "lines": ["about " + state["topic"]]}


def answer(state: Talk) -> dict:
    n = state.get("turns", 0) + 1
    known = "turns" in state, "mood" in state, "topic" in state
    return {"lines": [f"{n} {state['mood']} {len(state['lines'])} {known}"], "turns": n, "assistant_message": "said"}


def mood(state: Talk):
    return state["mood"]


builder = StateGraph(Talk)
builder.add_node(opening)
builder.add_node("answer", answer)
builder.add_edge(START, "opening")
builder.add_node("note", SetVariableNode(name="note", variables={"text": "{{turns}}"}))
builder.add_edge("opening", "note")
builder.add_edge("note", END)
