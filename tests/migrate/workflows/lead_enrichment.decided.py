# SPDX-License-Identifier: Apache-2.0
"""Lead enrichment: e-mail address in, company facts and a score out.

Companies we met before are in KNOWN. For the rest the caller asks the company
directory and passes its answers as inputs["directory"], by domain.
"""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from orcheo.graph.state import State

FREE_MAIL = {"gmail.com", "gmx.de", "outlook.com"}
KNOWN = {
    "acme.example": {"name": "Acme", "employees": 1200, "country": "US"},
    "kiosk.example": {"name": "Kiosk 24", "employees": 3, "country": "DE"},
}


def domain_of(email: str) -> str | None:
    """The part after the @, None when this is no address."""
    user, _, domain = email.partition("@")
    host, _, top = domain.rpartition(".")
    if not user or not host or not top or " " in email or "@" in domain:
        return None
    return domain


def parse_email(state: State) -> dict:
    domain = domain_of(state["inputs"]["email"].strip().lower())
    kind = "private" if domain is None or domain in FREE_MAIL else "business"
    return {"node_results": {"email": {"domain": domain, "kind": kind}}}


def enrich(state: State) -> dict:
    domain = state["node_results"]["email"]["domain"]
    directory = state["inputs"].get("directory", {})
    company = KNOWN.get(domain) or directory.get(domain)
    return {"node_results": {"lead": {"company": company}}}


def private_lead(state: State) -> dict:
    return {"node_results": {"lead": {"company": None}}}


def score(state: State) -> dict:
    company = state["node_results"]["lead"]["company"]
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
    if state["node_results"]["email"]["domain"] is None:
        points = -1
        reasons = ["not an address"]
    name = company["name"] if company else None
    return {"node_results": {"score": {"points": points, "reasons": reasons, "company": name}}}


def kind_of_lead(state: State) -> str:
    return state["node_results"]["email"]["kind"]


def orcheo_workflow() -> StateGraph:
    graph = StateGraph(State)
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
