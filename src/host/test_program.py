# SPDX-License-Identifier: Apache-2.0
"""A node host for tests, well-behaved or not: the type of a node says what happens when it is called."""

import json
import os
import signal
import socket
import struct
import sys
import threading
import time

channel = socket.socket(fileno=3)
lock = threading.Lock()
open_calls = {}


def send_bytes(body):
    with lock:
        channel.sendall(struct.pack("<I", len(body)) + body)


def send(**message):
    send_bytes(json.dumps(message).encode())


def receive():
    def read(count):
        data = b""
        while len(data) < count:
            part = channel.recv(count - len(data))
            if not part:
                os._exit(0)
            data += part
        return data

    return json.loads(read(struct.unpack("<I", read(4))[0]))


def interfaces():
    with open("/proc/self/net/dev") as lines:
        return [line.split(":")[0].strip() for line in lines if ":" in line]


def status(name):
    with open("/proc/self/status") as lines:
        return next(line.split()[1] for line in lines if line.startswith(name))


def around():
    return {"interfaces": interfaces(), "descriptors": [fd for fd in range(4) if os.path.exists(f"/proc/self/fd/{fd}")],
            "capabilities": status("CapEff") + status("CapBnd"), "variables": sorted(os.environ)}


def answer(call, node, value):
    send(type="result", id=call, value={"node_results": {node: value}})


def ask_proxy(target):
    """The first line of the proxy's answer, and what comes back of what is sent."""
    try:
        with socket.create_connection(("127.0.0.1", 3128), timeout=10) as proxy:
            proxy.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\nhello".encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += proxy.recv(1)
            line = head.split(b"\r\n")[0].decode()
            return [line, proxy.recv(5).decode() if " 200 " in line else ""]
    except OSError as error:
        return [type(error).__name__, ""]


def reach_directly():
    try:
        socket.create_connection(("203.0.113.1", 443), timeout=5).close()
        return "reached"
    except OSError as error:
        return type(error).__name__ if error.errno is None else os.strerror(error.errno)


def run(message):
    call, kind, node = message["id"], message["node_type"], message["node"]
    if kind == "Echo":
        answer(call, node, {key: message[key] for key in ("config", "values", "state", "run_config", "instance")})
    elif kind == "Around":
        answer(call, node, around())
    elif kind == "Raise":
        send(type="error", id=call, kind="raised", error_type="KeyError", message="'missing'")
    elif kind == "NotJson":
        send(type="error", id=call, kind="not_json", error_type="NotJson", message="$.a[3]: a set has no JSON form")
    elif kind == "Say":
        send(type="log", id=call, level="warning", text="for the call")
        send(type="log", level="info", text=f"for nobody: {message['config'].get('text')}")
        print(f"printed: {message['config'].get('text')}", flush=True)
        time.sleep(0.2)  # so that the pipe is read before the answer
        answer(call, node, {})
    elif kind == "Slow":
        open_calls[call] = node
    elif kind == "Stubborn":
        pass  # neither an answer nor an end
    elif kind == "Freeze":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "Die":
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)
    elif kind == "Garbage":
        send_bytes(b"\x00\xff garbage")
    elif kind == "Odd":
        send(type="surprise", id=call)
    elif kind == "WrongId":
        send(type="result", id=call + 1000, value={})
    elif kind == "Twice":
        answer(call, node, 1)
        answer(call, node, 2)
    elif kind == "LogForNobody":
        send(type="log", id=call + 1000, level="info", text="x")
    elif kind == "HelloAgain":
        hello()
    elif kind == "TooLarge":
        with lock:
            channel.sendall(struct.pack("<I", 0xFFFFFFFF))
    elif kind == "Reach":
        answer(call, node, {"proxied": ask_proxy(message["config"]["text"]), "direct": reach_directly(),
                            "variable": os.environ.get("HTTPS_PROXY")})
    elif kind == "Pid":
        answer(call, node, os.getpid())


def hello(version=1):
    names = ["Around", "Die", "Echo", "Freeze", "Garbage", "HelloAgain", "LogForNobody", "NotJson", "Odd", "Pid", "Raise",
             "Reach", "Say", "Slow", "Stubborn", "TooLarge", "Twice", "WrongId"]
    types = [{"name": name, "category": "test", "restricted": False, "fields": []} for name in names]
    types.append({"name": "Secret", "category": "test", "restricted": True, "fields": []})
    send(type="hello", protocol=version, package="test 1", types=types)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "no_hello":
        time.sleep(60)
    if mode == "ends":
        sys.exit("no library")
    if mode == "pong_first":
        send(type="pong")
    hello(2 if mode == "version" else 1)
    while True:
        message = receive()
        if message["type"] == "ping":
            send(type="pong")
        elif message["type"] == "cancel":
            if open_calls.pop(message["id"], None):
                send(type="error", id=message["id"], kind="cancelled", error_type="CancelledError", message="")
        elif message["type"] == "check":
            if message["config"].get("bad"):
                send(type="error", id=message["id"], kind="config", error_type="ValueError", message="$.bad is bad")
            else:
                send(type="result", id=message["id"], value=None)
        else:
            run(message)


main()
