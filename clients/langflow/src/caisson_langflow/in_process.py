# SPDX-License-Identifier: Apache-2.0
"""The warning at start-up that names what still runs in the Langflow process."""

import functools
import os
import sys

from .flow_check import CSV_AGENTS, IN_PROCESS, INTERPRETERS

FALSE = {"0", "false", "no", "off", "n", "f"}


def in_process_types() -> list[str]:
    """Of nodes that execute code in the Langflow process: those that we know, and what the installed lfx says beyond them."""
    from lfx.utils import flow_validation

    known = getattr(flow_validation, "CODE_EXECUTION_COMPONENT_TYPES", frozenset())
    return sorted((set(known) | set(IN_PROCESS) | CSV_AGENTS) - set(INTERPRETERS))


def told() -> str:
    """By the variables alone: Langflow's settings are being made when this is asked."""
    parts = []
    if os.environ.get("LANGFLOW_ALLOW_CUSTOM_COMPONENTS", "true").strip().lower() not in FALSE:
        parts.append("the source of custom and edited components (set LANGFLOW_ALLOW_CUSTOM_COMPONENTS=false)")
    if os.environ.get("LANGFLOW_SANDBOX_BACKEND", "").strip().lower() != "caisson":
        parts.append("Python Interpreter and Python REPL (set LANGFLOW_SANDBOX_BACKEND=caisson and "
                     "LANGFLOW_SANDBOX_BACKEND_PLUGINS=caisson)")
    parts.append("interpreters saved by older versions, and these nodes: " + ", ".join(in_process_types()))
    return ("in the Langflow process, and not in machines of Caisson, still run: " + "; ".join(parts) +
            ". `caisson-langflow check flow.json` names them in a flow")


@functools.cache
def warn() -> None:
    """To stderr itself: at this time Langflow's loggers still, or by then already, keep what others than it have to say."""
    print(f"caisson-langflow: warning: {told()}", file=sys.stderr, flush=True)
