# SPDX-License-Identifier: Apache-2.0
"""Orcheo's MicroPythonSandboxRunner over our isolates: the same arguments, results and exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from caisson.classes import (
    SandboxError,
    SandboxExecutionError,
    SandboxLimitError,
    SandboxMarshallingError,
    SandboxOutputError,
    SandboxRuntimeUnavailableError,
)
from caisson.engine import MOST_MEMORY, Engine, shared_engine
from caisson.library import CaissonError, version

DEFAULT_MEMORY_BYTES = 256 << 20
DEFAULT_FUEL = 600_000_000
DEFAULT_WALL_TIMEOUT_SECONDS = 30.0
DEFAULT_MAX_OUTPUT_BYTES = 64 << 20

_MOST_OUTPUT = 1 << 30
_MOST_MILLISECONDS = 7 * 24 * 3600 * 1000
_EXIT_CODE = re.compile(r"-?\d+")


class MicroPythonSandboxRunner:
    """`engine`: None takes the one that the process shares; one that is given must allow `memory_bytes`."""

    def __init__(self, *, memory_bytes: int = DEFAULT_MEMORY_BYTES, fuel: int = DEFAULT_FUEL,
                 wall_timeout_seconds: float = DEFAULT_WALL_TIMEOUT_SECONDS, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
                 engine: Engine | None = None) -> None:
        self.memory_bytes = memory_bytes
        self.fuel = fuel
        self.wall_timeout_seconds = wall_timeout_seconds
        self.max_output_bytes = max_output_bytes
        self._engine = engine

    def describe(self) -> dict[str, Any]:
        """Who runs bodies here, and the limits of each. `Engine.describe()` tells of the artifact and its walls."""
        return {"package": "caisson", "version": version(), "memory_bytes": self.memory_bytes, "fuel": self.fuel,
                "wall_timeout_seconds": self.wall_timeout_seconds, "max_output_bytes": self.max_output_bytes}

    def run(self, body: str, inputs: Mapping[str, Any], *, node_id: str | None = None) -> dict[str, Any]:
        """{"update": value}, or {"error": {"type", "message"}} when the body raised. Raises SandboxLimitError, SandboxOutputError,
        SandboxExecutionError, SandboxMarshallingError, SandboxRuntimeUnavailableError, and ValueError for a limit of 0 or less."""
        limits = self._limits()
        envelope = _envelope(inputs, node_id)
        try:
            engine = self._engine or shared_engine(limits["memory_bytes"])
            outcome = engine.call(body, envelope, node_id=node_id, limits=limits)
        except CaissonError as error:
            raise _failure(error, node_id) from error
        if outcome["kind"] == "value":
            return {"update": outcome["value"]}
        if outcome["kind"] == "protocol" and "contains itself" in outcome["message"]:
            # Orcheo's guest runs into its own encoder's recursion, which is an exception there.
            return {"error": {"type": "RuntimeError", "message": "maximum recursion depth exceeded"}}
        if outcome["kind"] == "raised":
            return {"error": {"type": outcome["error_type"], "message": outcome["message"]}}
        raise _fault(outcome, node_id)

    def _limits(self) -> dict[str, int]:
        # 0 would mean "not counted" to the library.
        for name in ("memory_bytes", "fuel", "wall_timeout_seconds", "max_output_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        return {"memory_bytes": min(int(self.memory_bytes), MOST_MEMORY), "fuel": max(int(self.fuel), 1),
                "wall_clock_ms": min(max(round(self.wall_timeout_seconds * 1000), 1), _MOST_MILLISECONDS),
                "output_bytes": min(max(int(self.max_output_bytes), 1), _MOST_OUTPUT)}


def _envelope(inputs: Mapping[str, Any], node_id: str | None) -> bytes:
    try:
        return json.dumps(inputs, allow_nan=False).encode()
    except ValueError as error:
        # Orcheo hands NaN and infinities over, and its guest fails on them.
        raise SandboxExecutionError(f"sandbox runtime error: the inputs have no JSON form: {error}", node_id=node_id) from error


def _failure(error: CaissonError, node_id: str | None) -> SandboxError:
    area = error.code.split(".")[0]
    if area in ("body", "workflow"):
        line = error.diagnostics[0]["line"] if error.diagnostics else 0
        place = f"line {line} of the body: " if line else ""
        return SandboxExecutionError(f"the body was refused: {place}{error.message}", node_id=node_id)
    if area == "json" or error.code == "library.options":
        return SandboxMarshallingError(error.message, node_id=node_id)
    if error.code == "isolate.worker_lost":
        return SandboxExecutionError(f"sandbox runtime error: {error.message}", node_id=node_id)
    if error.code == "wasm.limit_too_low":
        return SandboxLimitError("execution exceeded a fuel/memory/wall-clock limit", node_id=node_id)
    return SandboxRuntimeUnavailableError(f"the isolates of caisson cannot be used: {error}", node_id=node_id)


def _fault(outcome: dict[str, Any], node_id: str | None) -> SandboxError:
    kind, message = outcome["kind"], outcome["message"]
    if kind in ("fuel", "cpu", "memory", "wall_clock"):
        raised: SandboxError = SandboxLimitError("execution exceeded a fuel/memory/wall-clock limit", node_id=node_id)
    elif kind in ("output", "messages"):
        raised = SandboxOutputError("sandbox output exceeded the maximum size", node_id=node_id)
    elif kind == "protocol":
        raised = SandboxOutputError(f"sandbox output was not valid JSON: {message}", node_id=node_id)
    elif kind == "exited":
        raised = _exit(outcome, node_id)
    elif kind == "syntax":
        raised = SandboxExecutionError("sandbox runtime error: guest exited with code 1", node_id=node_id)
    else:
        raised = SandboxExecutionError(f"sandbox runtime error: {message}", node_id=node_id)
    raised.outcome = outcome  # type: ignore[attr-defined]
    return raised


def _exit(outcome: dict[str, Any], node_id: str | None) -> SandboxError:
    """SystemExit ends the interpreter with its code, 0 without one; anything else that nothing catches with 1."""
    message = outcome["message"]
    code = 1
    if outcome["error_type"] == "SystemExit":
        code = int(message) & 0xFF if _EXIT_CODE.fullmatch(message) else 0 if message in ("", "None", "False") else 1
    if code == 0:
        return SandboxOutputError("sandbox produced no output", node_id=node_id)
    return SandboxExecutionError(f"sandbox runtime error: guest exited with code {code}", node_id=node_id)
