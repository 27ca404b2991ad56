"""A support desk. The agent looks orders up by itself; what the refund tool says is the reply."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.ai import AgentNode, WorkflowTool
from orcheo.nodes.code import CodeNode
from orcheo.nodes.logic import SetVariableNode
from orcheo.schema import BaseModel, Field, Literal


class OrderQuery(BaseModel):
    order_id: str = Field(description="such as A-1001", pattern="^[A-Z]-[0-9]{4}$")
    detail: Literal["short", "full"] = "short"


class RefundRequest(BaseModel):
    order_id: str = Field(pattern="^[A-Z]-[0-9]{4}$")
    amount: float = Field(description="in euros", gt=0, le=500)
    reason: str = Field(min_length=3)


class FindOrder(CodeNode):
    orders = {"A-1001": {"item": "kettle", "price": 39.9, "state": "delivered"}}

    def run(self, state, config):
        order_id = state["inputs"]["order_id"]
        order = self.orders.get(order_id)
        if order is None:
            return {"found": False, "order_id": order_id}
        if state["inputs"].get("detail", "short") == "short":
            return {"found": True, "state": order["state"]}
        return {"found": True, "order": order}


class Decide(CodeNode):
    limit = 100

    def run(self, state, config):
        return {"way": "at_once" if state["inputs"]["amount"] <= self.limit else "by_hand"}


def order_graph():
    graph = StateGraph(State)
    graph.add_node("find", FindOrder(name="find"))
    graph.add_edge(START, "find")
    graph.add_edge("find", END)
    return graph


def refund_graph():
    at_once = StateGraph(State)
    at_once.add_node("reply", SetVariableNode(
        name="reply", variables={"text": "{{inputs.amount}} euros for {{inputs.order_id}} are on their way."}))
    at_once.add_edge(START, "reply")
    at_once.add_edge("reply", END)

    by_hand = StateGraph(State)
    by_hand.add_node("reply", SetVariableNode(
        name="reply", variables={"text": "A person will look at {{inputs.order_id}} today."}))
    by_hand.add_edge(START, "reply")
    by_hand.add_edge("reply", END)

    graph = StateGraph(State)
    graph.add_node("decide", Decide(name="decide"))
    graph.add_node("at_once", at_once.compile())
    graph.add_node("by_hand", by_hand.compile())
    graph.add_edge(START, "decide")
    graph.add_conditional_edges("decide", {
        "path": "node_results.decide.way",
        "mapping": {"at_once": "at_once", "by_hand": "by_hand"},
    })
    graph.add_edge("at_once", END)
    graph.add_edge("by_hand", END)
    return graph


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("agent", AgentNode(
        name="agent",
        ai_model="openai:support-model",
        model_kwargs={"base_url": "[[model_base_url]]", "api_key": "[[model_api_key]]", "temperature": 0},
        system_prompt="You work at a support desk. Look orders up before you speak of them.",
        workflow_tools=[
            WorkflowTool(
                name="find_order", description="What is known of an order", graph=order_graph(),
                args_schema=OrderQuery, output_path="node_results.find",
            ),
            WorkflowTool(
                name="refund", description="Refund an order; its answer goes to the customer as it is",
                graph=refund_graph(), args_schema=RefundRequest,
                output_path="node_results.reply.text", return_direct=True,
            ),
        ],
    ))
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    return graph
