# SPDX-License-Identifier: Apache-2.0
"""Draft -> critique -> revise, the classic reflection loop, with a rule-based critic.

(We had a model here first. The rules turned out to be good enough for the
style guide and a lot cheaper.)
"""
import operator
from typing import Annotated, List, Literal
from typing_extensions import TypedDict

from langgraph.graph import StateGraph, START, END


class EssayState(TypedDict):
    draft: str
    max_rounds: int
    round: int
    remarks: Annotated[List[str], operator.add]
    open_points: List[str]
    score: float


FILLERS = {"very": "", "really": "", "utilize": "use", "in order to": "to"}
MAX_SENTENCE = 20


def _sentences(text: str) -> List[str]:
    return [s.strip() for s in text.split(".") if s.strip()]


def critique(state: EssayState) -> dict:
    points = []
    draft = state["draft"].lower()
    for filler in FILLERS:
        if f" {filler} " in f" {draft} ":
            points.append(f"filler: {filler}")
    for i, sentence in enumerate(_sentences(state["draft"])):
        if len(sentence.split()) > MAX_SENTENCE:
            points.append(f"long sentence: {i + 1}")
    score = max(0.0, 10 - 2.5 * len(points))
    return {
        "open_points": points,
        "score": score,
        "remarks": [f"round {state.get('round', 0)}: {len(points)} point(s)"],
    }


def revise(state: EssayState) -> dict:
    """Fix the first open point only, so that every round has its own remark."""
    draft = state["draft"]
    kind, _, what = state["open_points"][0].partition(": ")
    if kind == "filler":
        words = f" {draft} ".replace(f" {what} ", f" {FILLERS[what]} ")
        draft = " ".join(words.split())
    else:
        sentences = _sentences(draft)
        broken = sentences[int(what) - 1].split()
        half = len(broken) // 2
        sentences[int(what) - 1 : int(what)] = [" ".join(broken[:half]), " ".join(broken[half:])]
        draft = ". ".join(sentences) + "."
    return {"draft": draft, "round": state.get("round", 0) + 1}


def decide(state: EssayState) -> Literal["revise", "__end__"]:
    if state["open_points"] and state.get("round", 0) < state.get("max_rounds", 3):
        return "revise"
    return END


graph_builder = StateGraph(EssayState)
graph_builder.add_node("critique", critique)
graph_builder.add_node("revise", revise)
graph_builder.add_edge(START, "critique")
graph_builder.add_conditional_edges("critique", decide)
graph_builder.add_edge("revise", "critique")

graph = graph_builder.compile()


if __name__ == "__main__":
    result = graph.invoke({"draft": "We utilize very simple words. It is really short."})
    for remark in result["remarks"]:
        print("-", remark)
    print(result["draft"])
