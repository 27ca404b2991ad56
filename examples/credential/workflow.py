# SPDX-License-Identifier: Apache-2.0
"""Builds the headers of a request. The secret stands in no file: a placeholder names it. Only the node that
names it sees it; what the node gives on shows the placeholder again."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, SetVariableNode


class Path(CodeNode):
    def run(self, state, config):
        return {"path": "/v1/customers/" + str(state["inputs"]["customer"])}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("path", Path(name="path"))
    graph.add_node(
        "request",
        SetVariableNode(
            name="request",
            variables={
                "url": "https://api.example.com{{path.path}}",
                "headers": {"Authorization": "Bearer [[api_token]]", "X-Tenant": "[[tenant#secret]]"},
            },
        ),
    )
    graph.add_edge(START, "path")
    graph.add_edge("path", "request")
    graph.add_edge("request", END)
    return graph
