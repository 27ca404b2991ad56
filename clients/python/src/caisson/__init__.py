# SPDX-License-Identifier: Apache-2.0
"""Restricted workflows compiled and run in isolates, in your own process (docs/library.md).

What has a counterpart in Orcheo has its name, and where `orcheo` can be imported its exceptions and its IR models are used; they
are imported when the first of them is asked for, not with this package, since Orcheo takes seconds to import."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "engine": ("AsyncEvents", "Cancel", "Engine", "Events", "RunResult", "shared_engine"),
    "library": ("CaissonError", "version"),
    "compiler": ("CompileResult", "check_ir", "compile_source", "compile_workflow_to_ir"),
    "runner": ("MicroPythonSandboxRunner",),
    "classes": ("GraphIR", "IRError", "IRValidationError", "SandboxError", "SandboxExecutionError", "SandboxLimitError",
                "SandboxMarshallingError", "SandboxOutputError", "SandboxRuntimeUnavailableError", "WorkflowValidationError"),
    "running": ("arun_ir", "run_ir"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'caisson' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"caisson.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
