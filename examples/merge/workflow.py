# SPDX-License-Identifier: Apache-2.0
"""Looks at a text from two sides at once and puts both findings together."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, MergeNode


class Count(CodeNode):
    def run(self, state, config):
        text = state["inputs"]["text"]
        return {"facts": {"size": {"words": len(text.split()), "characters": len(text)}}}


class Mood(CodeNode):
    good: list = ["thanks", "great", "works"]
    bad: list = ["broken", "slow", "never"]

    def run(self, state, config):
        words = state["inputs"]["text"].lower().split()
        score = 0
        for word in words:
            word = word.strip(".,!?")
            score += (word in self.good) - (word in self.bad)
        return {"facts": {"mood": "good" if score > 0 else "bad" if score < 0 else "even", "score": score}}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("count", Count(name="count"))
    graph.add_node("mood", Mood(name="mood"))
    graph.add_node("both", MergeNode(name="both", mode="dict", items=["{{count.facts}}", "{{mood.facts}}"]))
    graph.add_edge(START, "count")
    graph.add_edge(START, "mood")
    graph.add_edge("count", "both")
    graph.add_edge("mood", "both")
    graph.add_edge("both", END)
    return graph
