# SPDX-License-Identifier: Apache-2.0
"""Goes through the lines of an order one by one and keeps a running total."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, ForLoopNode


class AddLine(CodeNode):
    def run(self, state, config):
        results = state["node_results"]
        before = results.get("add") or {"cents": 0, "lines": []}
        line = results["each"]["current_item"]
        cents = line["count"] * line["cents"]
        return {
            "cents": before["cents"] + cents,
            "lines": before["lines"] + ["{} x {}: {}".format(line["count"], line["article"], cents)],
        }


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("each", ForLoopNode(name="each", items="{{inputs.lines}}"))
    graph.add_node("add", AddLine(name="add"))
    graph.add_edge(START, "each")
    graph.add_conditional_edges(
        "each",
        {"path": "node_results.each.done", "mapping": {"true": END, "false": "add"}},
    )
    graph.add_edge("add", "each")
    return graph
