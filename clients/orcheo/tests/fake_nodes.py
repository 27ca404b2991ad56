# SPDX-License-Identifier: Apache-2.0
"""The server with nodes of its own, in the place of the module nodes. usage: fake_nodes.py DESCRIPTOR"""

import asyncio
import logging
import socket
import sys
import time
import types

from caisson_orcheo.frames import Channel
from caisson_orcheo.json_form import to_json
from caisson_orcheo.server import Server


class BadConfig(ValueError):
    pass


class UnknownType(LookupError):
    pass


def make(kind, name, config):
    if "bad" in config:
        raise BadConfig("bad is bad")
    return kind, config


class Instances:
    def get(self, instance, kind, name, config):
        return make(kind, name, config)


async def run(node, values, state, config):
    kind, given = node
    if kind == "Echo":
        return given
    if kind == "Sleep":
        await asyncio.sleep(given["seconds"])
    elif kind == "Compute":
        end = time.monotonic() + given["seconds"]
        while time.monotonic() < end:
            pass
    elif kind == "Raise":
        raise KeyError("x")
    elif kind == "Exit":
        sys.exit(5)
    elif kind == "NotJson":
        return to_json({"a": {1}})
    elif kind == "Large":
        return {"text": "x" * 100_000}
    elif kind == "Print":
        print(given["text"], end="")
        logging.getLogger("orcheo").warning("logged")
    else:
        raise UnknownType(kind)
    return {}


NODES = types.SimpleNamespace(BadConfig=BadConfig, UnknownType=UnknownType, Instances=Instances, make=make, run=run,
                              package=lambda: "fake 1", list_types=lambda: [])

if __name__ == "__main__":
    Server(Channel(socket.socket(fileno=int(sys.argv[1])), 50_000), NODES).serve()
