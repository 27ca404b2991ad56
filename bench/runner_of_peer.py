#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one trivial call of a code node here and by orcheo's MicroPythonSandboxRunner in the same run.

usage: bench/runner_of_peer.py MICROPYTHON_BENCH [--calls N]

Exit status 77 where no interpreter with orcheo is found.
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "workflow"))
import orcheo_process  # noqa: E402

TARGET_RATIO = 3000.0
PEER = """
import asyncio, inspect, statistics, sys, time
from orcheo.sandbox.runner import MicroPythonSandboxRunner
runner = MicroPythonSandboxRunner()
inputs = {"state": {"inputs": {}, "node_results": {"score": {"value": 7}}},
          "config": {"configurable": {}}, "configurable": {"threshold": 5}}
body = ("score = state['node_results']['score']['value']\\n"
        "return {'verdict': 'pass' if score >= self.threshold else 'fail'}")
samples = []
for _ in range(int(sys.argv[1])):
    begin = time.perf_counter()
    result = runner.run(body, inputs)
    if inspect.isawaitable(result):
        result = asyncio.run(result)
    samples.append(time.perf_counter() - begin)
assert "pass" in str(result), result
print(statistics.median(samples) * 1e6)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the micropython_bench program")
    parser.add_argument("--calls", type=int, default=5)
    options = parser.parse_args()
    python = orcheo_process.find_python()
    if not python:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one", file=sys.stderr)
        return 77
    ours = subprocess.run([options.program, "0.1"], text=True, capture_output=True, check=True)
    figures = [json.loads(line) for line in ours.stdout.splitlines()]
    value = next(f["value"] for f in figures if f["what"] == "trivial call, caller to result, p50")
    peer = subprocess.run([python, "-c", PEER, str(options.calls)], text=True, capture_output=True)
    if peer.returncode != 0:
        print(peer.stderr, file=sys.stderr)
        return 1
    control = float(peer.stdout.split()[-1])
    print(json.dumps({
        "what": "trivial call, caller to result, p50", "value": value, "unit": "us", "control": control,
        "control_name": "MicroPythonSandboxRunner", "ratio": control / value,
        "target": f">= {TARGET_RATIO:.0f} times", "ok": control / value >= TARGET_RATIO,
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
