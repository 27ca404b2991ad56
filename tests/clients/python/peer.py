# SPDX-License-Identifier: Apache-2.0
"""Runs a test script of this folder in an interpreter that has orcheo (CAISSON_ORCHEO_PYTHON names one), with our package on its path.
usage: peer.py LIBRARY SCRIPT. Exits with 77 where there is no such interpreter."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "workflow"))
import orcheo_process  # noqa: E402


def main():
    python = orcheo_process.find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one")
        return orcheo_process.SKIPPED
    environment = os.environ | {"CAISSON_LIBRARY": sys.argv[1], "PYTHONPATH": str(ROOT / "clients/python/src"),
                                "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([python, "-W", "ignore", str(HERE / sys.argv[2])], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
