# SPDX-License-Identifier: Apache-2.0
"""One run of the component "Caisson Sandbox": a machine of its own or that of its flow, the program, its files.

Blocking; any thread. Nothing of it knows Langflow's graph.
"""

import hashlib
import json
import logging
import re
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Callable

import httpx
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

from .artifacts import Collection, Limits, collect
from .machines import DENY_ALL, OPEN, Driver, choose_shape, needed_mib, read_driver
from .server import CONNECT_SECONDS, CREATE_SECONDS, Api, Ending, Output
from .settings import Server, read_number, read_server

CAPABILITIES_SECONDS = 10
FILE_SECONDS = 20
OUTPUT_BYTES = 4 << 20  # of each stream
GRACE_SECONDS = 30
REAP_SECONDS = 180  # with which files are read, too
AUTO_PAUSE_SECONDS = 300
KEEP_SECONDS = 86400  # a reused machine, after its last run
NETWORKS = ("off", "domains", "open")

# $0 the folder of this run, $1 what there is when python3 is missing, $2 when the folder cannot be written, $3 the program's
# interpreter. The link is for programs that write to the path that all runs know; at any time it leads to one run's folder.
START = """
[ "$3" = sh ] || command -v python3 >/dev/null || { echo "$1" >&2; exit 127; }
export CAISSON_ARTIFACTS="$0/artifacts" PYTHONPATH="/workspace${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$CAISSON_ARTIFACTS" && cat >"$0/main" && cd /workspace || { echo "$2" >&2; exit 125; }
if [ -L artifacts ] || [ ! -e artifacts ]; then ln -sfn "$CAISSON_ARTIFACTS" artifacts; fi
exec "$3" "$0/main" </dev/null
"""

log = logging.getLogger("caisson_langflow")


class Stopped(Exception):
    """Nobody wants the outcome any more."""


@dataclass(frozen=True)
class Request:
    """What a node asks for."""

    program: str
    is_command: bool = False
    network: str = "off"
    domains: str = ""
    shape: str = ""  # empty: the operator's, else the smallest that is large enough
    timeout_seconds: int = 60
    with_files: bool = True
    reuse_for: tuple[str, str] | None = None  # ids of the flow and the node; absent: a machine of its own


@dataclass
class Outcome:
    sandbox: str
    reused: bool
    ending: Ending
    stdout: str
    stderr: str
    collection: Collection = field(default_factory=Collection)
    cut: list[str] = field(default_factory=list)  # what was cut of the output


class _Heard(Output):
    """Output that is also told while it comes, and that can be stopped."""

    def __init__(self, tell: Callable[[str, str], None], stop: threading.Event):
        super().__init__(OUTPUT_BYTES)
        self._tell, self._stop = tell, stop

    def take(self, stream: str, text: str) -> None:
        super().take(stream, text)
        self._tell(stream, text)

    def beat(self) -> None:
        if self._stop.is_set():
            raise Stopped


class GuestApi(Api):
    """And the requests that only the component needs."""

    last_refusal = 0  # the status of the last answer that was a failure

    def _failure(self, answer: httpx.Response) -> SandboxExecutionError:
        self.last_refusal = answer.status_code
        return super()._failure(answer)

    def find_or_create(self, name: str, body: dict) -> dict:
        """Asked again as long as the server is busy: the name makes it one machine."""
        deadline = time.monotonic() + CREATE_SECONDS
        while True:
            try:
                answer = self._http.put(f"/v1/sandboxes/by-name/{name}", json=body)
            except httpx.HTTPError as why:
                raise SandboxUnavailableError(self._unreachable(why)) from None
            if answer.status_code == 409 and self._is_other(answer):
                raise SandboxUnavailableError(
                    f"the machine {name} that this node used before is not as the node asks, since it was changed from outside: "
                    f"{self._told(answer)}. Nothing has run; delete that machine, or switch Guest Reuse off")
            if answer.status_code not in (409, 429, 503) or time.monotonic() > deadline:
                return self._data(answer)
            wait = answer.headers.get("Retry-After", "1")
            time.sleep(min(float(wait) if wait.isdecimal() else 1.0, max(0.1, deadline - time.monotonic())))

    @staticmethod
    def _is_other(answer: httpx.Response) -> bool:
        return answer.headers.get("X-Error-Code", "control.differs") == "control.differs"

    def list_folder(self, sandbox: str, path: str, limit: int) -> dict:
        return self._data(self._http.get(f"/v1/sandboxes/{sandbox}/files/list", params={"path": path, "limit": limit},
                                         timeout=httpx.Timeout(FILE_SECONDS, connect=CONNECT_SECONDS)))

    def read_file(self, sandbox: str, path: str, into: bytearray, most: int, deadline: float) -> bool:
        """False when there were more than `most` bytes, or no time was left; what was read until then is in `into`."""
        with self._http.stream("GET", f"/v1/sandboxes/{sandbox}/files", params={"path": path},
                               headers={"Accept-Encoding": "identity"},
                               timeout=httpx.Timeout(FILE_SECONDS, connect=CONNECT_SECONDS)) as answer:
            if answer.status_code != 200:
                answer.read()
                raise self._failure(answer)
            for piece in answer.iter_raw():
                if len(into) + len(piece) > most or time.monotonic() > deadline:
                    return False
                into += piece
        return True

    def remove_folder(self, sandbox: str, path: str) -> None:
        self._data(self._http.delete(f"/v1/sandboxes/{sandbox}/files", params={"path": path, "recursive": "true"},
                                     timeout=httpx.Timeout(FILE_SECONDS, connect=CONNECT_SECONDS)))


def rules_of(network: str, domains: str, driver: Driver) -> list[str]:
    """The policy as the server takes it. Refuses what the driver does not keep."""
    if network == "off":
        if not driver.deny_all:
            raise SandboxUnavailableError(f"the driver {driver.name} cannot deny all, and Network is off")
        return DENY_ALL
    if network == "open":
        if not driver.addresses:
            raise SandboxUnavailableError(f"the driver {driver.name} has no network; set Network to off")
        return OPEN
    if network != "domains":
        raise SandboxUnavailableError(f"Network is {network[:40]!r}; it must be one of {', '.join(NETWORKS)}")
    names = sorted(set(re.split(r"[\s,]+", domains.strip()))) if domains.strip(" ,\t\n") else []
    names = [name for name in names if name]
    if not names:
        raise SandboxUnavailableError("Network is domains, and Domains names none, such as api.example.com, *.example.com")
    if "*" in names:
        raise SandboxUnavailableError("Domains has *, which is everything; set Network to open if that is meant")
    if not driver.host_names:
        raise SandboxUnavailableError(f"the driver {driver.name} does not enforce rules by name; set Network to off or open, "
                                      "or give the server a driver that does")
    return names


def machine_name(reuse_for: tuple[str, str], body: dict) -> str:
    """Of the machine that a node uses again: another for each policy, shape, image and driver."""
    parts = [*reuse_for, sorted(body["egress"]), body["shape"], body["rootfs"], body["driver"]]
    return "lf-c-" + hashlib.blake2s(json.dumps(parts).encode(), digest_size=9).hexdigest()[:17]


class Run:
    """Used once. `tell(stream, text)` is called from this thread while the program runs; stop() from any."""

    def __init__(self, request: Request, tell: Callable[[str, str], None] = lambda stream, text: None):
        self._request, self._tell = request, tell
        self._stop = threading.Event()
        self._token = secrets.token_hex(16)
        self._folder = f"/workspace/runs/{self._token[:12]}"

    def stop(self) -> None:
        """Ends the program within 5 s, of which execute() then raises Stopped."""
        self._stop.set()

    def execute(self) -> Outcome:
        """Raises SandboxUnavailableError (nothing has run) or SandboxExecutionError."""
        limits = Limits.read()
        server = read_server()
        api = GuestApi(server)
        try:
            return self._execute(api, server, limits)
        finally:
            api.close()

    def _body(self, api: GuestApi, server: Server) -> dict:
        request = self._request
        driver = read_driver(api.get("/v1/capabilities", CAPABILITIES_SECONDS), server.driver)
        rules = rules_of(request.network, request.domains, driver)
        try:
            shapes = [{"id": str(one["id"]), "vcpu": int(one["vcpu"]), "mem_mib": int(one["mem_mib"])}
                      for one in api.get("/v1/shapes?limit=500", CAPABILITIES_SECONDS)["data"]]
        except (KeyError, TypeError, ValueError):
            raise SandboxUnavailableError("the server's answer to GET /v1/shapes is not understood; its version and "
                                          "caisson-langflow's do not fit") from None
        shape = choose_shape(shapes, request.shape or server.shape, needed_mib(server.rootfs),
                             "Shape" if request.shape else "CAISSON_SANDBOX_SHAPE")
        life = request.timeout_seconds + GRACE_SECONDS + REAP_SECONDS
        body = {"shape": shape, "rootfs": server.rootfs, "driver": driver.name, "egress": rules, "ingress_enabled": False,
                "delete_after_seconds": life, "labels": {"created-by": "caisson-langflow"}}
        if request.reuse_for:
            flow, node = request.reuse_for
            body["labels"] |= {"langflow-flow": flow[:63], "langflow-node": node[:63]}
            body["delete_after_seconds"] = max(life, read_number("CAISSON_COMPONENT_KEEP_SECONDS", KEEP_SECONDS, 60, 90 * 86400))
            body["auto_pause_after_seconds"] = AUTO_PAUSE_SECONDS
        return body

    def _machine(self, api: GuestApi, body: dict) -> tuple[str, bool]:
        if self._request.reuse_for:
            made = api.find_or_create(machine_name(self._request.reuse_for, body), body)
        else:
            made = api.create(body | {"name": "lf-c-" + self._token[:17]}, self._token)
        sandbox = made.get("id") if isinstance(made, dict) else None
        if not isinstance(sandbox, str) or not sandbox:
            raise SandboxExecutionError("the server made a machine and did not say which; its version and caisson-langflow's do "
                                        "not fit")
        is_as_asked = sorted(made.get("egress") or OPEN) == sorted(body["egress"]) and made.get("driver") == body["driver"]
        if not is_as_asked:
            if not self._request.reuse_for:
                self._delete(api, sandbox)
            raise SandboxUnavailableError(f"the machine {sandbox} has another network policy or driver than was asked for; "
                                          "nothing has run")
        return sandbox, bool(self._request.reuse_for) and made.get("created") is False

    def _execute(self, api: GuestApi, server: Server, limits: Limits) -> Outcome:
        body = self._body(api, server)
        sandbox, reused = self._machine(api, body)
        try:
            try:
                return self._in_machine(api, server, sandbox, reused, limits)
            except SandboxUnavailableError:
                # A machine whose time ended, or that was paused, between the two requests: nothing has run yet.
                if not self._request.reuse_for or api.last_refusal not in (404, 409):
                    raise
            sandbox, reused = self._machine(api, body)
            return self._in_machine(api, server, sandbox, reused, limits)
        finally:
            if not self._request.reuse_for:
                self._delete(api, sandbox)

    def _in_machine(self, api: GuestApi, server: Server, sandbox: str, reused: bool, limits: Limits) -> Outcome:
        request, output = self._request, _Heard(self._tell, self._stop)
        no_python, no_room = f"no-python-{self._token}", f"no-room-{self._token}"
        words = ["-c", START, self._folder, no_python, no_room, "sh" if request.is_command else "python3"]
        ending = api.execute(sandbox, {"cmd": "/bin/sh", "args": words, "stdin": request.program,
                                       "timeout_seconds": request.timeout_seconds}, output,
                             request.timeout_seconds + GRACE_SECONDS)
        stderr = output.text("stderr")
        if ending.failed_to_start or (ending.exit_code == 127 and stderr.strip() == no_python):
            raise SandboxUnavailableError(f"the image {server.rootfs} has no {'shell' if request.is_command else 'python3'}; set "
                                          "CAISSON_SANDBOX_ROOTFS to one that has, such as devbox:1")
        if ending.exit_code == 125 and no_room in stderr:
            raise SandboxExecutionError(f"the program could not be written into the machine {sandbox}: "
                                        f"{stderr.replace(no_room, '').strip()[:300]}; when its disk is full, delete the machine")
        outcome = Outcome(sandbox, reused, ending, output.text("stdout"), stderr)
        outcome.cut = [f"{stream} was cut after {output.most} bytes, and {count} more were dropped"
                       for stream, count in output.dropped.items() if count]
        if request.with_files and not self._stop.is_set():
            outcome.collection = collect(api, sandbox, self._folder + "/artifacts", limits)
        if request.reuse_for:
            self._tidy(api, sandbox)
        return outcome

    def _tidy(self, api: GuestApi, sandbox: str) -> None:
        try:
            api.remove_folder(sandbox, self._folder)
        except (SandboxExecutionError, httpx.HTTPError) as why:
            log.warning("the folder %s stays in the machine %s (%s)", self._folder, sandbox, str(why)[:200])

    def _delete(self, api: GuestApi, sandbox: str) -> None:
        try:
            api.delete(sandbox)
        except Exception as why:  # noqa: BLE001: the result is worth more, and the server deletes it in time
            log.warning("the machine %s could not be deleted (%s); the server does it in its time", sandbox, type(why).__name__)
