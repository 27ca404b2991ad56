# SPDX-License-Identifier: Apache-2.0
"""The WASM runtime's side of the harnesses: the channel, the job, and what makes one copy of the
interpreter differ from another.

Part of every snapshot. A run is one call of `main` in a fresh copy of the memory. To the host goes

    kind (u8), final (u8), payload

by `_host.call`: kind 0 asks for the job (entry, then the sizes of source, inputs and options, as
four u64, little-endian, then the three texts); 1 to 6 are messages (src/isolate/script.h), 16 is
the harness's report on how the script ended.
"""

import os
import random
import struct
import sys

import _host

GET_JOB = 0
BLOCK = 0
HEAD = struct.Struct("<4Q")


class Channel:
    """What a harness sends its messages to."""

    def __init__(self, call=_host.call):
        self._call = call

    def send(self, kind, payload, final=False):
        self._call(bytes((kind, 1 if final else 0)) + payload)


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


def main():
    reseed()
    entry, source, inputs, options = read_job()
    if entry == BLOCK:
        import caisson_block as harness
    else:
        import caisson_body as harness
    harness.run(entry, source, inputs, options, Channel())
