# SPDX-License-Identifier: Apache-2.0
"""Serves one engine over one channel: calls run at the same time in one event loop, each cancellable; a thread of its
own reads, so that pings are answered while a node computes."""

import asyncio
import logging
import os
import sys
import threading

from caisson_orcheo import PROTOCOL
from caisson_orcheo.frames import Channel, Closed, TooLarge
from caisson_orcheo.json_form import NotJson
from caisson_orcheo.output import CALL, Lines, LogLines

MAX_MESSAGE = 16_384  # of an error's text, in characters


def _said(error: BaseException) -> str:
    text = str(error)[:MAX_MESSAGE]
    return text.encode("utf-8", "replace").decode()


class Server:
    """`nodes` is the module nodes, or what a test has in its place."""

    def __init__(self, channel: Channel, nodes):
        self._channel = channel
        self._nodes = nodes
        self._instances = nodes.Instances()
        self._tasks: dict[int, asyncio.Task] = {}
        self._loop = asyncio.new_event_loop()
        self._out = Lines(self.say, "info", sys.stdout)
        self._err = Lines(self.say, "info", sys.stderr)

    def serve(self) -> None:
        sys.stdout, sys.stderr = self._out, self._err
        logging.basicConfig(handlers=[LogLines(self.say)], level=logging.WARNING, format="%(message)s", force=True)
        logging.getLogger("orcheo").setLevel(logging.INFO)
        self._channel.send({"type": "hello", "protocol": PROTOCOL, "package": self._nodes.package(),
                            "types": self._nodes.list_types()})
        threading.Thread(target=self._read, daemon=True).start()
        self._loop.run_forever()

    def say(self, call: int | None, level: str, text: str) -> None:
        message = {"type": "log", "level": level, "text": text.encode("utf-8", "replace").decode()}
        if call is not None:
            message["id"] = call
        self._channel.send(message)

    def _read(self) -> None:
        while True:
            try:
                message = self._channel.receive()
            except (Closed, OSError, ValueError):
                os._exit(0)  # the engine is gone, and with it whoever waits for results
            if message.get("type") == "ping":
                self._channel.send({"type": "pong"})
            else:
                self._loop.call_soon_threadsafe(self._take, message)

    def _take(self, message: dict) -> None:
        call = message.get("id")
        if message["type"] == "cancel":
            if call in self._tasks:
                self._tasks[call].cancel()
            return
        work = self._run if message["type"] == "run" else self._check
        task = self._tasks[call] = self._loop.create_task(self._answer(call, work, message))
        task.add_done_callback(lambda done: self._ended(call, done))

    def _ended(self, call: int, task: asyncio.Task) -> None:
        del self._tasks[call]
        if task.cancelled():  # before it began
            self._fail(call, "cancelled", asyncio.CancelledError())

    async def _answer(self, call: int, work, message: dict) -> None:
        CALL.set(call)
        try:
            try:
                answer = {"type": "result", "id": call, "value": await work(message)}
            finally:
                for lines in (self._out, self._err):
                    lines.finish(call)
            self._channel.send(answer)
        except asyncio.CancelledError as error:
            self._fail(call, "cancelled", error)
        except self._nodes.BadConfig as error:
            self._fail(call, "config", error)
        except self._nodes.UnknownType as error:
            self._fail(call, "unknown_type", error)
        except NotJson as error:
            self._fail(call, "not_json", error)
        except TooLarge as error:
            self._fail(call, "too_large", error)
        except BaseException as error:  # a node that raises SystemExit must not end the others
            self._fail(call, "raised", error)

    def _fail(self, call: int, kind: str, error: BaseException) -> None:
        self._channel.send({"type": "error", "id": call, "kind": kind, "error_type": type(error).__name__,
                            "message": _said(error)})

    async def _check(self, message: dict) -> object:
        self._nodes.make(message["node_type"], message["node"], message["config"])
        return None

    async def _run(self, message: dict) -> object:
        node = self._instances.get(message["instance"], message["node_type"], message["node"], message["config"])
        return await self._nodes.run(node, message["values"], message["state"], message["run_config"])
