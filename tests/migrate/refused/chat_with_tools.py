# SPDX-License-Identifier: Apache-2.0
"""A small assistant with one tool, the way the tutorials do it."""
from langchain_core.tools import tool
from langchain.chat_models import init_chat_model
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def stock(sku: str) -> int:
    """How many pieces of an article are in stock."""
    return {"A-1": 12}.get(sku, 0)


async def assistant(state: MessagesState):
    model = init_chat_model("openai:gpt-4o-mini").bind_tools([stock])
    return {"messages": [await model.ainvoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("assistant", assistant)
builder.add_node("tools", ToolNode([stock]))
builder.add_edge(START, "assistant")
builder.add_conditional_edges("assistant", tools_condition)
builder.add_edge("tools", "assistant")

graph = builder.compile()
