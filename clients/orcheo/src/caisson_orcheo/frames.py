# SPDX-License-Identifier: Apache-2.0
"""Messages on a stream socket: the length (u32, little-endian) and a JSON text."""

import json
import socket
import struct
import threading

HEAD = struct.Struct("<I")
MAX_BYTES = 512 << 20


class Closed(Exception):
    """The other end is gone."""


class TooLarge(ValueError):
    """A message is larger than the other end takes."""


class Channel:
    """One thread reads; any thread writes."""

    def __init__(self, connection: socket.socket, max_bytes: int = MAX_BYTES):
        self._connection = connection
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    def send(self, message: dict) -> None:
        body = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        if len(body) > self._max_bytes:
            raise TooLarge(f"the result has {len(body)} bytes as JSON, and a message may have {self._max_bytes}")
        with self._lock:
            self._connection.sendall(HEAD.pack(len(body)))
            self._connection.sendall(body)

    def receive(self) -> dict:
        (length,) = HEAD.unpack(self._read(HEAD.size))
        if length > MAX_BYTES:
            raise Closed(f"a message of {length} bytes")
        return json.loads(self._read(length))

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._connection.recv(min(count, 1 << 20))
            if not part:
                raise Closed("the channel was closed")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
