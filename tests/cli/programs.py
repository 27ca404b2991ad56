# SPDX-License-Identifier: Apache-2.0
"""Starts the programs under test. The folder that holds them is the first argument of a test script."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build/release/bin"

# What a user may have set and what would change messages.
_FOREIGN = ("NO_COLOR", "CAISSON_WORKFLOW_DEFINITION_MODE", "ORCHEO_WORKFLOW_DEFINITION_MODE")


@dataclasses.dataclass
class Result:
    code: int
    stdout: str
    stderr: str

    def json(self):
        return json.loads(self.stdout)


# The record of the runs that tests start.
_RECORDS = tempfile.TemporaryDirectory(prefix="caisson-records-")


def environment(extra: dict | None = None) -> dict:
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return kept | {"CAISSON_STORE": f"{_RECORDS.name}/runs.db"} | (extra or {})


def caisson(*arguments: str, stdin: bytes | str = b"", cwd=ROOT, env: dict | None = None, program=None,
            timeout: float = 120) -> Result:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run([str(program or BIN / "caisson"), *arguments], input=data, cwd=cwd, env=environment(env),
                          capture_output=True, timeout=timeout)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


class OwnPrograms:
    """A copy of the programs in a folder of its own, so that their processes can be told from all others."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-test-"))
        for name in ("caisson", "caisson-isolate"):
            shutil.copy2(BIN / name, self.folder / name)
        self.program = self.folder / "caisson"

    def close(self):
        shutil.rmtree(self.folder)

    def processes(self, name: str = "") -> list[int]:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                target = os.readlink(entry / "exe")
            except OSError:
                continue
            if target.startswith(f"{self.folder}/{name}"):
                found.append(int(entry.name))
        return found

    def wait_for(self, condition, seconds: float = 20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"still not so after {seconds} s")

    def wait_until_gone(self, seconds: float = 10):
        self.wait_for(lambda: not self.processes(), seconds)


def code_workflow(body: str, fields: str = "") -> str:
    """A workflow of one code node with `body`, whose first line is line 10, and a `return {}` after it."""
    lines = "\n".join("        " + line for line in [*body.strip("\n").split("\n"), "return {}"])
    return f"""from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode


class Work(CodeNode):
    {fields or "'Work.'"}

    def run(self, state, config):
{lines}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("work", Work(name="work"))
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph
"""


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
