# SPDX-License-Identifier: Apache-2.0
"""The node types of the installed orcheo: which there are, making a node of a configuration, running it.

Templates and credentials were resolved by whoever calls: a call brings, for each text that holds one, the value it
stands for. orcheo's own resolving is replaced while a node of ours runs, so that no value is ever taken for a
template again."""

import collections
import contextvars
import dataclasses
import importlib
import importlib.metadata
import inspect
import json

import orcheo.nodes  # noqa: F401  registers the types
from orcheo.nodes.base import BaseRunnable
from orcheo.nodes.registry import registry
from pydantic import BaseModel

from caisson_orcheo.json_form import to_json
from caisson_orcheo.state import state_from_json

KIND = "__orcheo_ir_kind__"
MAX_INSTANCES = 1024


class UnknownType(LookupError):
    """There is no such node type."""


class BadConfig(ValueError):
    """No node can be made of a configuration."""


@dataclasses.dataclass
class Visit:
    """The node that runs in this context, and what its texts stand for."""

    name: str
    kind: type
    values: dict


_VISIT: contextvars.ContextVar[Visit | None] = contextvars.ContextVar("caisson_visit", default=None)
_resolve_there = BaseRunnable._decode_string_value


def _resolve(runnable, value, state):
    visit = _VISIT.get()
    if visit is None:
        return _resolve_there(runnable, value, state)
    for text in (value, value.strip()):
        if text in visit.values:
            return visit.values[text]
    # A text of the node's own that the author did not write is data. Nodes that it makes resolve theirs.
    if runnable.name == visit.name and isinstance(runnable, visit.kind):
        return value
    return _resolve_there(runnable, value, state)


BaseRunnable._decode_string_value = _resolve


def package() -> str:
    return f"orcheo {importlib.metadata.version('orcheo')}"


def list_types() -> list[dict]:
    types = []
    for metadata in registry.list_metadata():
        constructor = registry.get_node(metadata.name)
        fields = getattr(constructor, "model_fields", {})
        types.append({
            "name": metadata.name,
            "category": metadata.category,
            "restricted": metadata.restricted,
            "fields": [{"name": name, "required": field.is_required()} for name, field in fields.items() if name != "name"],
        })
    return types


def _import_model(marker: dict) -> type[BaseModel]:
    module, name = marker.get("module"), marker.get("name")
    if not isinstance(module, str) or not isinstance(name, str) or module.split(".")[0] != "orcheo":
        raise BadConfig("a model reference must name a module of orcheo and a class in it")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise BadConfig(f"the model {module}.{name} cannot be imported: {error}") from error
    if not isinstance(found, type) or not issubclass(found, BaseModel) or found is BaseModel:
        raise BadConfig(f"{module}.{name} is no model class")
    return found


def _with_models(value):
    if isinstance(value, list):
        return [_with_models(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(KIND)
    if kind == "pydantic_model":
        return _import_model(value)
    if kind is not None:
        raise BadConfig(f"a {kind} cannot be part of the configuration of a hosted node")
    return {key: _with_models(item) for key, item in value.items()}


def make(node_type: str, name: str, config: dict):
    constructor = registry.get_node(node_type)
    if constructor is None:
        raise UnknownType(f"there is no node type '{node_type}' in {package()}")
    given = {key: value for key, value in config.items() if key != "name"}
    try:
        return constructor(name=name, **_with_models(given))
    except (ValueError, TypeError) as error:
        raise BadConfig(str(error)) from error


class Instances:
    """Nodes that are kept between visits of one place in a run, as they would be there."""

    def __init__(self, limit: int = MAX_INSTANCES):
        self._limit = limit
        self._kept: collections.OrderedDict = collections.OrderedDict()

    def get(self, instance: str, node_type: str, name: str, config: dict):
        if not instance:
            return make(node_type, name, config)
        key = (instance, node_type, name, json.dumps(config, sort_keys=True))
        if key not in self._kept:
            self._kept[key] = make(node_type, name, config)
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


async def run(node, values: dict, state: dict, config: dict) -> object:
    """The state fields that the node writes, as JSON."""
    visit = _VISIT.set(Visit(node.name, type(node), values))
    try:
        result = node(state_from_json(state), config)
        if inspect.isawaitable(result):
            result = await result
    finally:
        _VISIT.reset(visit)
    return to_json({} if result is None else result)
