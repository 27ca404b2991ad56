# SPDX-License-Identifier: Apache-2.0
"""Which hosts a flow may reach when nobody says: those of the model providers that its components name, by egress.json.

A component that the table does not know gets none; who asks is told its name, so that an error can say it.
"""

import functools
import json
from importlib import resources


@functools.cache
def table() -> dict:
    return json.loads(resources.files(__package__).joinpath("egress.json").read_text(encoding="utf-8"))


def _chosen(node: dict) -> set[str]:
    """The providers that a component's fields name."""
    template = node.get("template") or {}
    found = set()
    for field in table()["choosing_fields"]:
        value = (template.get(field) or {}).get("value") if isinstance(template.get(field), dict) else None
        for one in value if isinstance(value, list) else [value]:
            name = one.get("provider") if isinstance(one, dict) else one
            if isinstance(name, str) and name in table()["providers"]:
                found.add(name)
    return found


def walk(nodes: list):
    """All nodes, those in groups too."""
    for node in nodes:
        data = node.get("data") or {}
        inner = data.get("node") or {}
        grouped = ((inner.get("flow") or {}).get("data") or {}).get("nodes")
        if grouped:
            yield from walk(grouped)
        else:
            yield node, str(data.get("type") or node.get("type") or ""), inner


def domains_of(nodes: list) -> tuple[list[str], list[str]]:
    """(hosts, sorted; names of the components that the table does not know, with their ids)"""
    known, hosts, unknown = table(), set(), []
    for node, kind, inner in walk(nodes):
        if kind in known["components"]:
            hosts.update(known["providers"][known["components"][kind]])
        elif kind in known["choosing"]:
            chosen = _chosen(inner)
            for provider in chosen:
                hosts.update(known["providers"][provider])
            # A model of another component comes by an edge; that component is asked itself.
        elif kind not in known["silent"]:
            unknown.append(f"{kind} ({node.get('id')})")
    return sorted(hosts), unknown
