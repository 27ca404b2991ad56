# SPDX-License-Identifier: Apache-2.0
"""Orders arrive as JSON text from the shop's webhook; normalise them for the warehouse."""

from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.data import DataTransformNode, FieldTransform, JsonProcessingNode, MergeNode
from orcheo.nodes.logic import SetVariableNode

WAREHOUSES = {"north": "HAM", "south": "MUC"}
FALLBACK_WAREHOUSE = "FRA"


def pick_warehouse(state: State) -> dict:
    order = state["node_results"]["normalise"]["result"]
    region = order["address"]["region"]
    code = WAREHOUSES.get(region, FALLBACK_WAREHOUSE)
    # heavy goods only leave from Frankfurt
    if order.get("weight", 0) > 30:
        code = FALLBACK_WAREHOUSE
    return {"node_results": {"pick_warehouse": {"code": code, "region": region}}}


async def orcheo_workflow():
    graph = StateGraph(State)

    graph.add_node(
        "defaults",
        SetVariableNode(
            name="defaults",
            variables={"priority": "standard", "packaging": {"gift": False, "label": "A6"}},
        ),
    )
    graph.add_node(
        "parse",
        JsonProcessingNode(name="parse", operation="parse", input_data="{{inputs.payload}}"),
    )
    graph.add_node(
        "normalise",
        DataTransformNode(
            name="normalise",
            input_data="{{parse.result}}",
            transforms=[
                FieldTransform(source="id", target="order_id", transform="string"),
                FieldTransform(source="customer.region", target="address.region", transform="lower", default="?"),
                FieldTransform(source="weight_kg", target="weight", transform="float"),
                FieldTransform(source="lines", target="line_count", transform="length"),
            ],
        ),
    )
    graph.add_node("pick_warehouse", pick_warehouse)
    graph.add_node(
        "merged",
        MergeNode(
            name="merged",
            mode="dict",
            items=["{{defaults}}", "{{normalise.result}}", "{{node_results.pick_warehouse}}"],
        ),
    )
    # short text for the log channel
    graph.add_node(
        "announce",
        lambda s: {
            "assistant_message": "order "
            + s["node_results"]["merged"]["result"]["order_id"]
            + " -> "
            + s["node_results"]["merged"]["result"]["code"]
        },
    )

    graph.add_edge(START, "defaults")
    graph.add_edge("defaults", "parse")
    graph.add_edge("parse", "normalise")
    graph.add_edge("normalise", "pick_warehouse")
    graph.add_edge("pick_warehouse", "merged")
    graph.add_edge("merged", "announce")
    graph.add_edge("announce", END)

    return graph.compile()
