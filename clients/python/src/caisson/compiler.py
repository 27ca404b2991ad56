# SPDX-License-Identifier: Apache-2.0
"""workflow.py to IR, without running a line of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from caisson.library import CaissonError, answer, load, options_text

if TYPE_CHECKING:
    from caisson.classes import GraphIR


@dataclass(frozen=True)
class CompileResult:
    ir: dict[str, Any]
    content_id: str  # SHA-256 of the IR's canonical bytes
    diagnostics: list[dict[str, Any]]  # warnings
    index: dict[str, Any] | None = None  # cron triggers, listeners, credentials of a source


def _bytes_of(source: str | bytes) -> bytes:
    # What is no Unicode is for the compiler to refuse, with its place.
    return source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source


def compile_source(source: str | bytes, **options: Any) -> CompileResult:
    """Options: strict, enforce_node_policy, runtime. Raises CaissonError, whose `diagnostics` are all that is wrong."""
    data = _bytes_of(source)
    told = answer(load().caisson_compile(data, len(data), options_text(options)))
    return CompileResult(told["ir"], told["content_id"], told["diagnostics"], told["index"])


def ir_text(ir: Any) -> bytes:
    """The JSON of an IR that is a mapping, a model with model_dump(), or JSON text."""
    if isinstance(ir, str | bytes):
        return _bytes_of(ir)
    if hasattr(ir, "model_dump"):
        ir = ir.model_dump(mode="json")
    return json.dumps(ir, ensure_ascii=False).encode("utf-8", "surrogatepass")


def check_ir(ir: Any, **options: Any) -> CompileResult:
    """Checks an IR that came from anywhere. As compile_source, but without an index."""
    data = ir_text(ir)
    told = answer(load().caisson_check_ir(data, len(data), options_text(options)))
    return CompileResult(told["ir"], told["content_id"], told["diagnostics"])


def _as_peer(error: CaissonError) -> Exception | None:
    """As Orcheo raises it, with `code`, `hint` and `diagnostics` besides; None when it is no matter of the source."""
    from caisson.classes import IRValidationError, WorkflowValidationError

    first = next((each for each in error.diagnostics if each["severity"] == "error"), None)
    if first is None:
        return None
    line = first["line"] if first["peer_accepts"] else first["peer_line"]
    if first["code"].startswith("ir.") and not line:
        raised: Exception = IRValidationError(first["message"])
    else:
        raised = WorkflowValidationError(first["message"], lineno=line or None)
    raised.code, raised.hint, raised.diagnostics = error.code, error.hint, error.diagnostics  # type: ignore[attr-defined]
    return raised


def compile_workflow_to_ir(source: str, *, enforce_node_policy: bool = True) -> GraphIR:
    """As Orcheo's function of that name. Raises WorkflowValidationError (with `lineno`, `raw_message`) or IRValidationError; both carry
    `diagnostics` with all that is wrong, and the first one's `code` and `hint`."""
    from caisson.classes import GraphIR

    try:
        compiled = compile_source(source, enforce_node_policy=enforce_node_policy)
    except CaissonError as error:
        raised = _as_peer(error)
        if raised is None:
            raise
        raise raised from None
    return GraphIR.model_validate(compiled.ir)
