# SPDX-License-Identifier: Apache-2.0
"""What interpreters that are processes share (caisson_zygote, caisson_container): the job, the channel
to the supervisor, and the harness that the job asks for.

    frame: payload length (u32, little-endian), kind (u8), final (u8), two zero bytes, payload

written to one descriptor by writev, which is the only call that the boundary lets through to it.
"""

import os
import select
import struct
import sys
from _thread import allocate_lock

BLOCK = 0
STDOUT = 5
REPORT = 16
LOOK_MS = 5000
TOO_LARGE = b'{"fault":"memory","type":"MemoryError","message":"the inputs do not fit into the limit on memory"}'
KEPT_ENVIRONMENT = ("HOME", "PATH", "TMPDIR", "LANG")


class Channel:
    """What a harness sends its messages to (caisson_block.Channel), as frames to the supervisor. The
    error of a script and the end make one report. Threads of a script may send at the same time.

    What it calls is kept in names of its own: a script may put anything into builtins and os.
    """

    _kinds = {"done": 1, "part": 2, "debug": 3, "warning": 4}
    _size, _view, _writev, _pack = len, memoryview, os.writev, struct.Struct("<IBBH").pack
    _poll = select.poll

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._lock = allocate_lock()
        self._report = b'{"fault":"none"}'
        self._flush = sys.stdout.flush

    def send(self, kind, text, final=True):
        self._say_what_was_printed()
        if kind == "error":
            self._report = text
        elif kind == "end":
            self.finish()
        else:
            self.write(Channel._kinds[kind], text, kind == "done" and final)

    def _say_what_was_printed(self):
        try:
            self._flush()
        except Exception:  # the script has closed it
            pass

    def finish(self):
        self.write(REPORT, self._report, False)
        if b'"MemoryError"' in self._report:
            self._await_look()

    def _await_look(self):
        """The supervisor believes no report that memory was short; it looks how much of it this process
        has, which must still be there, and then closes its end."""
        waiter = Channel._poll()
        waiter.register(self._descriptor, 0)
        waiter.poll(LOOK_MS)

    def write(self, number, payload, final=False):
        size, writev = Channel._size, Channel._writev
        parts = [Channel._pack(size(payload), number, 1 if final else 0, 0), payload]
        with self._lock:
            while parts:
                written = writev(self._descriptor, parts)
                while parts and written >= size(parts[0]):
                    written -= size(parts.pop(0))
                if parts and written:
                    parts[0] = Channel._view(parts[0])[written:]


def read_job(file):
    entry, *sizes = struct.unpack("<4Q", file.read(32))
    return entry, *(file.read(size) for size in sizes)


def reseed():
    """What a fork would otherwise share with its siblings."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        # As good as seed(), which takes ten times as long.
        numpy.random.set_state(("MT19937", numpy.frombuffer(os.urandom(4 * 624), numpy.uint32), 624))


def clean_environment():
    for name in list(os.environ):
        if name not in KEPT_ENVIRONMENT:
            del os.environ[name]


def ready_streams():
    """What a script has said is heard, whatever ends it, and whatever the text is."""
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")


def guard(policy):
    if policy is not None:
        import caisson_guard

        caisson_guard.install(policy)


def run(job, channel):
    import caisson_block

    entry, source, inputs, options = job
    if entry == BLOCK:
        try:
            read = caisson_block.Job.read(source, inputs, options)
        except MemoryError:
            channel.send("error", TOO_LARGE)
            channel.send("end", b"{}")
        else:
            caisson_block.run(read, channel)
    else:
        import caisson_body

        caisson_body.run(source, inputs, channel, caisson_block.load)
