# SPDX-License-Identifier: Apache-2.0
"""What runs below this process and what it holds. Orphans come to this process, so that none is missed."""

import ctypes
import os
import pathlib
import threading

_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def adopt_orphans():
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def leave_mounts_of_others():
    """What other programs mount from now on is not seen here; where that is not allowed, it is."""
    libc = ctypes.CDLL(None)
    if libc.unshare(_CLONE_NEWNS) == 0:
        libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)


def _parents() -> dict[int, int]:
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            state, parent = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            parents[int(entry)] = int(parent)
    return parents


def living(pids: set[int]) -> set[int]:
    """Those that have not ended."""
    return pids & _parents().keys()


def descendants(root: int | None = None) -> set[int]:
    """Processes that have not ended, without `root` itself (this process)."""
    parents = _parents()
    found = {root or os.getpid()}
    before = 0
    while before != len(found):
        before = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {root or os.getpid()}


def threads(pids: set[int]) -> int:
    count = 0
    for pid in pids:
        try:
            count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            pass
    return count


def private_bytes(pids: set[int]) -> int:
    """Memory that these processes hold and no file stands behind; what they share counts once."""
    total = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1]) << 10
        except OSError:
            pass
    return total


class Peaks:
    """The most processes and threads, and the most memory, that were seen below a process while this was entered."""

    def __init__(self, root: int, seconds: float = 0.1):
        self.root, self.seconds = root, seconds
        self.threads = self.bytes = 0
        self._stop = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def _look(self):
        while not self._stop.wait(self.seconds):
            pids = descendants(self.root)
            self.threads = max(self.threads, threads(pids))
            self.bytes = max(self.bytes, private_bytes(pids))

    def __exit__(self, *unused):
        self._stop.set()
        self._thread.join()
