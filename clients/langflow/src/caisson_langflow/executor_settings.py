# SPDX-License-Identifier: Apache-2.0
"""What the operator has set for the executor: our variables, and those of the CreateOS plugin where ours are not set."""

import os
import shlex
from dataclasses import dataclass

from lfx.utils.sandbox.base import SandboxUnavailableError

from .machines import DENY_ALL, OPEN
from .settings import TRUE, is_number

DEFAULT_ROOTFS = "langflow:1"
DEFAULT_SECONDS, MOST_SECONDS = 600, 86000


@dataclass(frozen=True)
class ExecutorSettings:
    rootfs: str
    shape: str  # empty: the smallest that is large enough
    timeout_seconds: int
    egress: tuple[str, ...] | None  # None: by the table of model providers
    variables: tuple[str, ...]  # names of what may leave this process
    pool: int  # machines that the server keeps ready; 0: none
    install_lfx: str  # a version of lfx that is installed in each machine; empty: none is
    packages: tuple[str, ...]  # installed in each machine
    index_hosts: tuple[str, ...]  # where those come from; open until the flow begins

    @property
    def least_mib(self) -> int:
        return 2048 if self.rootfs == DEFAULT_ROOTFS else 4096


def _set(name: str) -> str:
    for prefix in ("CAISSON", "CREATEOS"):
        if (value := os.environ.get(f"{prefix}_EXECUTOR_{name}", "").strip()):
            return value
    return ""


def _number(name: str, standard: int, least: int, most: int) -> int:
    text = _set(name)
    if not text:
        return standard
    if not is_number(text, least, most):
        raise SandboxUnavailableError(f"CAISSON_EXECUTOR_{name} must be a whole number from {least} to {most}")
    return int(text)


def _list(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _egress() -> tuple[str, ...] | None:
    text = _set("EGRESS")
    if not text:
        return None
    rules = _list(text)
    if "*" in rules:
        return tuple(OPEN)
    return tuple(DENY_ALL) if rules in ((), ("none",)) else rules


def _packages() -> tuple[str, ...]:
    try:
        return tuple(shlex.split(_set("PIP")))
    except ValueError as why:
        raise SandboxUnavailableError(f"CAISSON_EXECUTOR_PIP cannot be split into words as a shell does it: {why}") from None


def _lfx_version() -> str:
    if _set("INSTALL_LFX").lower() not in TRUE:
        return ""
    from importlib.metadata import version
    return _set("LFX_VERSION") or version("lfx")


def read_executor_settings() -> ExecutorSettings:
    """Raises SandboxUnavailableError with the variable's name when one is wrong."""
    return ExecutorSettings(
        _set("ROOTFS") or DEFAULT_ROOTFS, _set("SHAPE"), _number("TIMEOUT_SECONDS", DEFAULT_SECONDS, 1, MOST_SECONDS), _egress(),
        _list(_set("VARIABLES")), _number("POOL", 1, 0, 64), _lfx_version(), _packages(),
        _list(_set("INDEX_HOSTS")))
