# SPDX-License-Identifier: Apache-2.0
# Walks over the articles in the request and builds a reading list.
# ForLoopNode hands out one article at a time.

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from orcheo.graph.state import State
from orcheo.nodes.logic import ForLoopNode, SetVariableNode

WORDS_PER_MINUTE = 220
LONG_READ = 10  # minutes


def minutes(words: int) -> int:
    # at least a minute, else rounded up
    return max(1, -(-words // WORDS_PER_MINUTE))


def rate_article(state: State) -> dict[str, Any]:
    article = state["node_results"]["each"]["current_item"]
    so_far = state["node_results"].get("rate_article", {"entries": [], "minutes": 0})
    needed = minutes(article.get("words", 0))
    entry = {
        "title": article["title"].strip(),
        "minutes": needed,
        "kind": "long" if needed >= LONG_READ else "short",
    }
    return {
        "node_results": {
            "rate_article": {
                "entries": so_far["entries"] + [entry],
                "minutes": so_far["minutes"] + needed,
            }
        }
    }


def write_list(state: State) -> dict[str, Any]:
    rated = state["node_results"].get("rate_article")
    if not rated:
        return {"assistant_message": "Nothing to read today."}
    limit = state["node_results"]["settings"]["limit"]
    rows = []
    for number, entry in enumerate(sorted(rated["entries"], key=lambda e: e["minutes"]), start=1):
        if number > limit:
            rows.append(f"... and {len(rated['entries']) - limit} more")
            break
        rows.append(f"{number}. {entry['title']} ({entry['minutes']} min, {entry['kind']})")
    rows.append(f"Total: {rated['minutes']} min")
    return {"assistant_message": "\n".join(rows)}


def next_or_end(state: State) -> Literal["rate_article", "write_list"]:
    return "write_list" if state["node_results"]["each"]["done"] else "rate_article"


def build() -> StateGraph:
    g = StateGraph(State)
    g.add_node("settings", SetVariableNode(name="settings", variables={"limit": 3}))
    g.add_node("each", ForLoopNode(name="each", items="{{inputs.articles}}"))
    g.add_node("rate_article", rate_article)
    g.add_node("write_list", write_list)

    g.add_edge(START, "settings")
    g.add_edge("settings", "each")
    g.add_conditional_edges("each", next_or_end, ["rate_article", "write_list"])
    g.add_edge("rate_article", "each")
    g.add_edge("write_list", END)
    return g


orcheo_workflow = build
