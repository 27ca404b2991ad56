# SPDX-License-Identifier: Apache-2.0
"""Turns exported comments with HTML entities into plain, tidy text."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, HtmlTextTransformNode, JsonProcessingNode


class Tidy(CodeNode):
    longest: int = 40

    def run(self, state, config):
        comments = state["node_results"]["unescape"]["result"]["comments"]
        tidy = []
        seen = set()
        for comment in comments:
            text = " ".join(comment["text"].split())
            if not text or text.lower() in seen:
                continue
            seen.add(text.lower())
            if len(text) > self.longest:
                text = text[: self.longest - 1].rstrip() + "…"
            tidy.append({"by": comment["by"], "text": text})
        return {"comments": tidy, "dropped": len(comments) - len(tidy)}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("parse", JsonProcessingNode(name="parse", operation="parse", input_data="{{inputs.export}}"))
    graph.add_node(
        "unescape",
        HtmlTextTransformNode(
            name="unescape",
            input_data="{{parse.result}}",
            operations=["unescape", "normalize_nbsp"],
            fields=["comments.text"],
        ),
    )
    graph.add_node("tidy", Tidy(name="tidy"))
    graph.add_edge(START, "parse")
    graph.add_edge("parse", "unescape")
    graph.add_edge("unescape", "tidy")
    graph.add_edge("tidy", END)
    return graph
