# SPDX-License-Identifier: Apache-2.0
"""A price lookup that a model may call as a tool, tried here with the workflow's own inputs.

`caisson schema` prints what a model gets to see. The node `tools` only declares the tool; an
AgentNode takes the same `workflow_tools`.
"""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, NoOpTaskNode
from orcheo.nodes.ai import WorkflowTool
from orcheo.schema import BaseModel, Field, Literal


class PriceQuery(BaseModel):
    article: str = Field(description="Name of the article", min_length=1)
    count: int = Field(default=1, ge=1, le=1000)
    currency: Literal["EUR", "USD"] = "EUR"


class Price(CodeNode):
    cents: dict = {"pencil": 45, "notebook": 250}
    rates: dict = {"EUR": 100, "USD": 108}

    def run(self, state, config):
        query = state["inputs"]
        count = query.get("count", 1)
        currency = query.get("currency", "EUR")
        cents = self.cents[query["article"]] * count * self.rates[currency] // 100
        return {"cents": cents, "currency": currency}


def orcheo_workflow():
    price = StateGraph(State)
    price.add_node("price", Price(name="price"))
    price.add_edge(START, "price")
    price.add_edge("price", END)

    graph = StateGraph(State)
    graph.add_node(
        "tools",
        NoOpTaskNode(
            name="tools",
            workflow_tools=[
                WorkflowTool(
                    name="price",
                    description="Price of a number of articles",
                    graph=price,
                    args_schema=PriceQuery,
                    output_path="node_results.price",
                )
            ],
        ),
    )
    graph.add_node("try_it", price)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", "try_it")
    graph.add_edge("try_it", END)
    return graph
