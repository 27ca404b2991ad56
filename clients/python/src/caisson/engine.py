# SPDX-License-Identifier: Apache-2.0
"""The engine: runs of IRs and calls of bodies in isolates. Thread-safe; of no use in a forked child, where `shared_engine()` gives
another one."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import os
import queue
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from caisson.compiler import ir_text
from caisson.library import ON_EVENT, CaissonError, answer, load, options_text

OnEvent = Callable[[dict[str, Any]], Any]

_NOBODY = ON_EVENT()
_WAITING_EVENTS = 256


@dataclass(frozen=True)
class RunResult:
    status: str  # succeeded, failed, cancelled, timed_out, interrupted
    state: dict[str, Any]
    error: dict[str, Any] | None
    questions: list[dict[str, Any]]
    run_id: str
    steps: int
    node_visits: int
    duration_ms: float
    runtimes: dict[str, str]
    log: list[dict[str, str]]

    @property
    def ok(self) -> bool:
        return self.status == "succeeded"


class Cancel:
    """Asks runs and calls that it was given to, to stop; from any thread."""

    def __init__(self) -> None:
        self.handle = load().caisson_cancel_create()
        if not self.handle:
            raise MemoryError("libcaisson had no memory for a cancel handle")

    def request(self) -> None:
        load().caisson_cancel_request(self.handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            load().caisson_cancel_destroy(self.handle)


class _Listener:
    """The C function that hands events to `on_event`. What that raises cancels the run and is raised when it has ended."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self.on_event = on_event
        self.raised: BaseException | None = None
        self.function = ON_EVENT(self._hear) if on_event else _NOBODY

    def _hear(self, _user: Any, line: Any, size: int) -> int:
        try:
            self.on_event(json.loads(ctypes.string_at(line, size)))  # type: ignore[misc]
            return 0
        except BaseException as error:
            self.raised = error
            return 1


class Engine:
    """Options are those of caisson_engine_create: isolate, data_dir, cache_dir, workers, limits, allow_unjailed, store, durability.
    `close()` ends its workers, as does the end of a `with`; runs that are still at it end first."""

    def __init__(self, **options: Any) -> None:
        handle = ctypes.c_void_p()
        self._handle: int | None = None
        answer(load().caisson_engine_create(options_text(options), ctypes.byref(handle)))
        self._handle = handle.value
        self._process = os.getpid()
        self._uses = 0
        self._changed = threading.Condition()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self._uses == 0:
            self.close()

    def close(self, timeout: float | None = None) -> None:
        """After `timeout` seconds of waiting for its runs the engine is left as it is; its workers end with the process at the latest."""
        # In a forked child the engine's threads do not exist, and its workers are the parent's.
        if self._handle is None or self._process != os.getpid():
            return
        with self._changed:
            if not self._changed.wait_for(lambda: self._uses == 0, timeout):
                return
            handle, self._handle = self._handle, None
        if handle is not None:
            load().caisson_engine_destroy(handle)

    def _use(self, function: Callable[[int], int]) -> dict[str, Any]:
        with self._changed:
            if self._handle is None or self._process != os.getpid():
                why = "closed" if self._handle is None else "of another process; make one after forking"
                raise CaissonError("library.options", f"the engine is {why}")
            handle = self._handle
            self._uses += 1
        try:
            return answer(function(handle))
        finally:
            with self._changed:
                self._uses -= 1
                self._changed.notify_all()

    def describe(self) -> dict[str, Any]:
        return self._use(load().caisson_engine_describe)["runtime"]

    def call(self, body: str, inputs: Mapping[str, Any] | bytes, *, cancel: Cancel | None = None, **options: Any) -> dict[str, Any]:
        """One body, as caisson_call. `inputs`: state, config, configurable; or their JSON text."""
        code = body.encode("utf-8", "surrogatepass")
        data = inputs if isinstance(inputs, bytes) else json.dumps(dict(inputs), allow_nan=False).encode()
        return self._use(lambda handle: load().caisson_call(handle, code, len(code), data, len(data), options_text(options),
                                                            cancel.handle if cancel else None))["outcome"]

    def run(self, ir: Any, inputs: Mapping[str, Any] | None = None, *, on_event: OnEvent | None = None, cancel: Cancel | None = None,
            **options: Any) -> RunResult:
        """Runs an IR (a mapping, a model, or JSON text). Options: those of caisson_run. `on_event` is called on other threads, one
        event at a time; what it raises cancels the run and is raised here. A KeyboardInterrupt cancels it, too."""
        data, given = ir_text(ir), json.dumps(dict(inputs or {}), allow_nan=False).encode()
        text = options_text(options)
        return self._carry(lambda handle, stop, hear: load().caisson_run(handle, data, len(data), given, len(given), text, stop, hear,
                                                                         None), on_event, cancel)

    def resume(self, run_id: str, answers: Mapping[str, Any] | None = None, *, on_event: OnEvent | None = None,
               cancel: Cancel | None = None, **options: Any) -> RunResult:
        """Goes on with a recorded run; the engine needs the option `store`. `answers`: path of the node that asked -> answer."""
        given, text = json.dumps(dict(answers or {}), allow_nan=False).encode(), options_text(options)
        return self._carry(lambda handle, stop, hear: load().caisson_resume(handle, run_id.encode(), given, len(given), text, stop, hear,
                                                                            None), on_event, cancel)

    def _carry(self, function: Callable[[int, int, Any], int], on_event: OnEvent | None, cancel: Cancel | None) -> RunResult:
        cancel = cancel or Cancel()
        listener = _Listener(on_event)

        def work() -> RunResult:
            told = self._use(lambda handle: function(handle, cancel.handle, listener.function))
            return RunResult(**told["result"])

        result = work() if threading.current_thread() is not threading.main_thread() else _interruptible(work, cancel)
        if listener.raised is not None:
            raise listener.raised
        return result

    def events(self, ir: Any, inputs: Mapping[str, Any] | None = None, **options: Any) -> Events:
        """The events of a run, as they come. `result` is there once they have ended; leaving the loop early, by `close()` or the end
        of a `with`, cancels the run."""
        return Events(lambda **hooks: self.run(ir, inputs, **hooks, **options))

    async def arun(self, ir: Any, inputs: Mapping[str, Any] | None = None, *, on_event: OnEvent | None = None, **options: Any) -> RunResult:
        """As run; a task that is cancelled cancels the run and waits for its end."""
        return await _in_thread(lambda cancel: self.run(ir, inputs, on_event=on_event, cancel=cancel, **options))

    async def aresume(self, run_id: str, answers: Mapping[str, Any] | None = None, *, on_event: OnEvent | None = None,
                      **options: Any) -> RunResult:
        return await _in_thread(lambda cancel: self.resume(run_id, answers, on_event=on_event, cancel=cancel, **options))

    def aevents(self, ir: Any, inputs: Mapping[str, Any] | None = None, **options: Any) -> AsyncEvents:
        return AsyncEvents(self.events(ir, inputs, **options))


def _interruptible(work: Callable[[], RunResult], cancel: Cancel) -> RunResult:
    """On another thread, since a signal is heard only between bytecodes of this one."""
    told: list[RunResult] = []
    raised: list[BaseException] = []

    def act() -> None:
        try:
            told.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=act, name="caisson-run")
    thread.start()
    try:
        thread.join()
    except BaseException:
        cancel.request()
        thread.join()
        raise
    if raised:
        raise raised[0]
    return told[0]


async def _in_thread(work: Callable[[Cancel], RunResult]) -> RunResult:
    cancel = Cancel()
    task = asyncio.ensure_future(asyncio.to_thread(work, cancel))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancel.request()
        await asyncio.wait([task])
        raise


class _Told:
    """What the thread of a run and the reader of its events share. The thread does not know the reader, who may go."""

    def __init__(self) -> None:
        self.queue: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING_EVENTS)
        self.cancel = Cancel()
        self.result: RunResult | None = None
        self.raised: BaseException | None = None

    def work(self, run: Callable[..., RunResult]) -> None:
        try:
            self.result = run(on_event=self.queue.put, cancel=self.cancel)
        except BaseException as error:
            self.raised = error
        self.queue.put(None)


class Events(Iterator[dict[str, Any]]):
    """See Engine.events."""

    def __init__(self, run: Callable[..., RunResult]) -> None:
        self._told = _Told()
        self._ended = False
        self._thread = threading.Thread(target=self._told.work, args=[run], name="caisson-events", daemon=True)
        self._thread.start()
        _open_events.add(self)

    def __next__(self) -> dict[str, Any]:
        event = None if self._ended else self._told.queue.get()
        if event is not None:
            return event
        first_time, self._ended = not self._ended, True
        if first_time and self._told.raised is not None:
            raise self._told.raised
        raise StopIteration

    @property
    def result(self) -> RunResult:
        """Of the run, once its events have ended."""
        if self._told.result is None or not self._ended:
            raise CaissonError("library.options", "the run has no result yet: its events have not ended, or it was refused")
        return self._told.result

    def close(self) -> None:
        self._told.cancel.request()
        while not self._ended:
            self._ended = self._told.queue.get() is None
        self._thread.join()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_ended", True):
            self.close()


class AsyncEvents(AsyncIterator[dict[str, Any]]):
    """See Engine.aevents; with `async for`, and `async with` to end the run when the loop is left early."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def __anext__(self) -> dict[str, Any]:
        event = await asyncio.to_thread(next, self._events, None)
        if event is None:
            raise StopAsyncIteration
        return event

    @property
    def result(self) -> RunResult:
        return self._events.result

    async def aclose(self) -> None:
        await asyncio.to_thread(self._events.close)

    async def __aenter__(self) -> AsyncEvents:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_open_events: weakref.WeakSet[Events] = weakref.WeakSet()
_shared: dict[int, Engine] = {}
_shared_lock = threading.Lock()
_DEFAULT_MEMORY = 256 << 20
MOST_MEMORY = 4 << 30
_PATIENCE = 10.0  # seconds, for runs of threads that the end of the process does not wait for


def shared_engine(memory_bytes: int = _DEFAULT_MEMORY) -> Engine:
    """The engine of this process whose isolates may have so much linear memory; made when it is first asked for, closed with the
    process. CAISSON_ISOLATE names its isolate program, CAISSON_WORKERS their number."""
    size = min(max(memory_bytes, _DEFAULT_MEMORY), MOST_MEMORY)
    with _shared_lock:
        if size not in _shared:
            workers = os.environ.get("CAISSON_WORKERS")
            if workers and not workers.isdecimal():
                raise CaissonError("library.options", f"CAISSON_WORKERS must be a number, but it is '{workers}'")
            _shared[size] = Engine(isolate=os.environ.get("CAISSON_ISOLATE") or None, workers=int(workers) if workers else None,
                                   limits={"memory_bytes": size})
        return _shared[size]


def _forget_shared() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    _shared.clear()


@atexit.register
def _close_shared() -> None:
    with _shared_lock:
        engines = list(_shared.values())
        _shared.clear()
    for events in list(_open_events):
        events.close()
    for engine in engines:
        engine.close(_PATIENCE)


os.register_at_fork(after_in_child=_forget_shared)
