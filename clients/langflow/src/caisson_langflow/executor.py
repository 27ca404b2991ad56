# SPDX-License-Identifier: Apache-2.0
"""The executor `caisson`: each run of a flow is a machine of its own, which is deleted after it.

Payloads are lfx's VertexBuildResult, one for each vertex as soon as it is built in the guest, with the caller's own vertex,
and dicts `{"t": "stdout" | "stderr", "line"}` and `{"t": "dropped", "what", "bytes"}`; a streaming run ends with Finish. Nothing
runs in this process instead, whatever fails.
"""

import asyncio
import json
import logging
import re
import secrets
import time
from contextlib import aclosing
from typing import Any, ClassVar

from lfx.execution.executor import Executor
from lfx.execution.types import RunComplete, StepResult, Unit
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

from .egress import domains_of
from .executor_machine import CREDIT, READY, WITHOUT_LFX, Ending, Kind, Machine
from .executor_settings import DEFAULT_ROOTFS, ExecutorSettings, read_executor_settings
from .flow import Flow, read_flow, result_data
from .inside.codec import decode, unshare
from .machines import DENY_ALL, choose_shape, read_driver
from .settings import Server, read_server

OUTPUT_BYTES = 32 << 20  # of all that comes back
LINE_BYTES = 16 << 20  # of one frame
# Of a run's results as they are here. A text travels once for all of its places, of which a vertex's result has about five.
RESULT_CHARACTERS = 256 << 20
# What the guest cuts or refuses itself: lines of each of stdout and stderr, events for an event manager, one frame.
CAPS = {"text_bytes": 1 << 20, "events": 20000, "line_bytes": LINE_BYTES - 4096}
STDERR_BYTES = 4000
GRACE_SECONDS = 15
EVENTS = {"add_message", "build_end", "build_start", "end_vertex", "error", "log", "remove_message", "token", "vertices_sorted"}

log = logging.getLogger("caisson_langflow")


def _rules(settings: ExecutorSettings, driver, nodes: list) -> tuple[tuple[str, ...], list[str]]:
    """(egress rules, components that the table does not know)"""
    hosts, unknown = domains_of(nodes)
    rules = settings.egress if settings.egress is not None else tuple(hosts) or tuple(DENY_ALL)
    unknown = unknown if settings.egress is None else []
    if list(rules) == DENY_ALL:
        if not driver.deny_all:
            raise SandboxUnavailableError(f"the driver {driver.name} cannot deny all, and the flow gets no network")
    elif "*" in rules or not any(re.search("[a-zA-Z]", rule) for rule in rules):
        if not driver.addresses:
            raise SandboxUnavailableError(f"the driver {driver.name} has no network; CAISSON_EXECUTOR_EGRESS=none would give none")
    elif not driver.host_names:
        raise SandboxUnavailableError(f"the driver {driver.name} does not enforce rules by name, and the flow needs "
                                      f"{', '.join(rules)}; choose another driver, or set CAISSON_EXECUTOR_EGRESS")
    return rules, unknown


class _Reader:
    """Turns what a guest says into payloads, and believes none of it further than its form."""

    def __init__(self, flow: Flow, token: str, manager):
        self._flow, self._manager = flow, manager
        self._token = token.encode() + b" "
        self._rest = bytearray()
        self._size = self._characters = 0
        self._vertices = set(flow.job["vertices"])
        self.is_ready = False
        self.lacks_lfx = False
        self.running = ""  # the vertex that was begun last
        self.ending: dict | None = None
        self.outputs: dict[int, list] = {}

    def take(self, data: bytes):
        """Payloads, as far as they are whole."""
        self._size += len(data)
        if self._size > OUTPUT_BYTES:
            raise SandboxExecutionError(f"the flow has told more than the {OUTPUT_BYTES >> 20} MiB that a run may bring back; keep large "
                                        "values in files or stores")
        first, *others = data.split(b"\n")
        self._rest += first
        if len(self._rest) > LINE_BYTES:
            raise SandboxExecutionError(f"one value of the flow is larger than {LINE_BYTES >> 20} MiB")
        if not others:
            return
        lines = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        for line in lines:
            if not self.is_ready:
                self.is_ready = line == READY
                self.lacks_lfx = self.lacks_lfx or line == WITHOUT_LFX
            elif line.startswith(self._token):
                payload = self._frame(line[len(self._token):])
                if payload is not None:
                    yield payload
            elif line:
                yield {"t": "stdout", "line": line[:2000].decode(errors="replace")}

    def _frame(self, text: bytes):
        try:
            told = json.loads(text)
            return self._read(told["t"], told)
        except SandboxExecutionError:
            raise
        except Exception as why:  # noqa: BLE001: whatever readers of values make of what a guest says
            raise SandboxExecutionError("what the guest told is not well formed: a component has written where only the runner does, or "
                                        f"the image's lfx and this one differ too much ({type(why).__name__})") from None

    def _read(self, kind: str, told: dict):
        if kind in ("stdout", "stderr"):
            return {"t": kind, "line": str(told["line"])[:2000]}
        if kind == "dropped":
            return {"t": kind, "what": str(told["what"])[:20], "bytes": int(told["bytes"])}
        if kind == "start":
            self.running = str(told["id"])[:200]
        elif kind == "step":
            return self._step(unshare(told, told["texts"], self._spend))
        elif kind == "event":
            self._event(told)
        elif kind == "outputs":
            self.outputs[int(told["at"])] = [result_data(one) for one in unshare(told["outputs"], told["texts"], self._spend)]
        elif kind == "fatal":
            self.ending = {"t": kind, "errors": [str(one) for one in told["errors"]], "traceback": str(told.get("traceback"))}
        elif kind == "missing":
            if self.running:
                raise ValueError("a flow that runs")
            self.ending = {"t": kind, "modules": {name: ", ".join(map(str, nodes)) for name, nodes in told["modules"].items()}}
        elif kind in ("done", "late"):
            self.ending = {"t": kind}
        return None

    def _spend(self, characters: int) -> None:
        self._characters += characters
        if self._characters > RESULT_CHARACTERS:
            raise SandboxExecutionError(f"the flow's results have the same texts so often that they are more than "
                                        f"{RESULT_CHARACTERS >> 20} MiB; keep large values in files or stores")

    def _step(self, told: dict):
        from lfx.graph.graph.schema import VertexBuildResult
        if told["id"] not in self._vertices:
            raise ValueError(told["id"])
        return VertexBuildResult(result_dict=result_data(told["result"]), params=str(told["params"]), valid=told["valid"] is True,
                                 artifacts=decode(told["artifacts"]), vertex=self._flow.vertex(told["id"]))

    def _event(self, told: dict) -> None:
        if self._manager is not None and told["event"] in EVENTS:
            self._manager.send_event(event_type=told["event"], data=told["data"])


class CaissonExecutor(Executor):
    """Holds nothing of a run."""

    kind: ClassVar[str] = "caisson"

    async def execute(self, unit: Unit):
        settings, server = read_executor_settings(), read_server()
        flow = await read_flow(unit, settings.variables)
        machine = Machine(server)
        try:
            kind, unknown = await _kind(machine, server, settings, flow)
            if unknown:
                log.info("no host is opened for components that the egress table does not know: %s", ", ".join(unknown))
            packages = (*([f"lfx=={settings.install_lfx}"] if settings.install_lfx else []), *settings.packages)
            await machine.make(kind, settings.pool, settings.timeout_seconds, packages, settings.index_hosts)
            token = secrets.token_hex(16)
            reader = _Reader(flow, token, (unit.runtime_options or {}).get("event_manager"))
            job = flow.job | {"token": token, "caps": CAPS, "seconds": settings.timeout_seconds}
            async with aclosing(_run(machine, reader, job, settings, kind)) as payloads:
                async for payload in payloads:
                    yield StepResult(payload=payload)
            _settle(reader, unknown)
        finally:
            await machine.close()
        if not flow.job["legacy"]:
            from lfx.graph.graph.constants import Finish
            yield StepResult(payload=Finish())
        yield RunComplete(outputs=_outputs(reader, flow))


async def _kind(machine: Machine, server: Server, settings: ExecutorSettings, flow: Flow) -> tuple[Kind, list[str]]:
    told, shapes = await asyncio.gather(machine.get("/v1/capabilities"), machine.get("/v1/shapes?limit=500"))
    driver = read_driver(told, server.driver)
    rules, unknown = _rules(settings, driver, flow.nodes)
    try:
        shapes = [{"id": str(one["id"]), "vcpu": int(one["vcpu"]), "mem_mib": int(one["mem_mib"])} for one in shapes["data"]]
    except (KeyError, TypeError, ValueError):
        raise SandboxUnavailableError("the server's answer to GET /v1/shapes is not understood; its version and caisson-langflow's do "
                                      "not fit") from None
    return Kind(settings.rootfs, choose_shape(shapes, settings.shape, settings.least_mib, "CAISSON_EXECUTOR_SHAPE"), driver, rules), unknown


async def _run(machine: Machine, reader: _Reader, job: dict, settings: ExecutorSettings, kind: Kind):
    text = json.dumps(job).encode()
    sent, counted, stderr = False, 0, b""
    deadline = time.monotonic() + kind.start_seconds
    async with aclosing(machine.output()) as pieces:
        async for piece in pieces:
            if time.monotonic() > deadline:
                raise SandboxExecutionError(f"the flow did not end within CAISSON_EXECUTOR_TIMEOUT_SECONDS ({settings.timeout_seconds} s)"
                                            if sent else f"lfx was not imported within {kind.start_seconds} s; the shape may be too small")
            if piece is None:
                continue
            if isinstance(piece, Ending):
                if reader.ending is None:
                    raise _lost(piece, reader, stderr, settings)
                return
            stream, data = piece
            if stream == "stderr":
                stderr = (stderr + data)[-STDERR_BYTES:]
                continue
            for payload in reader.take(data):
                yield payload
            if reader.ending is not None:
                return
            if sent:
                counted += len(data)
                if counted >= CREDIT:
                    await machine.send(b"." * (counted // CREDIT))
                    counted %= CREDIT
            elif reader.is_ready:
                sent = True
                await machine.send(len(text).to_bytes(8, "big") + text)
                deadline = time.monotonic() + settings.timeout_seconds + GRACE_SECONDS


def _lost(ending: Ending, reader: _Reader, stderr: bytes, settings: ExecutorSettings) -> Exception:
    said = stderr.decode(errors="replace").strip()[-1000:]
    if reader.lacks_lfx:
        return SandboxUnavailableError(f"the image {settings.rootfs} has no lfx; set CAISSON_EXECUTOR_ROOTFS to one that has, such as "
                                       f"{DEFAULT_ROOTFS} (caisson images build langflow:1), or CAISSON_EXECUTOR_INSTALL_LFX")
    if not reader.is_ready:
        if ending.exit_code in (126, 127):
            return SandboxUnavailableError(f"the image {settings.rootfs} has no python3; set CAISSON_EXECUTOR_ROOTFS to one that has, "
                                           f"such as {DEFAULT_ROOTFS}")
        return SandboxUnavailableError(f"lfx of the image {settings.rootfs} cannot be imported: {said}")
    where = f" while {reader.running} was built" if reader.running else ""
    if ending.signal == "SIGKILL" or ending.exit_code == 137:
        return SandboxExecutionError(f"the flow was killed{where}, most likely since its memory was not enough; set CAISSON_EXECUTOR_SHAPE "
                                     "to a larger one")
    return SandboxExecutionError(f"the flow ended its process{where} (code {ending.exit_code}{', ' + ending.signal if ending.signal else ''}) "
                                 f"without a result: {said}")


def _settle(reader: _Reader, unknown: list[str]) -> None:
    """Raises when the guest told that the flow has failed."""
    told = reader.ending or {}
    if told.get("t") == "done":
        return
    if told.get("t") == "late":
        raise SandboxExecutionError("the flow did not end within CAISSON_EXECUTOR_TIMEOUT_SECONDS")
    if told.get("t") == "missing":
        lacks = "; ".join(f"{module[:100]} (for {nodes[:200]})" for module, nodes in sorted(told["modules"].items()))
        raise SandboxUnavailableError(f"the guest's image lacks Python modules that the flow imports, and nothing has run: {lacks}. Name their "
                                      "packages in CAISSON_EXECUTOR_PIP, or build an image that has them")
    errors = told.get("errors") or ["unknown"]
    log.debug("traceback in the guest:\n%s", told.get("traceback"))
    text = f"the flow failed in the guest: {errors[0]}" + (f" (because of {errors[-1]})" if len(errors) > 1 else "")
    if unknown:
        text += (f". No host was opened for {', '.join(unknown)}, which the egress table does not know; if they need the network, set "
                 "CAISSON_EXECUTOR_EGRESS")
    raise SandboxExecutionError(text[:8000])


def _outputs(reader: _Reader, flow: Flow) -> list[Any]:
    from lfx.graph.schema import RunOutputs
    return [RunOutputs(inputs=decode(inputs), outputs=reader.outputs.get(at, [])) for at, inputs in enumerate(flow.job["inputs"])]
