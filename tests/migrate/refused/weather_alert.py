# SPDX-License-Identifier: Apache-2.0
"""Mail the team when it gets too windy for the crane."""
import os
import smtplib

import httpx
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

API_KEY = os.environ.get("WEATHER_API_KEY", "")
LIMIT = 14  # m/s


def fetch(state: State) -> dict:
    site = state["inputs"]["site"]
    response = httpx.get("https://weather.example.com/now", params={"q": site, "key": API_KEY})
    response.raise_for_status()
    return {"node_results": {"wind": response.json()["wind"]}}


def alert(state: State) -> dict:
    with smtplib.SMTP("mail.example.com") as smtp:
        smtp.sendmail("crane@example.com", ["team@example.com"], f"Subject: wind {state['node_results']['wind']}\n\nStop.")
    return {"assistant_message": "alert sent"}


def too_windy(state: State) -> bool:
    return state["node_results"]["wind"] > LIMIT


builder = StateGraph(State)
builder.add_node("fetch", fetch)
builder.add_node("alert", alert)
builder.add_edge(START, "fetch")
builder.add_conditional_edges("fetch", too_windy, {True: "alert", False: END})
builder.add_edge("alert", END)
