# SPDX-License-Identifier: Apache-2.0
"""The files that a program has left in its artifact folder, read back within limits.

The guest decides what is there: names, sizes and kinds are untrusted, and so is what a file holds while it is read.
Only regular files are read; how many, how much and how long is decided here, and what was left out is told.
"""

import base64
import time
from dataclasses import dataclass, field

import httpx
from lfx.utils.sandbox.base import SandboxExecutionError

from .settings import read_number

MOST_FILES, MOST_BYTES = 256, 5 << 20
CEILING_FILES, CEILING_BYTES = 10_000, 1 << 30
COLLECT_SECONDS = 60
LISTED = 2000  # names of one folder
FOLDERS, DEPTH = 256, 16
TOLD = 20  # of what was left out, by name


@dataclass(frozen=True)
class Limits:
    files: int = MOST_FILES
    total_bytes: int = MOST_BYTES

    @staticmethod
    def read() -> "Limits":
        return Limits(read_number("CAISSON_COMPONENT_MAX_FILES", MOST_FILES, 1, CEILING_FILES),
                      read_number("CAISSON_COMPONENT_MAX_BYTES", MOST_BYTES, 1, CEILING_BYTES))


@dataclass(frozen=True)
class Artifact:
    path: str  # below the folder, with / between names
    content: bytes

    def row(self) -> dict:
        row = {"path": self.path, "size": len(self.content), "text": None, "base64": None}
        if b"\0" not in self.content:
            try:
                return row | {"text": self.content.decode()}
            except UnicodeDecodeError:
                pass
        return row | {"base64": base64.b64encode(self.content).decode()}


@dataclass
class Collection:
    files: list[Artifact] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # "name: why", the first TOLD
    left_out_count: int = 0

    def leave_out(self, path: str, why: str) -> None:
        self.left_out_count += 1
        if len(self.left_out) < TOLD:
            self.left_out.append(f"{path}: {why}")

    def told(self) -> str:
        """Empty when nothing was left out."""
        if not self.left_out_count:
            return ""
        rest = self.left_out_count - len(self.left_out)
        return "left out: " + "; ".join(self.left_out) + (f"; and {rest} more" if rest else "")


def _is_name(name) -> bool:
    return (isinstance(name, str) and 0 < len(name) <= 255 and name not in (".", "..") and name.isprintable()
            and not any(one in name for one in "/\\\N{REPLACEMENT CHARACTER}"))


class _Walk:
    def __init__(self, api, sandbox: str, root: str, limits: Limits):
        self._api, self._sandbox, self._root, self._limits = api, sandbox, root, limits
        self._deadline = time.monotonic() + COLLECT_SECONDS
        self._transfer = 2 * limits.total_bytes  # files that grow while they are read count, too
        self._room = limits.total_bytes
        self.found = Collection()

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def _list(self, folder: str, shown: str) -> list:
        try:
            told = self._api.list_folder(self._sandbox, folder, LISTED)
            entries = [one for one in told["entries"] if isinstance(one, dict)]
        except (SandboxExecutionError, httpx.HTTPError, KeyError, TypeError) as why:
            self.found.leave_out(shown or "the artifact folder", f"cannot be listed ({str(why)[:200]})")
            return []
        if told.get("truncated"):
            self.found.leave_out(shown or "the artifact folder", f"has more than {LISTED} names, and the others were not looked at")
        return sorted(entries[:LISTED], key=lambda one: str(one.get("name")))

    def _take(self, path: str, shown: str, size) -> None:
        found = self.found
        if len(found.files) >= self._limits.files:
            return found.leave_out(shown, f"there are {self._limits.files} files already (CAISSON_COMPONENT_MAX_FILES)")
        room = min(self._room, self._transfer)
        too_much = f"more than the {self._limits.total_bytes} bytes in all (CAISSON_COMPONENT_MAX_BYTES)"
        if isinstance(size, int) and size > room:
            return found.leave_out(shown, f"its {size} bytes would be {too_much}")
        content = bytearray()
        try:
            whole = self._api.read_file(self._sandbox, path, content, room, self._deadline)
        except (SandboxExecutionError, httpx.HTTPError) as why:
            return found.leave_out(shown, f"cannot be read ({str(why)[:200]})")
        finally:
            self._transfer -= len(content)
        if not whole:
            return found.leave_out(shown, "it took too long" if self._is_late() else f"it grew to {too_much}")
        self._room -= len(content)
        found.files.append(Artifact(shown, bytes(content)))

    def run(self) -> Collection:
        folders = [("", 0)]
        visited = 0
        while folders:
            below, depth = folders.pop(0)
            visited += 1
            for entry in self._list(self._root + below, below[1:]):
                name, kind = entry.get("name"), entry.get("type")
                if not _is_name(name):
                    self.found.leave_out(ascii(name)[:80], "its name has characters that are not carried on")
                    continue
                shown = f"{below}/{name}"[1:]
                if self._is_late():
                    self.found.leave_out(shown, f"reading took more than {COLLECT_SECONDS} s")
                elif kind == "directory":
                    if depth < DEPTH and visited + len(folders) < FOLDERS:
                        folders.append((f"{below}/{name}", depth + 1))
                    else:
                        self.found.leave_out(shown + "/", f"folders are read {DEPTH} deep, and {FOLDERS} of them")
                elif kind == "file":
                    self._take(f"{self._root}{below}/{name}", shown, entry.get("size"))
                else:
                    self.found.leave_out(shown, f"is no file ({str(kind)[:20]})")
        return self.found


def collect(api, sandbox: str, root: str, limits: Limits) -> Collection:
    """All that is below `root` in the machine, as far as `limits` and the time go. Raises nothing of the guest's making."""
    return _Walk(api, sandbox, root, limits).run()
