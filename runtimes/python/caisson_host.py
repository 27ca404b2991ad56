# SPDX-License-Identifier: Apache-2.0
"""The WASM runtime's side of the harnesses: the channel, the job, and what makes one copy of the
interpreter differ from another.

Part of every snapshot. A run is one call of `main` in a fresh copy of the memory. To the host goes

    kind (u8), final (u8), payload

by `_host.call`: kind 0 asks for the job (entry, then the sizes of source, inputs and options, as
four u64, little-endian, then the three texts; inputs in the format of marshal); 1 to 4 are messages (src/isolate/script.h), 16 is
how the script ended: what a harness sends as `error`, or {"fault": "none"}.
"""

import os
import random
import struct
import sys

import _host

GET_JOB = 0
REPORT = 16
KINDS = {"done": 1, "part": 2, "debug": 3, "warning": 4}
BLOCK = 0
HEAD = struct.Struct("<4Q")


class Channel:
    """What a harness sends its messages to (caisson_block.Channel)."""

    def __init__(self, call=_host.call):
        self._call = call
        self._report = b'{"fault":"none"}'

    def send(self, kind, text, final=True):
        if kind == "error":
            self._report = text
        elif kind == "end":
            self._call(bytes((REPORT, 0)) + self._report)
        else:
            self._call(bytes((KINDS[kind], 1 if final else 0)) + text)


def read_job(call=_host.call):
    text = call(bytes((GET_JOB, 0)))
    entry, *sizes = HEAD.unpack_from(text)
    parts, at = [], HEAD.size
    for size in sizes:
        parts.append(text[at : at + size])
        at += size
    return entry, *parts


def reseed(entropy=os.urandom, seed=random.seed):
    """The state of the random generators is the same in every copy until this has run."""
    seed(int.from_bytes(entropy(32)))
    generator = sys.modules.get("numpy.random")
    if generator is not None:
        words = struct.unpack("<8I", entropy(32))
        generator.seed(words)


def run(entry, source, inputs, options, channel):
    import caisson_block
    import caisson_body

    if entry == BLOCK:
        caisson_block.run(caisson_block.Job.read(source, inputs, options), channel)
    else:
        caisson_body.run(source, inputs, channel, caisson_block.load)


def main():
    reseed()
    run(*read_job(), Channel())
