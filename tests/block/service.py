# SPDX-License-Identifier: Apache-2.0
"""A `caisson block serve` on pipes, as a host program sees it (docs/block-protocol.md)."""

import json
import queue
import subprocess
import sys
import threading
import time

from programs import BIN, environment

WAIT = 120  # seconds for an answer
# A script for each of the interpreters that a service prepares.
PREPARED = tuple(f"import {module}\ndone(1)" for module in ("json", "pandas", "sklearn", "geopandas", "astropy"))
SKIP = 77  # the exit code of a test whose runtime is not here
UNAVAILABLE = 6  # that of caisson then
FIRST_RUN = 1800  # seconds; the cache of a runtime may have to be filled


class Service:
    def __init__(self, *arguments: str, env: dict | None = None, cwd=None, program=None):
        self.process = subprocess.Popen([str(program or BIN / "caisson"), "block", "serve", *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(env), cwd=cwd)
        self.messages = []
        self.listener = threading.Thread(target=lambda: self.messages.extend(self.process.stderr), daemon=True)
        self.listener.start()
        self.hello = self.next()

    def send(self, **request):
        self.write(json.dumps(request).encode() + b"\n")

    def write(self, data: bytes):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def run(self, id: str, script: str, **more):
        self.send(id=id, op="run", script=script, **more)

    def next(self) -> dict | None:
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def until_end(self, id: str) -> list[dict]:
        """The frames of `id` up to its end; those of others are lost."""
        found = []
        while not found or found[-1]["type"] != "end":
            frame = self.next()
            if frame is None:
                raise AssertionError(f"no end of {id}; {self.messages}")
            if frame.get("id") == id:
                found.append(frame)
        return found

    def close(self) -> int:
        """Ends the input; the exit code."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.stdout.read()
        return self.finish()

    def finish(self) -> int:
        code = self.process.wait(WAIT)
        self.listener.join()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except OSError:
                pass
        self.finish()


class Run:
    """What came back of one run."""

    def __init__(self, id: str):
        self.id = id
        self.lines: list[bytes] = []
        self.frames: list[dict] = []
        self.begun = self.ended = 0.0  # accepted, end; by time.monotonic

    @property
    def end(self) -> dict:
        return self.frames[-1]

    @property
    def seconds(self) -> float:
        return self.ended - self.begun

    def take(self, line: bytes, frame: dict):
        now = time.monotonic()
        self.lines.append(line)
        self.frames.append(frame)
        self.begun = self.begun or now
        self.ended = now

    @property
    def refusal(self) -> dict | None:
        return self.end["error"] if self.end["type"] == "error" else None

    @property
    def over(self) -> bool:
        return bool(self.frames) and self.end["type"] in ("end", "error")

    @property
    def results(self) -> list:
        """Each result with its parts joined."""
        found, parts = [], []
        for frame in self.frames:
            if frame["type"] == "part":
                parts += frame["items"]
            elif frame["type"] == "done":
                found.append(parts + frame["result"] if parts else frame["result"])
                parts = []
        return found

    @property
    def finals(self) -> int:
        return sum(frame["type"] == "done" and frame["final"] for frame in self.frames)

    def text(self, stream: str) -> str:
        return "".join(frame["text"] for frame in self.frames if frame["type"] == stream)

    def __str__(self):
        shown = b"".join(line if len(line) < 2000 else line[:2000] + b"...\n" for line in self.lines[-5:])
        return f"{len(self.lines)} lines, the last of them:\n" + shown.decode(errors="replace")


class Host:
    """A service whose answers are read all the time and sorted by run."""

    def __init__(self, *arguments: str, **options):
        self.service = Service(*arguments, **options)
        self.hello = self.service.hello
        self._runs: dict[str, Run] = {}
        self._over: queue.Queue = queue.Queue()
        self._count = 0
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def process(self):
        return self.service.process

    @property
    def messages(self) -> str:
        return b"".join(self.service.messages).decode(errors="replace")

    def alive(self) -> bool:
        return self.process.poll() is None

    def _read(self):
        for line in self.process.stdout:
            frame = json.loads(line)
            with self._changed:
                run = self._runs.get(frame.get("id"))
                if run is not None:
                    run.take(line, frame)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def follow(self, id: str) -> Run:
        with self._changed:
            return self._runs.setdefault(id, Run(id))

    def start(self, script: str, **more) -> Run:
        with self._changed:
            self._count += 1
        run = self.follow(f"r{self._count}")
        with self._sending:
            self.service.run(run.id, script, **more)
        return run

    def until(self, run: Run, condition, seconds: float = WAIT):
        with self._changed:
            self._changed.wait_for(lambda: condition() or not self._reader.is_alive(), seconds)
        if not condition():
            raise AssertionError(f"still not after {seconds} s; {run}\n{self.messages}")

    def wait(self, run: Run, seconds: float = WAIT) -> Run:
        self.until(run, lambda: run.over, seconds)
        return run

    def cancel(self, run: Run):
        with self._sending:
            self.service.send(id=run.id, op="cancel")

    def forget(self, run: Run):
        with self._changed:
            del self._runs[run.id]

    def run(self, script: str, *, seconds: float = WAIT, **more) -> Run:
        return self.wait(self.start(script, **more), seconds)

    def refusal(self) -> int | None:
        """When the service has not said hello: what a test ends with, after it has said why."""
        if self.hello is not None:
            return None
        code = self.close()
        print(self.messages, end="", file=sys.stderr)
        return SKIP if code == UNAVAILABLE else 1

    def close(self) -> int:
        """Ends the input; the exit code."""
        self.process.stdin.close()
        self._reader.join(WAIT)
        return self.service.finish()
