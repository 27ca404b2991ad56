# SPDX-License-Identifier: Apache-2.0
"""Suggest a pass phrase that meets the policy, in at most MAX_ATTEMPTS rounds."""
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, StateGraph

from orcheo.graph.state import State

MAX_ATTEMPTS = 5
MIN_LENGTH = 12
WORDS = ["amber", "birch", "cedar", "dune", "ember", "fjord"]


class PolicyState(State, total=False):
    attempts: int
    candidate: str
    problems: list[str]


def start(state: PolicyState) -> dict[str, Any]:
    return {"attempts": 0, "candidate": state["inputs"].get("seed_word", "pass"), "problems": []}


def lengthen(state: PolicyState) -> dict[str, Any]:
    """Adds one more word; every second one gets a capital and a digit."""
    attempts = state["attempts"] + 1
    word = WORDS[(len(state["candidate"]) + attempts) % len(WORDS)]
    if attempts % 2 == 0:
        word = word.capitalize() + str(attempts)
    return {"attempts": attempts, "candidate": f"{state['candidate']}-{word}"}


def check(state: PolicyState, config: RunnableConfig) -> dict[str, Any]:
    candidate = state["candidate"]
    minimum = config.get("configurable", {}).get("min_length", MIN_LENGTH)
    problems = []
    if len(candidate) < minimum:
        problems.append(f"shorter than {minimum}")
    if candidate.lower() == candidate:
        problems.append("no capital letter")
    if not any(c.isdigit() for c in candidate):
        problems.append("no digit")
    if " " in candidate:
        problems.append("contains a space")
    print(f"[check] attempt={state['attempts']} {candidate!r} -> {problems}")
    return {"problems": problems}


def finish(state: PolicyState) -> dict[str, Any]:
    verdict = "ok" if not state["problems"] else "gave up"
    return {
        "node_results": {
            "finish": {
                "verdict": verdict,
                "candidate": state["candidate"],
                "attempts": state["attempts"],
                "problems": state["problems"],
            }
        }
    }


def should_continue(state: PolicyState) -> str:
    if not state["problems"]:
        return "done"
    if state["attempts"] >= MAX_ATTEMPTS:
        return "done"
    return "again"


def create_graph() -> StateGraph:
    workflow = StateGraph(PolicyState)
    workflow.add_node("start", start)
    workflow.add_node("check", check)
    workflow.add_node("lengthen", lengthen)
    workflow.add_node("finish", finish)

    workflow.set_entry_point("start")
    workflow.add_edge("start", "check")
    workflow.add_conditional_edges("check", should_continue, {"again": "lengthen", "done": "finish"})
    workflow.add_edge("lengthen", "check")
    workflow.set_finish_point("finish")
    return workflow


if __name__ == "__main__":
    app = create_graph().compile()
    out = app.invoke({"inputs": {"seed_word": "sun"}, "node_results": {}})
    print(out["node_results"]["finish"])
