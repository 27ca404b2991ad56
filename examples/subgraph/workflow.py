# SPDX-License-Identifier: Apache-2.0
"""Cleans an address by a graph of its own, then prints a label."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, DataTransformNode, SetVariableNode


class CheckPostcode(CodeNode):
    digits: int = 5

    def run(self, state, config):
        postcode = state["node_results"]["clean"]["result"]["postcode"]
        good = len(postcode) == self.digits and all([c in "0123456789" for c in postcode])
        return {"valid": good}


def orcheo_workflow():
    address = StateGraph(State)
    address.add_node(
        "clean",
        DataTransformNode(
            name="clean",
            input_data="{{inputs.address}}",
            transforms=[
                {"source": "street", "target": "street", "transform": "title"},
                {"source": "zip", "target": "postcode", "transform": "string"},
                {"source": "city", "target": "city", "transform": "upper"},
                {"source": "country", "target": "country", "default": "DE"},
            ],
        ),
    )
    address.add_node("check", CheckPostcode(name="check"))
    address.add_edge(START, "clean")
    address.add_edge("clean", "check")

    graph = StateGraph(State)
    graph.add_node("address", address.compile())
    graph.add_node(
        "label",
        SetVariableNode(
            name="label",
            variables={
                "valid": "{{check.valid}}",
                "text": "{{clean.result.street}}, {{clean.result.country}}-{{clean.result.postcode}} {{clean.result.city}}",
            },
        ),
    )
    graph.add_edge(START, "address")
    graph.add_edge("address", "label")
    graph.add_edge("label", END)
    return graph
