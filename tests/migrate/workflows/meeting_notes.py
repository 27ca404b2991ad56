# SPDX-License-Identifier: Apache-2.0
"""Turns raw meeting notes into minutes: decisions, to-dos and open questions.

Notes are plain text, one remark per line:

    D: we ship on Friday
    T: @mia update the changelog
    ?: who tells support
"""

import json
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph

from orcheo.graph.state import State

PREFIXES = {"D:": "decisions", "T:": "todos", "?:": "questions"}


async def read_notes(state: State) -> dict[str, Any]:
    """Sort the remarks by their prefix."""
    notes: dict[str, list[str]] = {name: [] for name in PREFIXES.values()}
    ignored = 0
    for line in state["inputs"]["notes"].splitlines():
        line = line.strip()
        if not line:
            continue
        for prefix, name in PREFIXES.items():
            if line.startswith(prefix):
                notes[name].append(line[len(prefix) :].strip())
                break
        else:
            ignored += 1
    return {"node_results": {"notes": {**notes, "ignored": ignored}}}


async def assign_todos(state: State) -> dict[str, Any]:
    owners: dict[str, list[str]] = {}
    for todo in state["node_results"]["notes"]["todos"]:
        if todo.startswith("@"):
            owner, _, what = todo[1:].partition(" ")
        else:
            owner, what = "nobody", todo
        owners.setdefault(owner, []).append(what)
    return {"node_results": {"owners": owners}}


async def write_minutes(state: State, config: RunnableConfig) -> dict[str, Any]:
    """Markdown unless the caller wants JSON."""
    results = state["node_results"]
    style = config.get("configurable", {}).get("style") or state["inputs"].get("style", "markdown")
    if style == "json":
        body = json.dumps({"decisions": results["notes"]["decisions"], "owners": results["owners"]}, sort_keys=True)
        return {"assistant_message": body}

    parts = [f"# {state['inputs'].get('title', 'Meeting')}"]
    for name in ("decisions", "questions"):
        if results["notes"][name]:
            parts.append(f"\n## {name.capitalize()}")
            parts += [f"- {remark}" for remark in results["notes"][name]]
    if results["owners"]:
        parts.append("\n## To do")
        for owner in sorted(results["owners"]):
            parts.append(f"- **{owner}**: {', '.join(results['owners'][owner])}")
    minutes = "\n".join(parts)
    return {
        "assistant_message": minutes,
        "messages": [{"role": "assistant", "content": minutes}],
    }


def has_todos(state: State) -> bool:
    return len(state["node_results"]["notes"]["todos"]) > 0


async def no_todos(state: State) -> dict[str, Any]:
    return {"node_results": {"owners": {}}}


async def orcheo_workflow() -> StateGraph:
    builder = StateGraph(State)
    builder.add_node("read_notes", read_notes)
    builder.add_node("assign_todos", assign_todos)
    builder.add_node("no_todos", no_todos)
    builder.add_node("write_minutes", write_minutes)
    builder.add_edge(START, "read_notes")
    builder.add_conditional_edges("read_notes", has_todos, {True: "assign_todos", False: "no_todos"})
    builder.add_edge("assign_todos", "write_minutes")
    builder.add_edge("no_todos", "write_minutes")
    builder.set_finish_point("write_minutes")
    return builder


if __name__ == "__main__":
    import asyncio

    async def demo():
        app = (await orcheo_workflow()).compile()
        text = "D: we ship on Friday\nT: @mia update the changelog\n?: who tells support"
        print((await app.ainvoke({"inputs": {"notes": text}, "node_results": {}}))["assistant_message"])

    asyncio.run(demo())
