# SPDX-License-Identifier: Apache-2.0
"""What stands in for Orcheo's classes where there is no Orcheo: the same names, attributes and texts."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any


class IRError(ValueError):
    """A workflow or an IR was refused."""


class IRValidationError(IRError):
    """A finished IR breaks a rule; no line is known."""


class WorkflowValidationError(IRError):
    """A workflow.py breaks a rule; `lineno` is the line, None where none is known."""

    def __init__(self, message: str, *, lineno: int | None = None) -> None:
        super().__init__(message if lineno is None else f"line {lineno}: {message}")
        self.raw_message = message
        self.lineno = lineno


class SandboxError(RuntimeError):
    """A body did not give a result; `node_id` is whose, where it is known."""

    def __init__(self, message: str, *, node_id: str | None = None) -> None:
        super().__init__(f"CodeNode '{node_id}': {message}" if node_id else message)
        self.raw_message = message
        self.node_id = node_id


class SandboxRuntimeUnavailableError(SandboxError):
    """The isolates cannot be started here."""


class SandboxLimitError(SandboxError):
    """The body reached its limit of fuel, memory or time."""


class SandboxExecutionError(SandboxError):
    """The body failed; `error_type` is the class that it raised, where it did."""

    def __init__(self, message: str, *, node_id: str | None = None, error_type: str | None = None) -> None:
        super().__init__(message, node_id=node_id)
        self.error_type = error_type


class SandboxOutputError(SandboxError):
    """What the body gave is no JSON, or too large."""


class SandboxMarshallingError(SandboxError):
    """What the body was to be given is no JSON."""


@dataclass(frozen=True)
class GraphIR:
    """An IR: the members of its JSON, read only. `model_dump()` gives a copy of the whole."""

    entrypoint: str
    schema_version: int = 1
    state_ref: str = "orcheo.graph.state.State"
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    conditional_edges: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> GraphIR:
        return cls(**value)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        order = ("schema_version", "state_ref", "entrypoint", "nodes", "edges", "conditional_edges")
        return {name: copy.deepcopy(getattr(self, name)) for name in order}
