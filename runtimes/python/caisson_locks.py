# SPDX-License-Identifier: Apache-2.0
"""Locks for an interpreter without threads, where nobody can release what the script itself holds.

The C library of the WASM build ends the interpreter when it is to wait for a lock. Here a wait with a
timeout takes that time and fails, and one without is an error of the script. RLock needs nothing: the
one thread may always have it again.

    install()     before anything imports threading or queue
"""

import sys
import time

import _thread


class Lock:
    """As _thread.lock."""

    __slots__ = ("_held", "__weakref__")

    def __init__(self):
        self._held = False

    def acquire(self, blocking=True, timeout=-1):
        if timeout != -1 and not blocking:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if not self._held:
            self._held = True
            return True
        if not blocking:
            return False
        if timeout == -1:
            raise RuntimeError("the script waits for what nothing can give it: this runtime has no threads")
        time.sleep(timeout)
        return False

    def release(self):
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self):
        return self._held

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()

    def _at_fork_reinit(self):
        self._held = False

    acquire_lock, release_lock, locked_lock = acquire, release, locked


def install():
    _thread.lock = _thread.LockType = _thread.allocate_lock = _thread.allocate = Lock
    sys.modules["_queue"] = None  # its waiting is C; the module queue has the same in Python
