# SPDX-License-Identifier: Apache-2.0
"""What the component "Caisson Sandbox" does, for one instance of it: one run for all of its outputs."""

import asyncio
import time

from lfx.schema.data import Data
from lfx.schema.dataframe import DataFrame
from lfx.schema.message import Message
from lfx.utils.sandbox.base import SandboxUnavailableError

from . import pictures
from .guest import Outcome, Request, Run
from .in_process import warn

LOG_SECONDS = 0.25  # between two entries of the node's log
LOG_ENTRIES, LOG_CHARACTERS = 200, 8000
MOST_SECONDS = 86400

warn()  # Langflow loads its components when it starts


class _Log:
    """Output as entries of the node's log, few and short whatever the program writes. take() from the run's thread."""

    def __init__(self, component, loop: asyncio.AbstractEventLoop):
        self._component, self._loop = component, loop
        self._waiting: list[tuple[str, str]] = []
        self._held = 0
        self._entries = 0
        self._last = 0.0

    def take(self, stream: str, text: str) -> None:
        if self._entries > LOG_ENTRIES:
            return
        if self._held < LOG_CHARACTERS:
            self._waiting.append((stream, text[: LOG_CHARACTERS - self._held]))
        self._held += len(text)
        if time.monotonic() >= self._last + LOG_SECONDS:
            self._loop.call_soon_threadsafe(self._write, *self._entry())

    def _entry(self) -> tuple[str, str]:
        text, name = "".join(part for _, part in self._waiting), self._waiting[-1][0]
        if self._held > LOG_CHARACTERS:
            text += f"\n[{self._held - LOG_CHARACTERS} characters more]"
        self._waiting, self._held, self._last = [], 0, time.monotonic()
        self._entries += 1
        if self._entries > LOG_ENTRIES:
            text += "\n[the log ends here; the output goes on]"
        return text, name

    def _write(self, text: str, name: str) -> None:
        self._component.log(text, name=name)

    def flush(self) -> None:
        """From the loop's thread, after the run."""
        if self._waiting:
            self._write(*self._entry())


def _shown(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _as_written(component, name: str, given: str) -> str:
    """A field as its author wrote it: lfx makes line ends of each \\n in a text, those in a program's own texts too."""
    try:
        written = component._vertex.data["node"]["template"][name]["value"]
    except (AttributeError, KeyError, TypeError):
        return given
    return written if isinstance(written, str) and written.replace("\\n", "\n") == given else given


class SandboxNode:
    """Kept by the component that it is of. An outcome is given to each output once; who asks again starts a new run."""

    def __init__(self, component):
        self._component = component
        self._asked_for: Request | None = None
        self._outcome: Outcome | None = None
        self._given: set[str] = set()

    @staticmethod
    def of(component) -> "SandboxNode":
        node = component.__dict__.get("_caisson_node")
        if node is None:
            node = component.__dict__["_caisson_node"] = SandboxNode(component)
        return node

    def _wants(self, output: str) -> bool:
        vertex = getattr(self._component, "_vertex", None)
        if vertex is None or not vertex.outgoing_edges:
            return True
        return output in vertex.edges_source_names

    def _request(self, asked: str) -> Request:
        of = self._component
        try:
            seconds = int(of.timeout_seconds)
        except (TypeError, ValueError):
            seconds = 0
        if not 1 <= seconds <= MOST_SECONDS:
            raise SandboxUnavailableError(f"Timeout must be a whole number from 1 to {MOST_SECONDS} seconds")
        reuse_for = None
        if of.session_mode == "flow":
            flow = getattr(getattr(of, "graph", None), "flow_id", None)
            if not flow:
                raise SandboxUnavailableError("Guest Reuse needs a flow that has an id, and this one has none; save the flow, or "
                                              "switch Guest Reuse off")
            reuse_for = (str(flow), str(of._id))
        elif of.session_mode != "off":
            raise SandboxUnavailableError(f"Guest Reuse is {str(of.session_mode)[:40]!r}; it must be off or flow")
        name = "command" if of.command else "python_code"
        program = getattr(of, name) or ""
        program = program.get_text() if isinstance(program, Message) else _as_written(of, name, str(program))
        try:
            program.encode()
        except UnicodeEncodeError:
            raise SandboxUnavailableError("the program has characters that are no text (surrogates)") from None
        with_files = bool(of.collect_artifacts) or asked != "results" or self._wants("files") or self._wants("message")
        return Request(program, bool(of.command), str(of.network), str(of.domains or ""), (of.shape or "").strip(), seconds,
                       with_files, reuse_for)

    async def _run(self, asked: str) -> Outcome:
        request = self._request(asked)
        if self._outcome is not None and self._asked_for == request and asked not in self._given:
            self._given.add(asked)
            return self._outcome
        self._outcome = None
        told = _Log(self._component, asyncio.get_running_loop())
        run = Run(request, told.take)
        try:
            outcome = await asyncio.to_thread(run.execute)
        finally:
            run.stop()  # which does nothing where it has ended; else the build was cancelled
        await asyncio.sleep(0)  # what the run's thread has left for the log
        told.flush()
        for text in filter(None, [*outcome.cut, outcome.collection.told()]):
            self._component.log(text, name="truncated")
        self._outcome, self._asked_for, self._given = outcome, request, {asked}
        return outcome

    def _error(self, outcome: Outcome, stderr: str) -> str:
        if outcome.ending.timed_out:
            return f"Timed out after {self._asked_for.timeout_seconds}s"
        if outcome.ending.exit_code == 137:
            return "Killed (137), most likely since the machine's memory was not enough; choose a larger Shape"
        if outcome.ending.exit_code != 0:
            return stderr or f"Exited with code {outcome.ending.exit_code}"
        return ""

    async def results(self) -> Data:
        outcome = await self._run("results")
        stderr = _shown(outcome.stderr).strip()
        told = outcome.collection.told()
        data = {"result": _shown(outcome.stdout).strip(), "artifact_count": len(outcome.collection.files), "stderr": stderr,
                "exit_code": outcome.ending.exit_code, "sandbox_id": outcome.sandbox, "reused_guest": outcome.reused,
                "truncated": bool(outcome.cut or told)}
        if data["truncated"]:
            data["left_out"] = [*outcome.cut, *([told] if told else [])]
        if error := self._error(outcome, stderr):
            data["error"] = error
        return Data(data=data)

    async def files(self) -> DataFrame:
        outcome = await self._run("files")
        told = outcome.collection.told()
        rows = [file.row() | {"truncated": told} for file in outcome.collection.files]
        if told and not rows:
            rows = [{"path": "", "size": 0, "truncated": told}]
        return DataFrame(data=rows)

    async def message(self) -> Message:
        outcome = await self._run("message")
        text = _shown(outcome.stdout).strip()
        if error := self._error(outcome, _shown(outcome.stderr).strip()):
            text = f"{text}\n\n{error}".strip()
        flow = getattr(getattr(self._component, "graph", None), "flow_id", None)
        kept = await pictures.keep(outcome.collection.files, flow)
        # The chat shows pictures of its users' messages by `files`, and those of others where the text has them.
        shown = [f"![{pictures.title_of(file)}](/api/v1/files/images/{path})" for file, path in kept]
        return Message(text="\n\n".join(filter(None, [text, *shown])), files=[path for _, path in kept])
