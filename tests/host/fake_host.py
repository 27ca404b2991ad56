#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In the place of a Python with caisson-orcheo: serves two types of the real package by giving back what it gets. Beside
it may lie a file `die`, upon which it removes that file and ends in the middle of a call, and a file `reach`, a destination
that it asks the proxy for."""

import json
import os
import pathlib
import socket
import struct
import sys

FOLDER = pathlib.Path(sys.argv[0]).parent
channel = socket.socket(fileno=3)


def send(**message):
    body = json.dumps(message).encode()
    channel.sendall(struct.pack("<I", len(body)) + body)


def read(count):
    data = b""
    while len(data) < count:
        part = channel.recv(count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def reach(target):
    """What the proxy answers, if there is one."""
    try:
        with socket.create_connection(("127.0.0.1", 3128), timeout=10) as proxy:
            proxy.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
            return proxy.recv(4096).decode().split("\r\n")[0]
    except ConnectionRefusedError:
        return "refused"


assert sys.argv[1:3] == ["-m", "caisson_orcheo"], sys.argv
with (FOLDER / "starts").open("a") as starts:
    starts.write("start\n")
send(type="hello", protocol=1, package="fake 1",
     types=[{"name": name, "category": "x", "restricted": False, "fields": []} for name in ("QueryClassifierNode", "TurnAnnotationNode")])
while True:
    message = json.loads(read(struct.unpack("<I", read(4))[0]))
    if message["type"] == "ping":
        send(type="pong")
    elif message["type"] == "check":
        send(type="result", id=message["id"], value=None)
    elif message["type"] == "run":
        die = FOLDER / "die"
        if die.exists():
            die.unlink()
            print("out of memory", file=sys.stderr, flush=True)
            os._exit(9)
        if (FOLDER / "reach").exists():
            (FOLDER / "reached").write_text(reach((FOLDER / "reach").read_text()))
        send(type="log", id=message["id"], level="warning", text="the host says\x1b[31m so")
        send(type="result", id=message["id"], value={"node_results": {message["node"]: {"values": message["values"]}}})
