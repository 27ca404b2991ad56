# SPDX-License-Identifier: Apache-2.0
"""The few requests to a Caisson server that are needed here, and what their failures mean to lfx.

What is wrong with the request, the key or the policy is SandboxUnavailableError: nothing has run. What goes wrong with
the machine or the server later is SandboxExecutionError. Both say what to do.
"""

import json
import logging
import time
from dataclasses import dataclass, field

import httpx
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

from .settings import Server

CONNECT_SECONDS = 10
CONTROL_SECONDS = 60
QUIET_SECONDS = 30  # a running command's stream says something every 5 s
CREATE_SECONDS = 60  # while the server says that it prepares the machine, or is busy
LOOPBACK = ("localhost", "127.0.0.1", "::1")

log = logging.getLogger("caisson_langflow")

ADVICE = {
    401: "check CAISSON_SANDBOX_API_KEY",
    403: "the key may not do this, or its quota is used up; ask the server's operator",
    404: "check CAISSON_SANDBOX_BASE_URL and the server's version",
    429: "the server is busy; try again, or raise its limits",
    503: "the server has no room now; try again, or give it more",
}


@dataclass
class Output:
    """Of one command: at most `most` bytes of each stream are kept, while it runs and not after."""

    most: int
    kept: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    dropped: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})

    def take(self, stream: str, text: str) -> None:
        piece = text.encode()
        room = self.most - len(self.kept[stream])
        self.kept[stream] += piece[:room]
        self.dropped[stream] += max(0, len(piece) - room)

    def beat(self) -> None:
        """Called for each frame, of which there is one every 5 s at least; what it raises ends the run."""

    def text(self, stream: str) -> str:
        return self.kept[stream].decode(errors="ignore" if self.dropped[stream] else "replace")


@dataclass(frozen=True)
class Ending:
    exit_code: int
    timed_out: bool
    failed_to_start: bool


def pause_before_retry(answer: httpx.Response, deadline: float) -> float:
    """Seconds to wait after an answer that says to come again, not beyond the deadline by time.monotonic()."""
    wait = answer.headers.get("Retry-After", "1")
    return min(float(wait) if wait.isdecimal() else 1.0, max(0.1, deadline - time.monotonic()))


class Api:
    """Thread-safe. After a fork, a new one is needed."""

    def __init__(self, server: Server):
        self._server = server
        host = httpx.URL(server.base_url).host
        self._http = httpx.Client(
            base_url=server.base_url, headers={"X-Api-Key": server.api_key, "User-Agent": "caisson-langflow"},
            timeout=httpx.Timeout(CONTROL_SECONDS, connect=CONNECT_SECONDS), trust_env=host not in LOOPBACK,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16))

    def close(self) -> None:
        self._http.close()

    def _told(self, answer: httpx.Response) -> str:
        try:
            body = answer.json()
            said = body.get("message") or body.get("data")
            if isinstance(said, dict):
                said = "; ".join(f"{key}: {text}" for key, text in said.items() if key != "code")
            said = str(said)
        except (ValueError, AttributeError):
            said = answer.text
        advice = ADVICE.get(answer.status_code)
        text = f"the Caisson server answered {answer.status_code}: {said[:500]}" + (f" ({advice})" if advice else "")
        return text.replace(self._server.api_key, "***")

    def _failure(self, answer: httpx.Response) -> SandboxExecutionError:
        is_refusal = answer.status_code < 500 and answer.status_code != 429 or answer.status_code == 501
        return (SandboxUnavailableError if is_refusal else SandboxExecutionError)(self._told(answer))

    def _unreachable(self, why: Exception) -> str:
        return (f"the Caisson server at {self._server.base_url} cannot be reached ({type(why).__name__}); check that it runs "
                "and CAISSON_SANDBOX_BASE_URL").replace(self._server.api_key, "***")

    def _data(self, answer: httpx.Response):
        if answer.status_code != 200:
            raise self._failure(answer)
        try:
            return answer.json()["data"]
        except (ValueError, KeyError, TypeError):
            raise SandboxExecutionError(f"what answers at {self._server.base_url} is no Caisson server; check "
                                        "CAISSON_SANDBOX_BASE_URL") from None

    def get(self, path: str, seconds: float):
        """Before anything is made: a server that does not answer is Unavailable."""
        try:
            answer = self._http.get(path, timeout=httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)))
        except httpx.HTTPError as why:
            raise SandboxUnavailableError(self._unreachable(why)) from None
        if answer.status_code >= 500 or answer.status_code == 429:
            raise SandboxUnavailableError(self._told(answer))
        try:
            return self._data(answer)
        except SandboxExecutionError as why:
            raise SandboxUnavailableError(str(why)) from None

    def define_pool(self, name: str, body: dict) -> bool:
        """False when the server has no pools, or refuses this one: then machines are made when they are needed."""
        try:
            answer = self._http.put(f"/v1/pools/{name}", json=body)
        except httpx.HTTPError as why:
            raise SandboxUnavailableError(self._unreachable(why)) from None
        if answer.status_code == 401:
            raise self._failure(answer)
        if answer.status_code != 200:
            log.info("no machines are kept ready: %s", self._told(answer))
        return answer.status_code == 200

    def create(self, body: dict, key: str, unless: tuple[str, ...] = ()) -> dict | str:
        """The same `key` again never makes a second machine, so that what is lost on the way is asked for again. A failure of the
        codes `unless` is what is returned."""
        deadline = time.monotonic() + CREATE_SECONDS
        lost = None
        while True:
            try:
                answer = self._http.post("/v1/sandboxes", json=body, headers={"Idempotency-Key": key})
            except httpx.ConnectError as why:
                raise SandboxUnavailableError(self._unreachable(why)) from None
            except httpx.HTTPError as why:
                if lost or time.monotonic() > deadline:
                    raise SandboxExecutionError(self._unreachable(why)) from None
                lost = why
                continue
            if answer.status_code not in (429, 503) or time.monotonic() > deadline:
                code = answer.headers.get("X-Error-Code", "")
                return code if code in unless else self._data(answer)
            time.sleep(pause_before_retry(answer, deadline))

    def delete(self, sandbox: str) -> None:
        self._data(self._http.delete(f"/v1/sandboxes/{sandbox}"))

    def execute(self, sandbox: str, body: dict, output: Output, seconds: float) -> Ending:
        """Runs a command in the machine; `seconds` is when to stop listening, beyond the command's own limit."""
        deadline = time.monotonic() + seconds
        gone = "the Caisson server or the machine ended in mid-run, and how the program ended is not known; run it again"
        try:
            with self._http.stream("POST", f"/v1/sandboxes/{sandbox}/exec", params={"stream": "true"}, json=body,
                                   timeout=httpx.Timeout(QUIET_SECONDS, connect=CONNECT_SECONDS)) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise self._failure(answer)
                for line in answer.iter_lines():
                    frame = json.loads(line)
                    output.beat()
                    for stream in ("stdout", "stderr"):
                        if stream in frame:
                            output.take(stream, frame[stream])
                    if "exit_code" in frame:
                        code, has_error = frame["exit_code"], "error" in frame
                        return Ending(code, code == 124 and has_error, code in (126, 127) and has_error)
                    if "error" in frame:
                        raise SandboxExecutionError(f"{gone} ({frame['error'][:500]})")
                    if time.monotonic() > deadline:
                        raise SandboxExecutionError("the machine did not end the program in its time; it is deleted")
        except (httpx.HTTPError, ValueError) as why:
            raise SandboxExecutionError(f"{gone} ({type(why).__name__})") from None
        raise SandboxExecutionError(gone)
