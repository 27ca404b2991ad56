# SPDX-License-Identifier: Apache-2.0
"""What the operator has set: our variables, Langflow's own, and as a fallback those of the CreateOS plugin."""

import functools
import logging
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from lfx.utils.sandbox.base import SandboxUnavailableError

DEFAULT_BASE_URL = "http://127.0.0.1:8787"
DEFAULT_ROOTFS = "devbox:1"
IGNORED = "LANGFLOW_SANDBOX_CREATEOS_ACCEPT_EGRESS_EXCEPTIONS"

# The first that is set and not empty wins.
NAMES = {
    "base_url": ("CAISSON_SANDBOX_BASE_URL", "CREATEOS_SANDBOX_BASE_URL"),
    "api_key": ("CAISSON_SANDBOX_API_KEY", "CREATEOS_SANDBOX_API_KEY", "CREATEOS_API_KEY"),
    "rootfs": ("CAISSON_SANDBOX_ROOTFS", "CREATEOS_SANDBOX_ROOTFS"),
    "shape": ("CAISSON_SANDBOX_SHAPE", "CREATEOS_SANDBOX_SHAPE"),
    "driver": ("CAISSON_SANDBOX_DRIVER",),
}
TRUE = {"1", "true", "yes", "on", "y", "t"}

log = logging.getLogger("caisson_langflow")


@dataclass(frozen=True)
class Server:
    """Where machines come from. `api_key` is in no message and no repr."""

    base_url: str
    api_key: str
    rootfs: str
    shape: str  # empty: the smallest that is large enough
    driver: str  # empty: the server's default

    def __repr__(self):
        return f"Server({self.base_url!r})"


@dataclass(frozen=True)
class Policy:
    """What Langflow's settings ask of one run."""

    timeout_seconds: int = 30
    memory_mib: int = 192
    allow_network: bool = False
    allowed_domains: tuple[str, ...] = ()
    allow_emulation: bool = False


def _set(name: str) -> str:
    for variable in NAMES[name]:
        if value := os.environ.get(variable, "").strip():
            return value
    return ""


@functools.cache
def _tell_ignored() -> None:
    log.warning("%s is ignored: a Caisson server makes no exception from its network policies", IGNORED)


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018: raises where it is no number of a port
    except ValueError:
        return False
    return bool(parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment and
                "@" not in parts.netloc)


def read_server() -> Server:
    """Raises SandboxUnavailableError with the variable's name when one is missing or wrong."""
    url = (_set("base_url") or DEFAULT_BASE_URL).rstrip("/")
    if not _is_base_url(url):
        raise SandboxUnavailableError("CAISSON_SANDBOX_BASE_URL must be an http or https address without user, query or "
                                      "fragment, such as https://caisson.example.com")
    key = _set("api_key")
    if not key:
        raise SandboxUnavailableError("CAISSON_SANDBOX_API_KEY is not set; make a key with `caisson keys create` on the server")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SandboxUnavailableError("CAISSON_SANDBOX_API_KEY has characters that no key has; copy it again")
    if os.environ.get(IGNORED):
        _tell_ignored()
    return Server(url, key, _set("rootfs") or DEFAULT_ROOTFS, _set("shape"), _set("driver"))


def is_number(text: str, least: int, most: int) -> bool:
    return text.isdecimal() and len(text) < 20 and least <= int(text) <= most


def read_number(name: str, standard: int, least: int, most: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return standard
    if not is_number(text, least, most):
        raise SandboxUnavailableError(f"{name} must be a whole number from {least} to {most}")
    return int(text)


def _from_environment() -> Policy:
    def switch(name: str) -> bool:
        return os.environ.get(name, "").strip().lower() in TRUE

    domains = os.environ.get("LANGFLOW_SANDBOX_ALLOWED_DOMAINS", "").split(",")
    return Policy(read_number("LANGFLOW_SANDBOX_TIMEOUT_SECONDS", 30, 1, 300),
                  read_number("LANGFLOW_SANDBOX_MEMORY_MB", 192, 128, 1 << 22),
                  switch("LANGFLOW_SANDBOX_ALLOW_NETWORK"), tuple(one.strip() for one in domains if one.strip()),
                  switch("LANGFLOW_SANDBOX_ALLOW_SOFTWARE_EMULATION"))


def read_policy() -> Policy:
    """Langflow's settings, or its variables where there is no settings service."""
    try:
        from lfx.services.deps import get_settings_service
        service = get_settings_service()
    except Exception:  # noqa: BLE001: settings that cannot be built leave the variables
        service = None
    if service is None:
        return _from_environment()
    of = service.settings
    return Policy(int(of.sandbox_timeout_seconds), int(of.sandbox_memory_mb), bool(of.sandbox_allow_network),
                  tuple(of.sandbox_allowed_domains or ()), bool(of.sandbox_allow_software_emulation))
