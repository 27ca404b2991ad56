# SPDX-License-Identifier: Apache-2.0
"""Sends a support message to the team that can help, by what it says."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, SetVariableNode


class Triage(CodeNode):
    words: dict = {"billing": ["invoice", "refund", "charged"], "outage": ["down", "timeout", "error 5"]}

    def run(self, state, config):
        text = state["inputs"]["message"].lower()
        for team in sorted(self.words):
            for word in self.words[team]:
                if word in text:
                    return {"team": team, "word": word}
        return {"team": "unknown", "word": ""}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("triage", Triage(name="triage"))
    graph.add_node("billing", SetVariableNode(name="billing", variables={"queue": "billing", "priority": 2}))
    graph.add_node("outage", SetVariableNode(name="outage", variables={"queue": "on-call", "priority": 0}))
    graph.add_node("person", SetVariableNode(name="person", variables={"queue": "front desk", "priority": 3}))
    graph.set_entry_point("triage")
    graph.add_conditional_edges(
        "triage",
        {
            "path": "node_results.triage.team",
            "mapping": {"billing": "billing", "outage": "outage"},
            "default": "person",
        },
    )
    graph.set_finish_point("billing")
    graph.set_finish_point("outage")
    graph.set_finish_point("person")
    return graph.compile()
