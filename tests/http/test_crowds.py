#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many connections at once: idle ones, slow ones, ones that take nothing. None of them holds up the others."""

import resource
import socket
import sys
import threading
import time
import unittest

from server import Server

IDLE = 10_000
MOST = IDLE + 1_000
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, MOST), hard))  # the server inherits it
SERVER = Server()


def connect() -> socket.socket:
    return socket.create_connection(("127.0.0.1", SERVER.port), timeout=20)


def get(connection: socket.socket, path: str = "/small") -> bytes:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        piece = connection.recv(65536)
        if not piece:
            break
        answer += piece
    return answer


def close(crowd: list[socket.socket]) -> None:
    for connection in crowd:
        connection.close()


def slowest(requests: int) -> float:
    """The longest of some requests on a connection of their own, in seconds."""
    worst = 0.0
    with connect() as connection:
        for n in range(requests):
            begin = time.monotonic()
            answer = get(connection, "/pooled" if n % 2 else "/small")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            worst = max(worst, time.monotonic() - begin)
    return worst


class Crowds(unittest.TestCase):
    def setUp(self) -> None:
        SERVER.wait_until_calm()

    @unittest.skipIf(hard < MOST, "RLIMIT_NOFILE is too low for 10,000 connections")
    def test_idle_connections_cost_little(self) -> None:
        slowest(20)
        before = SERVER.memory_kib()
        crowd = [connect() for _ in range(IDLE)]
        self.addCleanup(close, crowd)
        for connection in crowd[::10]:  # idle before the first request, and after one
            self.assertTrue(get(connection).startswith(b"HTTP/1.1 200"))
        each = (SERVER.memory_kib() - before) / IDLE
        cpu = SERVER.cpu_seconds()
        time.sleep(2)
        cpu = (SERVER.cpu_seconds() - cpu) / 2
        worst = slowest(200)
        print(f"{IDLE} idle connections: {each:.2f} KiB each, {100 * cpu:.1f} % of a core, slowest request {1000 * worst:.1f} ms")
        self.assertLess(each, 4)
        self.assertLess(cpu, 0.10)
        self.assertLess(worst, 1)
        close(crowd)
        self.assertLess(slowest(20), 2)

    def test_slow_heads_hold_up_nobody(self) -> None:
        crowd = [connect() for _ in range(500)]
        stop = threading.Event()

        def drip() -> None:
            head = b"GET /small HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 1000
            for byte in head:
                for connection in crowd:
                    try:
                        connection.sendall(bytes([byte]))
                    except OSError:
                        pass  # the server has given it up
                if stop.wait(0.05):
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            self.assertLess(slowest(200), 1)
            begin = time.monotonic()
            answer = crowd[0].recv(65536)
            self.assertTrue(answer.startswith(b"HTTP/1.1 408"), answer)
            self.assertLess(time.monotonic() - begin, 15)
        finally:
            stop.set()
            thread.join()
            close(crowd)

    def test_clients_that_take_nothing_hold_up_nobody(self) -> None:
        before = SERVER.memory_kib()
        crowd = [connect() for _ in range(100)]
        self.addCleanup(close, crowd)
        for connection in crowd:
            connection.sendall(b"GET /stream?bytes=1000000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        SERVER.wait_until_calm()  # until the buffers of the kernel are full
        self.assertLess(slowest(200), 1)
        grown = (SERVER.memory_kib() - before) / 1024
        print(f"100 clients that take nothing of 1 GB each: {grown:.0f} MiB")
        self.assertLess(grown, 100)  # two buffers of 256 KiB each, and threads


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    stopped = SERVER.stop()
    if stopped:
        print(f"the server ended with {stopped}")
    sys.exit(not result.wasSuccessful() or stopped)
