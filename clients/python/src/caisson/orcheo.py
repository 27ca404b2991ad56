# SPDX-License-Identifier: Apache-2.0
"""Puts our compiler and our runner in the place of Orcheo's, in this process: `caisson.orcheo.install()`."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

from caisson.compiler import compile_workflow_to_ir
from caisson.library import load

TESTED_VERSION = "0.46.1"

# Where Orcheo defines what is replaced. Other modules of it that have taken these names are found by what they hold.
_HOMES = {"compile_workflow_to_ir": "orcheo.graph.ir.interpreter", "MicroPythonSandboxRunner": "orcheo.sandbox.runner"}
# These hold the names, too, and may not have been imported yet.
_HOLDERS = ("orcheo.graph.ir", "orcheo.sandbox.code_node")

_lock = threading.Lock()
_current: Installation | None = None


class Installation:
    """What `install()` did. `uninstall()`, or the end of a `with`, takes it back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def _replace(self, name: str, ours: Any) -> None:
        theirs = getattr(importlib.import_module(_HOMES[name]), name)
        for module in list(sys.modules.values()):
            module_name = getattr(module, "__name__", "")
            if module_name.split(".")[0] in ("orcheo", "orcheo_backend") and module.__dict__.get(name) is theirs:
                setattr(module, name, ours)
                self._replaced.append((module, name, theirs))

    def uninstall(self) -> None:
        global _current
        with _lock:
            for module, name, theirs in self._replaced:
                setattr(module, name, theirs)
            self._replaced.clear()
            if _current is self:
                _current = None

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *_: object) -> None:
        self.uninstall()


def install() -> Installation:
    """From now on Orcheo compiles restricted workflows with our compiler and runs their bodies with our runner. A runner that was made
    before stays what it is. Calling it again changes nothing. Raises ImportError without Orcheo, CaissonError without our library:
    nothing is replaced then."""
    global _current
    load()
    from caisson.runner import MicroPythonSandboxRunner

    for holder in (*_HOMES.values(), *_HOLDERS):
        importlib.import_module(holder)
    with _lock:
        if _current is None:
            made = Installation()
            made._replace("compile_workflow_to_ir", compile_workflow_to_ir)
            made._replace("MicroPythonSandboxRunner", MicroPythonSandboxRunner)
            _current = made
        return _current
