# SPDX-License-Identifier: Apache-2.0
"""The exceptions and the IR model that Orcheo has too: Orcheo's own where it can be imported, so that code which catches or checks
them need not know which of the two raised, else ours of the same names and forms."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("orcheo") is not None:
    from orcheo.graph.ir.exceptions import IRError, IRValidationError, WorkflowValidationError
    from orcheo.graph.ir.models import GraphIR
    from orcheo.sandbox.exceptions import (
        SandboxError,
        SandboxExecutionError,
        SandboxLimitError,
        SandboxMarshallingError,
        SandboxOutputError,
        SandboxRuntimeUnavailableError,
    )

    HAS_ORCHEO = True
else:
    from caisson.own_classes import (
        GraphIR,
        IRError,
        IRValidationError,
        SandboxError,
        SandboxExecutionError,
        SandboxLimitError,
        SandboxMarshallingError,
        SandboxOutputError,
        SandboxRuntimeUnavailableError,
        WorkflowValidationError,
    )

    HAS_ORCHEO = False

__all__ = [
    "HAS_ORCHEO",
    "GraphIR",
    "IRError",
    "IRValidationError",
    "SandboxError",
    "SandboxExecutionError",
    "SandboxLimitError",
    "SandboxMarshallingError",
    "SandboxOutputError",
    "SandboxRuntimeUnavailableError",
    "WorkflowValidationError",
]
