# SPDX-License-Identifier: Apache-2.0
"""The sandbox backend `caisson`: each run is a machine of its own, which is deleted after it.

No program runs in the Langflow process, whatever fails.
"""

import logging
import secrets
import threading
import time
from dataclasses import dataclass

from lfx.utils.sandbox.base import Capabilities, SandboxExecutionError, SandboxResult, SandboxUnavailableError

from . import warm
from .machines import DENY_ALL, OPEN, VIRTUAL, choose_shape, needed_mib, read_driver
from .server import Api, Ending, Output
from .settings import Policy, Server, read_number, read_policy, read_server

CAPABILITIES_SECONDS = 10
OUTPUT_BYTES = 4 << 20  # of each stream
SERVER_SECONDS = 86400  # that the server lets one command run
GRACE_SECONDS = 30  # from the end of a run's time until nobody listens any more
REAP_SECONDS = 120  # after that, until the server deletes what nobody has deleted

# The program is a file, so that tracebacks show its lines; it reads nothing from us.
START = 'command -v python3 >/dev/null || { echo "$1" >&2; exit 127; }; cat >"$0" && exec python3 "$0" </dev/null'

LABELS = {"created-by": "caisson-langflow"}

log = logging.getLogger("caisson_langflow")


@dataclass(frozen=True)
class CaissonResult(SandboxResult):
    """`truncated`: more was written than is kept; stderr says how much."""

    truncated: bool = False


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class CaissonBackend:
    """A SandboxBackend of lfx. Made by make_backend(), which asks the server what it can do."""

    name = "caisson"

    def __init__(self, server: Server):
        self._server = server
        self._lock = threading.Lock()
        self._api: Api | None = None
        self._pools = warm.Pools(read_number("CAISSON_SANDBOX_POOL_SIZE", 2, 0, 100))
        self._abandoned: list[Api] = []  # of a parent process, whose connections they are
        try:
            api = self._connect()
            self._driver = read_driver(api.get("/v1/capabilities", CAPABILITIES_SECONDS), server.driver)
            shapes = api.get("/v1/shapes?limit=500", CAPABILITIES_SECONDS)
            self._shapes = [{"id": str(one["id"]), "vcpu": int(one["vcpu"]), "mem_mib": int(one["mem_mib"])}
                            for one in shapes["data"]]
        except (KeyError, TypeError, ValueError):
            self.shutdown()
            raise SandboxUnavailableError("the server's answer to GET /v1/shapes is not understood; its version and "
                                          "caisson-langflow's do not fit") from None
        except BaseException:
            self.shutdown()
            raise

    def _connect(self) -> Api:
        with self._lock:
            if self._api is None:
                self._api = Api(self._server)
            return self._api

    def capabilities(self) -> Capabilities:
        isolation = self._driver.isolation
        if isolation == VIRTUAL and self._driver.emulated and not read_policy().allow_emulation:
            isolation = "software-emulated"
        return Capabilities(isolation=isolation, supports_deny_all_egress=self._driver.deny_all,
                            supports_domain_allowlist=self._driver.host_names, max_timeout_seconds=SERVER_SECONDS)

    def _rules(self, policy: Policy) -> list[str]:
        if not policy.allow_network:
            if not self._driver.deny_all:
                raise SandboxUnavailableError(f"the driver {self._driver.name} cannot deny all, and "
                                              "LANGFLOW_SANDBOX_ALLOW_NETWORK is off")
            return DENY_ALL
        if not policy.allowed_domains:
            if not self._driver.addresses:
                raise SandboxUnavailableError(f"the driver {self._driver.name} has no network; switch "
                                              "LANGFLOW_SANDBOX_ALLOW_NETWORK off")
            return OPEN
        if not self._driver.host_names:
            raise SandboxUnavailableError(f"the driver {self._driver.name} does not enforce rules by name; empty "
                                          "LANGFLOW_SANDBOX_ALLOWED_DOMAINS, or give the server a driver that does")
        return list(policy.allowed_domains)

    def _check(self, made: dict, rules: list[str]) -> None:
        """What was made is what was asked for, in all that keeps the program in."""
        if made.get("driver") != self._driver.name or made.get("isolation") != self._driver.isolation or (
                made.get("emulated") is not self._driver.emulated):
            raise SandboxUnavailableError("the server has made a machine of another isolation than it said when Langflow "
                                          "started; restart Langflow")
        if sorted(made.get("egress") or OPEN) != sorted(rules):
            raise SandboxUnavailableError("the server has made a machine with another network policy than was asked for")

    def run(self, code: str, *, env: dict[str, str] | None = None) -> SandboxResult:
        if not _is_text(code):
            return CaissonResult("", "SyntaxError: the program has characters that are no text (surrogates)", 1)
        env = {str(name): str(value) for name, value in (env or {}).items()}
        if not all(map(_is_text, [*env, *env.values()])):
            raise SandboxUnavailableError("a variable for the program has characters that are no text (surrogates)")
        policy = read_policy()
        rules = self._rules(policy)
        shape = choose_shape(self._shapes, self._server.shape, max(policy.memory_mib, needed_mib(self._server.rootfs)))
        token = secrets.token_hex(16)
        life = policy.timeout_seconds + GRACE_SECONDS + REAP_SECONDS
        kind = {"shape": shape, "rootfs": self._server.rootfs, "driver": self._driver.name, "egress": rules,
                "ingress_enabled": False, "labels": LABELS}
        own = {"name": "lf-" + token[:19], "delete_after_seconds": life}
        begin = time.monotonic()
        made, is_warm = self._make(kind, own, code, env, token)
        api = self._connect()
        sandbox = made.get("id") if isinstance(made, dict) else None
        if not isinstance(sandbox, str) or not sandbox:
            raise SandboxExecutionError("the server made a machine and did not say which; its version and caisson-langflow's do "
                                        "not fit")
        try:
            self._check(made, rules)
            output = Output(OUTPUT_BYTES)
            missing, path = f"no-python-{token}", f"/tmp/main_{token[:12]}.py"
            command = (warm.command(code, env, path, policy.timeout_seconds) if is_warm else
                       {"cmd": "/bin/sh", "args": ["-c", START, path, missing], "stdin": code,
                        "timeout_seconds": policy.timeout_seconds})
            ending = api.execute(sandbox, command, output, policy.timeout_seconds + GRACE_SECONDS)
        finally:
            self._delete(api, sandbox, life)
        return self._result(output, ending, missing, begin)

    def _make(self, kind: dict, own: dict, code: str, env: dict[str, str], token: str) -> tuple[dict, bool]:
        """A machine, and whether an interpreter waits in it."""
        api = self._connect()
        if warm.fits(code, env):
            for _ in range(2):
                pool = self._pools.name_of(api, kind)
                if pool is None:
                    break
                made = api.create({"pool": pool} | own, token, unless=("control.not_found", "control.warm_failed"))
                if isinstance(made, dict):
                    return made, True
                if made == "control.warm_failed":
                    break  # an image without Python; the ordinary way says so
                self._pools.forget(pool)
        return api.create(kind | own | {"envs": env}, token + "-own"), False

    def _result(self, output: Output, ending: Ending, missing: str, begin: float) -> CaissonResult:
        stderr = output.text("stderr")
        if ending.failed_to_start or (ending.exit_code == 127 and stderr.strip() == missing):
            raise SandboxUnavailableError(f"the image {self._server.rootfs} has no python3; set CAISSON_SANDBOX_ROOTFS to one "
                                          "that has, such as devbox:1")
        notes = [f"[caisson: {stream} was cut after {output.most} bytes, and {count} more were dropped]"
                 for stream, count in output.dropped.items() if count]
        if notes:
            stderr = "\n".join([stderr, *notes]).lstrip("\n") + "\n"
        return CaissonResult(output.text("stdout"), stderr, -1 if ending.timed_out else ending.exit_code,
                             round((time.monotonic() - begin) * 1000), truncated=bool(notes))

    def _delete(self, api: Api, sandbox: str, life: int) -> None:
        try:
            api.delete(sandbox)
        except Exception as why:  # noqa: BLE001: the result is worth more, and the server deletes it in time
            log.warning("the machine %s could not be deleted (%s); the server does it within %s s", sandbox,
                        type(why).__name__, life)

    def shutdown(self) -> None:
        with self._lock:
            api, self._api = self._api, None
        if api is not None:
            api.close()

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pools.reset_after_fork()
        if self._api is not None:
            # Kept, so that nothing closes what the parent still uses.
            self._abandoned.append(self._api)
            self._api = None


def make_backend() -> CaissonBackend:
    """The factory of the entry point. Raises SandboxUnavailableError."""
    return CaissonBackend(read_server())
