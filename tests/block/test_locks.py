# SPDX-License-Identifier: Apache-2.0
"""The locks of the runtime without threads behave as Python's own, save that nobody else can release them."""

import _thread
import pathlib
import subprocess
import sys
import time
import unittest

RUNTIMES = pathlib.Path(__file__).resolve().parent.parent.parent / "runtimes" / "python"
sys.path.insert(0, str(RUNTIMES))

from caisson_locks import Lock  # noqa: E402


def told(work, lock):
    """What a piece of work gives, or the type of what it raises."""
    try:
        return work(lock)
    except Exception as error:
        return type(error)


class Locks(unittest.TestCase):
    def test_do_what_pythons_own_do(self):
        def again(lock):
            lock.acquire()
            return lock.acquire(False), lock.acquire(timeout=0), lock.acquire(True, 0.01), lock.locked()

        def entered(lock):
            with lock as value:
                return value, lock.locked()

        def with_timeout(*arguments):
            return lambda lock: lock.acquire(*arguments)

        for work in (again, entered, lambda lock: lock.release(), lambda lock: (lock.acquire(), lock.release(), lock.locked()),
                     with_timeout(False, 1), with_timeout(True, -2), with_timeout(True, -1), lambda lock: lock.acquire(timeout=5)):
            self.assertEqual(told(work, Lock()), told(work, _thread.allocate_lock()))

    def test_take_the_time_of_a_wait(self):
        lock, begin = Lock(), time.monotonic()
        lock.acquire()
        self.assertFalse(lock.acquire(timeout=0.05))
        self.assertGreaterEqual(time.monotonic() - begin, 0.05)

    def test_refuse_to_wait_for_ever(self):
        lock = Lock()
        lock.acquire()
        with self.assertRaisesRegex(RuntimeError, "no threads"):
            lock.acquire()

    def test_serve_the_standard_library(self):
        program = (
            "import sys; sys.path.insert(0, sys.argv[1]); import caisson_locks; caisson_locks.install()\n"
            "import threading, queue\n"
            "assert isinstance(threading.Lock(), caisson_locks.Lock)\n"
            "assert threading.Event().wait(0.01) is False\n"
            "for kind in (queue.Queue, queue.SimpleQueue):\n"
            "    q = kind(); q.put(1); assert q.get() == 1\n"
            "    try: q.get(timeout=0.01)\n"
            "    except queue.Empty: pass\n"
            "    else: raise AssertionError\n"
            "s = threading.Semaphore(1); assert s.acquire() and not s.acquire(timeout=0.01)\n"
            "c = threading.Condition()\n"
            "with c: assert c.wait(0.01) is False\n"
            "with threading.RLock() as r: pass\n"
        )
        # In an interpreter whose site has not imported threading yet.
        found = subprocess.run([sys.executable, "-S", "-c", program, str(RUNTIMES)], capture_output=True, text=True)
        self.assertEqual((found.returncode, found.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
