# SPDX-License-Identifier: Apache-2.0
"""Runs of an IR on the engine that the process shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caisson.engine import OnEvent, RunResult, shared_engine


def run_ir(ir: Any, inputs: Mapping[str, Any] | None = None, *, on_event: OnEvent | None = None, **options: Any) -> RunResult:
    """As Engine.run."""
    return shared_engine().run(ir, inputs, on_event=on_event, **options)


async def arun_ir(ir: Any, inputs: Mapping[str, Any] | None = None, *, on_event: OnEvent | None = None, **options: Any) -> RunResult:
    """As Engine.arun."""
    return await shared_engine().arun(ir, inputs, on_event=on_event, **options)
