# SPDX-License-Identifier: Apache-2.0
"""Lead enrichment: e-mail address in, company facts and a score out.

Companies we met before are in KNOWN; only the rest are looked up.
"""

from __future__ import annotations

import json
import re
import urllib.request

from langgraph.graph import END, START, StateGraph

from orcheo.graph.state import State

LOOKUP_URL = "https://companies.example.com/v1/domains/"
FREE_MAIL = {"gmail.com", "gmx.de", "outlook.com"}
KNOWN = {
    "acme.example": {"name": "Acme", "employees": 1200, "country": "US"},
    "kiosk.example": {"name": "Kiosk 24", "employees": 3, "country": "DE"},
}
EMAIL = re.compile(r"^[^@\s]+@([a-z0-9.-]+\.[a-z]+)$")


class LeadState(State, total=False):
    domain: str | None
    company: dict | None


def parse_email(state: LeadState) -> dict:
    match = EMAIL.match(state["inputs"]["email"].strip().lower())
    return {"domain": match.group(1) if match else None}


def lookup(domain: str) -> dict | None:
    """Ask the company directory."""
    try:
        with urllib.request.urlopen(LOOKUP_URL + domain, timeout=5) as response:
            return json.loads(response.read())
    except OSError as error:
        print("lookup failed:", error)
        return None


def enrich(state: LeadState) -> dict:
    domain = state["domain"]
    if domain in KNOWN:
        return {"company": KNOWN[domain]}
    return {"company": lookup(domain)}


def private_lead(state: LeadState) -> dict:
    return {"company": None}


def score(state: LeadState) -> dict:
    company = state.get("company")
    points = 0
    reasons: list[str] = []
    if company:
        points += 20
        reasons.append("company known")
        if company["employees"] >= 100:
            points += 50
            reasons.append("large")
        if company["country"] in ("DE", "AT", "CH"):
            points += 20
            reasons.append("our region")
    if state.get("domain") is None:
        points = -1
        reasons = ["not an address"]
    name = company["name"] if company else None
    return {"node_results": {"score": {"points": points, "reasons": reasons, "company": name}}}


def kind_of_lead(state: LeadState) -> str:
    domain = state.get("domain")
    if domain is None or domain in FREE_MAIL:
        return "private"
    return "business"


def orcheo_workflow() -> StateGraph:
    graph = StateGraph(LeadState)
    graph.add_node("parse_email", parse_email)
    graph.add_node("enrich", enrich)
    graph.add_node("private_lead", private_lead)
    graph.add_node("score", score)
    graph.add_edge(START, "parse_email")
    graph.add_conditional_edges("parse_email", kind_of_lead, {"private": "private_lead", "business": "enrich"})
    graph.add_edge("enrich", "score")
    graph.add_edge("private_lead", "score")
    graph.add_edge("score", END)
    return graph


if __name__ == "__main__":
    app = orcheo_workflow().compile()
    for email in ("jo@acme.example", "kim@gmail.com"):
        print(email, app.invoke({"inputs": {"email": email}, "node_results": {}})["node_results"]["score"])
