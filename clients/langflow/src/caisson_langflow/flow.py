# SPDX-License-Identifier: Apache-2.0
"""What of a Unit goes into the machine: the flow as data, its inputs, and the variables that the operator has allowed.

What stays: live objects (event managers, models handed over in options), connections, the host's environment.
"""

import inspect
import json
import logging
import os
import uuid
from dataclasses import dataclass, field
from typing import Any

from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

from .egress import walk
from .inside.codec import decode, encode

OPTIONS = ("max_iterations", "config", "reset_output_values", "fallback_to_env_vars", "inputs_components", "types", "outputs", "stream")

log = logging.getLogger("caisson_langflow")


@dataclass
class Flow:
    graph: Any  # lfx's, or None where only its data came
    job: dict = field(repr=False)  # holds credentials
    nodes: list = field(repr=False)

    def vertex(self, vertex_id: str):
        if self.graph is not None:
            return self.graph.get_vertex(vertex_id)
        return _Vertex(vertex_id, self._names.get(vertex_id, vertex_id))

    @property
    def _names(self) -> dict:
        return {str(node.get("id")): str(inner.get("display_name") or "") for node, _, inner in walk(self.nodes)}


@dataclass(frozen=True)
class _Named:
    display_name: str


class _Vertex:
    """As much of lfx's as readers of results ask for."""

    def __init__(self, vertex_id: str, display_name: str):
        self.id, self.display_name = vertex_id, display_name
        self.custom_component = _Named(display_name)

    def __repr__(self):
        return f"Vertex({self.id!r})"


def _payload(graph) -> dict:
    if hasattr(graph, "dump"):
        told = graph.dump()
        told = told.get("data", told)
    elif isinstance(graph, dict):
        told = graph.get("data", graph)
    else:
        raise SandboxExecutionError(f"the caisson executor cannot run a graph of type {type(graph).__name__}; it takes an lfx Graph "
                                    "or the data of a flow")
    if not isinstance(told, dict) or not isinstance(told.get("nodes"), list) or not isinstance(told.get("edges", []), list):
        raise SandboxExecutionError("the flow has no list of nodes; it is not the data of a Langflow flow")
    return {"nodes": told["nodes"], "edges": told.get("edges", [])}


def _is_typed(value) -> bool:
    """Has a value of Langflow's own in it, for which a flow's data has no form."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_typed, value))
    return hasattr(value, "text_key") and not isinstance(value, (str, dict))


def _plain(value):
    """JSON of a flow's data; values of Langflow's own travel beside it."""
    if _is_typed(value):
        return ""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    told = encode(value)
    return None if isinstance(told, dict) and "$" in told else told


def _injected(graph) -> dict:
    """Parameters that callers have put into vertices, as a Loop does with its item."""
    found = {}
    for vertex in graph.vertices if graph is not None else ():
        params = {name: encode(value) for name, value in vertex.raw_params.items() if _is_typed(value)}
        if isinstance(session := vertex.raw_params.get("session_id"), str) and session:
            params["session_id"] = session
        if params:
            found[vertex.id] = params
    return found


def _as_dicts(inputs) -> list:
    many = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    return [one.model_dump() if hasattr(one, "model_dump") else dict(one or {}) for one in many]


def names_of_variables(nodes: list) -> dict[str, str]:
    """Variables that fields of the flow are loaded from: {name: where}."""
    found = {}
    for node, _, inner in walk(nodes):
        for name, template in (inner.get("template") or {}).items():
            if isinstance(template, dict) and template.get("load_from_db") and isinstance(template.get("value"), str):
                if template["value"]:
                    found.setdefault(template["value"], f"{inner.get('display_name') or node.get('id')}, field {name}")
    return found


async def _value_of(name: str, graph) -> str | None:
    context = getattr(graph, "context", None) or {}
    if name in (context.get("request_variables") or {}):
        return str(context["request_variables"][name])
    try:
        from lfx.services.deps import get_variable_service, session_scope
        service, user = get_variable_service(), getattr(graph, "user_id", None)
        if service is not None and user:
            async with session_scope() as session:
                value = service.get_variable(user_id=user if isinstance(user, uuid.UUID) else uuid.UUID(str(user)), name=name, field="",
                                             session=session)
                value = await value if inspect.isawaitable(value) else value
            if value:
                return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value)
    except Exception as why:  # noqa: BLE001: a variable that is not there; values are in no message
        log.debug("no variable %s (%s)", name, type(why).__name__)
    return os.environ.get(name)


async def _variables(nodes: list, graph, allowed: tuple[str, ...]) -> dict[str, str]:
    needed = names_of_variables(nodes)
    if refused := {name: where for name, where in needed.items() if name not in allowed}:
        told = "; ".join(f"{name} ({where})" for name, where in sorted(refused.items()))
        raise SandboxUnavailableError(f"the flow reads variables that may not leave this process: {told}. Allow them by name in "
                                      "CAISSON_EXECUTOR_VARIABLES, or empty the fields")
    given = (getattr(graph, "context", None) or {}).get("request_variables") or {}
    values = {name: await _value_of(name, graph) for name in sorted(set(needed) | (set(given) & set(allowed)))}
    return {name: value for name, value in values.items() if value is not None}


async def read_flow(unit, allowed: tuple[str, ...]) -> Flow:
    """Raises SandboxUnavailableError, SandboxExecutionError; nothing has run then."""
    graph = unit.graph if hasattr(unit.graph, "vertices") else None
    payload = _payload(unit.graph)
    options = dict(unit.runtime_options or {})
    inputs = _as_dicts(unit.inputs) if unit.inputs else _as_dicts(options["initial_inputs"]) if options.get("initial_inputs") else [{}]
    picked = {}
    for name in OPTIONS:
        if options.get(name) is not None:
            try:
                picked[name] = json.loads(json.dumps(options[name]))
            except (TypeError, ValueError):
                raise SandboxExecutionError(f"the option {name} of the run cannot leave this process: it is no JSON") from None
    context = {key: one for key, one in (getattr(graph, "context", None) or {}).items() if key != "request_variables"}
    job = {
        "graph": _plain(payload), "inputs": encode(inputs), "options": picked, "legacy": bool(options.get("_use_arun_legacy")),
        "listens": options.get("event_manager") is not None,
        "params": _injected(graph), "context": encode(context), "variables": await _variables(payload["nodes"], graph, allowed),
        "session_id": str(options.get("session_id") or getattr(graph, "session_id", None) or ""),
        "flow_id": str(getattr(graph, "flow_id", None) or "") or None, "flow_name": getattr(graph, "flow_name", None),
        "user_id": str(getattr(graph, "user_id", None) or uuid.uuid4()), "run_id": str(getattr(graph, "_run_id", "") or ""),
        "vertices": [vertex.id for vertex in graph.vertices] if graph is not None else [str(node.get("id")) for node, _, _ in walk(
            payload["nodes"])],
    }
    return Flow(graph, job, payload["nodes"])


def result_data(told: dict | None):
    """lfx's ResultData of what a guest says. Raises ValueError for what is none."""
    from lfx.graph.schema import ResultData
    return None if told is None else ResultData.model_validate(decode(told))
