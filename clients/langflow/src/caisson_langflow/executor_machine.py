# SPDX-License-Identifier: Apache-2.0
"""One machine with one process in it that waits for a flow: taken from a pool of the server, or made.

Everything is asynchronous, belongs to one run and to the loop that it was made on. Errors are those of lfx's sandboxes, as in
server.py: SandboxUnavailableError when nothing has run.
"""

import asyncio
import base64
import contextlib
import functools
import hashlib
import json
import logging
import secrets
import ssl
import time
from dataclasses import dataclass
from importlib import resources

import httpx
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

from .machines import OPEN, Driver
from .server import ADVICE, CONNECT_SECONDS, CONTROL_SECONDS, LOOPBACK, pause_before_retry
from .settings import Server

READY, WITHOUT_LFX = b"caisson-lfx-ready", b"caisson-lfx-missing"
CREDIT = 128 << 10  # as in inside/runner.py
INPUT_BYTES = 96 << 10  # of one request
QUIET_SECONDS = 30  # a connected process says something every 5 s
MAKE_SECONDS = 120  # while the server says that it prepares the machine, or is busy
START_SECONDS, EMULATED_START_SECONDS = 180, 1200  # until lfx is imported
PIP_SECONDS = 1800
REAP_SECONDS = 120
POOL_IDLE_SECONDS = 900

log = logging.getLogger("caisson_langflow")


@functools.cache
def runner() -> str:
    folder = resources.files(__package__).joinpath("inside")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("codec.py", "runner.py"))


@functools.cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


@dataclass(frozen=True)
class Kind:
    """What a machine is made of."""

    rootfs: str
    shape: str
    driver: Driver
    rules: tuple[str, ...]

    @property
    def body(self) -> dict:
        return {"shape": self.shape, "rootfs": self.rootfs, "driver": self.driver.name, "egress": list(self.rules),
                "ingress_enabled": False}

    @property
    def start_seconds(self) -> int:
        return EMULATED_START_SECONDS if self.driver.emulated else START_SECONDS

    def pool(self, size: int) -> tuple[str, dict]:
        body = {"sandbox": self.body, "size": size, "idle_seconds": POOL_IDLE_SECONDS,
                "warm": {"command": "python3", "args": ["-c", runner(), "warm"], "ready": READY.decode(),
                         "timeout_seconds": min(600, self.start_seconds)}}
        return "lfx-" + hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16], body


@dataclass(frozen=True)
class Ending:
    exit_code: int | None
    signal: str


# Pools that this process has asked for, so that a run asks once: {(server, name): when}.
_pools: dict[tuple[str, str], float] = {}
_without_pools: dict[str, float] = {}
POOL_MEMORY_SECONDS = 300


class Machine:
    def __init__(self, server: Server):
        self._server = server
        is_plain = server.base_url.startswith("http://")
        self._http = httpx.AsyncClient(
            base_url=server.base_url, headers={"X-Api-Key": server.api_key, "User-Agent": "caisson-langflow"},
            timeout=httpx.Timeout(CONTROL_SECONDS, connect=CONNECT_SECONDS), verify=not is_plain and _trust(),
            trust_env=httpx.URL(server.base_url).host not in LOOPBACK)
        self._making: asyncio.Task | None = None
        self._process = ""
        self.sandbox = ""
        self.was_ready = False

    # What answers mean.

    def _told(self, answer: httpx.Response) -> str:
        try:
            body = answer.json()
            said = body.get("message") or body.get("data")
            if isinstance(said, dict):
                said = "; ".join(f"{key}: {text}" for key, text in said.items() if key != "code")
        except (ValueError, AttributeError):
            said = answer.text
        advice = ADVICE.get(answer.status_code)
        text = f"the Caisson server answered {answer.status_code}: {str(said)[:500]}" + (f" ({advice})" if advice else "")
        return text.replace(self._server.api_key, "***")

    def _data(self, answer: httpx.Response):
        if answer.status_code != 200:
            is_refusal = answer.status_code < 500 and answer.status_code != 429 or answer.status_code == 501
            raise (SandboxUnavailableError if is_refusal else SandboxExecutionError)(self._told(answer))
        try:
            return answer.json()["data"]
        except (ValueError, KeyError, TypeError):
            raise SandboxExecutionError(f"what answers at {self._server.base_url} is no Caisson server; check "
                                        "CAISSON_SANDBOX_BASE_URL") from None

    def _unreachable(self, why: Exception) -> str:
        return (f"the Caisson server at {self._server.base_url} cannot be reached ({type(why).__name__}); check that it runs "
                "and CAISSON_SANDBOX_BASE_URL").replace(self._server.api_key, "***")

    async def get(self, path: str):
        try:
            answer = await self._http.get(path)
        except httpx.HTTPError as why:
            raise SandboxUnavailableError(self._unreachable(why)) from None
        try:
            return self._data(answer)
        except SandboxExecutionError as why:  # nothing has run
            raise SandboxUnavailableError(str(why)) from None

    async def _ask(self, path: str, body: dict, seconds: float = CONTROL_SECONDS) -> httpx.Response:
        try:
            return await self._http.post(f"/v1/sandboxes/{self.sandbox}{path}", json=body, timeout=seconds)
        except httpx.HTTPError as why:
            raise SandboxExecutionError(self._unreachable(why)) from None

    async def _post(self, path: str, body: dict, seconds: float = CONTROL_SECONDS):
        return self._data(await self._ask(path, body, seconds))

    # Making it.

    async def make(self, kind: Kind, pool: int, life: int, packages: tuple[str, ...], indexes: tuple[str, ...]) -> None:
        """Until it stands and the runner is in it. What was made is deleted by close(), whoever stops waiting."""
        self._making = asyncio.ensure_future(self._make(kind, 0 if packages else pool, life, packages, indexes))
        await asyncio.shield(self._making)

    async def _make(self, kind: Kind, pool: int, life: int, packages: tuple[str, ...], indexes: tuple[str, ...]) -> None:
        token = secrets.token_hex(16)
        extra = {"labels": {"created-by": "caisson-langflow", "kind": "executor"},
                 "delete_after_seconds": min(life + kind.start_seconds + REAP_SECONDS, 2592000)}
        made = await self._take(kind, pool, extra, token) if pool else None
        if made is None:
            body = kind.body | extra | {"name": "lf-x-" + token[:17]}
            if packages and "*" not in kind.rules:
                if not indexes:
                    raise SandboxUnavailableError("packages are to be installed in machines, and nothing says from where; name the "
                                                  "hosts of the package index in CAISSON_EXECUTOR_INDEX_HOSTS")
                body["egress"] = [rule for rule in kind.rules if rule != "240.0.0.0/4"] + list(indexes)
            made = await self._create(body, token)
        self.sandbox = str(made["id"])
        self._check(made, kind, packages)
        self._process = str(made.get("warm_process") or "")
        self.was_ready = bool((made.get("pool") or {}).get("ready"))
        if packages:
            await self._install(packages, kind)
        if not self._process:
            started = await self._post("/processes", {"cmd": "python3", "args": ["-c", runner()]})
            self._process = str(started["process_id"])

    async def _take(self, kind: Kind, size: int, extra: dict, token: str) -> dict | None:
        """None where the server keeps no pool for us: then the machine is made in the ordinary way."""
        url, now = self._server.base_url, time.monotonic()
        if now - _without_pools.get(url, -POOL_MEMORY_SECONDS) < POOL_MEMORY_SECONDS:
            return None
        name, body = kind.pool(size)
        try:
            if now - _pools.get((url, name), -POOL_MEMORY_SECONDS) >= POOL_MEMORY_SECONDS:
                answer = await self._http.put(f"/v1/pools/{name}", json=body)
                if answer.status_code not in (200, 201):
                    if answer.status_code in (404, 405, 501):
                        _without_pools[url] = now
                    log.warning("no machines are kept ready: %s", self._told(answer))
                    return None
                _pools[url, name] = now
            # Another name than that of a machine that is made after it, since the row of a failed one may stand.
            return await self._create(extra | {"pool": name, "name": "lf-x-" + token[-17:]}, token)
        except SandboxUnavailableError as why:
            _pools.pop((url, name), None)
            log.warning("no machine was taken from the pool %s: %s", name, why)
            return None
        except httpx.HTTPError as why:
            raise SandboxUnavailableError(self._unreachable(why)) from None

    async def _create(self, body: dict, key: str) -> dict:
        """The same key again never makes a second machine, so that what is lost on the way is asked for again."""
        deadline, lost = time.monotonic() + MAKE_SECONDS, False
        # A machine of another form is another request.
        headers = {"Idempotency-Key": key + ("p" if "pool" in body else "")}
        while True:
            try:
                answer = await self._http.post("/v1/sandboxes", json=body, headers=headers, timeout=EMULATED_START_SECONDS)
            except httpx.ConnectError as why:
                raise SandboxUnavailableError(self._unreachable(why)) from None
            except httpx.HTTPError as why:
                if lost or time.monotonic() > deadline:
                    raise SandboxExecutionError(self._unreachable(why)) from None
                lost = True
                continue
            if answer.status_code not in (429, 503) or time.monotonic() > deadline:
                return self._data(answer)
            await asyncio.sleep(pause_before_retry(answer, deadline))

    @staticmethod
    def _check(made: dict, kind: Kind, packages: tuple[str, ...]) -> None:
        """What was made is what was asked for, in all that keeps the flow in."""
        if made.get("driver") != kind.driver.name or made.get("isolation") != kind.driver.isolation:
            raise SandboxUnavailableError("the server has made a machine of another isolation than was asked for")
        if not packages and sorted(made.get("egress") or OPEN) != sorted(kind.rules):
            raise SandboxUnavailableError("the server has made a machine with another network policy than was asked for")

    async def _install(self, packages: tuple[str, ...], kind: Kind) -> None:
        told = await self._post("/exec", {"cmd": "python3", "args": ["-m", "pip", "install", "--quiet", "--no-input", *packages],
                                          "timeout_seconds": PIP_SECONDS}, PIP_SECONDS + QUIET_SECONDS)
        result = told.get("result") or {}
        if result.get("exit_code") != 0:
            said = (result.get("stderr") or result.get("stdout") or "").strip()[-1000:]
            raise SandboxUnavailableError(f"CAISSON_EXECUTOR_PIP or _INSTALL_LFX could not be installed in the guest: {said}")
        try:
            now = self._data(await self._http.put(f"/v1/sandboxes/{self.sandbox}/egress", json={"egress": list(kind.rules)}))
        except httpx.HTTPError as why:
            raise SandboxUnavailableError(self._unreachable(why)) from None
        if sorted(now.get("egress") or OPEN) != sorted(kind.rules):
            raise SandboxUnavailableError("the server did not take the network policy that holds after packages are installed")

    # What passes between it and us.

    async def send(self, data: bytes) -> None:
        """What a process has ended before it could take is lost, and output() says how it has ended."""
        for at in range(0, len(data), INPUT_BYTES):
            piece = base64.b64encode(data[at:at + INPUT_BYTES]).decode()
            answer = await self._ask(f"/processes/{self._process}/input", {"data_base64": piece})
            if answer.status_code == 409:
                return
            if answer.status_code != 200:
                raise SandboxExecutionError(self._told(answer))  # the flow may have begun

    async def output(self):
        """('stdout' or 'stderr', bytes) as they come, None with each sign of life, an Ending at the end."""
        lost = "the Caisson server or the machine ended in mid-run, and how the flow ended is not known; run it again"
        try:
            async with self._http.stream("GET", f"/v1/sandboxes/{self.sandbox}/processes/{self._process}/connect",
                                         timeout=httpx.Timeout(QUIET_SECONDS, connect=CONNECT_SECONDS)) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self._data(answer)
                async for line in answer.aiter_lines():
                    told = json.loads(line)
                    if told["type"] == "data":
                        yield told.get("stream", "stdout"), base64.b64decode(told["data_base64"])
                    elif told["type"] == "exit":
                        yield Ending(told.get("exit_code"), str(told.get("signal") or ""))
                        return
                    elif told["type"] == "error":
                        raise SandboxExecutionError(f"{lost} ({str(told.get('error'))[:500]})")
                    else:
                        yield None
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as why:
            raise SandboxExecutionError(f"{lost} ({type(why).__name__})") from None
        raise SandboxExecutionError(lost)

    # Its end.

    async def close(self) -> None:
        """Deletes it, also one that is still being made. Goes on when who waits is cancelled."""
        await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        if self._making is not None:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await self._making
        if self.sandbox:
            try:
                self._data(await self._http.delete(f"/v1/sandboxes/{self.sandbox}"))
            except Exception as why:  # noqa: BLE001: the result is worth more, and the server deletes it in time
                log.warning("the machine %s could not be deleted (%s); the server does it in time", self.sandbox, type(why).__name__)
        await self._http.aclose()
