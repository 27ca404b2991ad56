# SPDX-License-Identifier: Apache-2.0
"""A channel that keeps what a script sends, and what a supervisor would make of it."""

import builtins
import json
import pathlib
import sys

RUNTIMES = pathlib.Path(__file__).resolve().parent.parent.parent / "runtimes"
sys.path.insert(0, str(RUNTIMES / "python"))

import caisson_block as block  # noqa: E402


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def no_repeats(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), f"an object has a key twice: {pairs}"
    return found


def parse(text):
    """Strictly: NaN, repeated keys and text that is no UTF-8 fail."""
    return json.loads(text.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=no_repeats)


class InMemory:
    """Keeps the messages as they come; reads them when asked, since the script may have spoiled what
    reads. `results` are (value, final), with their parts."""

    def __init__(self):
        self.sent = []

    def send(self, kind, text, final=True):
        self.sent.append((kind, text, final))

    @property
    def kinds(self):
        return [kind for kind, _, _ in self.sent]

    def values(self, wanted):
        assert all(type(text) is bytes and b"\n" not in text for _, text, _ in self.sent)
        return [parse(text) for kind, text, _ in self.sent if kind == wanted]

    @property
    def debugs(self):
        return self.values("debug")

    @property
    def warnings(self):
        return self.values("warning")

    @property
    def error(self):
        return next(iter(self.values("error")), None)

    @property
    def results(self):
        found, parts = [], []
        for kind, text, final in self.sent:
            if kind == "part":
                parts += parse(text)
            elif kind == "done":
                value = parse(text)
                found.append((parts + value if parts else value, final))
                parts = []
        return found

    @property
    def settled(self):
        """The value of the first final done."""
        return next((value for value, final in self.results if final), None)


def run(source, **inputs):
    """Runs `source` and returns its channel; the run has ended properly."""
    channel = InMemory()
    before = dict(vars(builtins))
    block.run(block.Job(source, **inputs), channel)
    vars(builtins).update(before)
    assert channel.kinds[-1] == "end" and channel.kinds.count("end") == 1 and channel.kinds.count("error") <= 1, channel.kinds
    return channel
