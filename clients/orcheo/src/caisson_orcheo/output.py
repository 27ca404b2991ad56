# SPDX-License-Identifier: Apache-2.0
"""What nodes print and log becomes log lines of the call that they run in."""

import contextvars
import io
import logging
import threading

MAX_LINE = 16_384

# The id of the call that runs, if one does.
CALL: contextvars.ContextVar[int | None] = contextvars.ContextVar("caisson_call", default=None)


class Lines(io.TextIOBase):
    """In place of sys.stdout or sys.stderr: whole lines to `say(call, level, text)`; what is printed outside of any
    call goes to `other`."""

    def __init__(self, say, level: str, other):
        self._say, self._level, self._other = say, level, other
        self._lock = threading.Lock()
        self._open: dict[int, str] = {}

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        call = CALL.get()
        if call is None:
            self._other.write(text)
            return len(text)
        with self._lock:
            *whole, rest = (self._open.pop(call, "") + text).split("\n")
            if len(rest) > MAX_LINE:
                whole, rest = [*whole, rest], ""
            if rest:
                self._open[call] = rest
        for line in whole:
            self._say(call, self._level, line)
        return len(text)

    def flush(self) -> None:
        if CALL.get() is None:
            self._other.flush()

    def finish(self, call: int) -> None:
        """The last line of a call that has ended."""
        with self._lock:
            rest = self._open.pop(call, "")
        if rest:
            self._say(call, self._level, rest)


class LogLines(logging.Handler):
    def __init__(self, say):
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning" if record.levelno >= logging.WARNING else "info"
        try:
            self._say(CALL.get(), level, self.format(record))
        except Exception:
            self.handleError(record)
