# SPDX-License-Identifier: Apache-2.0
"""asyncio for scripts that have no sockets: the guard refuses them, and the WASM build has none.

The event loop of the standard library wakes itself by a pair of sockets. Here it waits for an event of
its own instead (where there are no threads, for time to pass), and so runs tasks, timers, queues and
calls in threads; what would need a file or a socket is refused when it is used.

    patch(selector_events)   once the module asyncio.selector_events has been loaded
"""

import sys
import time


class _Waker:
    """Waits until `wake` or a time is over. Nothing but this thread can wake where there are no threads."""

    def __init__(self):
        self._event = None
        if sys.platform != "wasi":
            import threading

            self._event = threading.Event()

    def wake(self):
        if self._event is not None:
            self._event.set()

    def wait(self, timeout):
        if self._event is not None:
            self._event.wait(timeout)
            self._event.clear()
        elif timeout is None:
            raise RuntimeError("the event loop waits for something that nothing in this script can do")
        elif timeout > 0:
            time.sleep(timeout)


class _NoFiles:
    """A selector that selects nothing."""

    def __init__(self, waker):
        self._waker = waker

    def select(self, timeout=None):
        self._waker.wait(timeout)
        return []

    def register(self, *_):
        raise PermissionError("asyncio is refused files and sockets: a script has no network (policy: network)")

    modify = register

    def unregister(self, *_):
        raise KeyError("nothing is registered")

    def get_map(self):
        return {}

    def get_key(self, _):
        raise KeyError("nothing is registered")

    def close(self):
        pass


def patch(selector_events):
    def make_self_pipe(loop):
        loop._selector.close()
        loop._caisson_waker = _Waker()
        loop._selector = _NoFiles(loop._caisson_waker)

    base = selector_events.BaseSelectorEventLoop
    base._make_self_pipe = make_self_pipe
    base._close_self_pipe = lambda loop: None
    base._write_to_self = lambda loop: loop._caisson_waker.wake()
