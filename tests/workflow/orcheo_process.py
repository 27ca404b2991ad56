# SPDX-License-Identifier: Apache-2.0
"""Finds an interpreter that has orcheo, and talks to the two compilers by lines."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77  # what ctest is told to read as "skipped"
PEER = pathlib.Path(__file__).resolve().parent / "orcheo_peer.py"


def find_python():
    """An interpreter that can import orcheo, or None."""
    named = os.environ.get("CAISSON_ORCHEO_PYTHON")
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('orcheo.graph.ir') is None)"
    for path in [named] if named else [sys.executable, shutil.which("python3.12")]:
        if path and subprocess.run([path, "-c", probe], capture_output=True).returncode == 0:
            return path
    return None


class Compiler:
    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __call__(self, source):
        self.process.stdin.write(json.dumps({"source": source}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[0]} died with status {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
