#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the caisson command as a whole process, from exec to exit, and reads its peak memory.

usage: bench/command.py FOLDER_OF_PROGRAMS [--repeat N]

`check` is given a workflow of 10 nodes; the control is /bin/true, started in the same way.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compile_workflows  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples" / "grade"
TARGET_MS = 8.0


def spawn(command):
    """Milliseconds from exec to exit and the peak resident memory in MiB."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    took = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {status}")
    return took * 1e3, usage.ru_maxrss / 1024


def measure(command, repeat):
    runs = [spawn(command) for _ in range(repeat)]
    return statistics.median(run[0] for run in runs), max(run[1] for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=50)
    options = parser.parse_args()
    caisson = str(options.programs / "caisson")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(compile_workflows.workflow(10))
        file.flush()
        check, check_memory = measure([caisson, "check", file.name], options.repeat)
    control, _ = measure(["/bin/true"], options.repeat)
    run, run_memory = measure(
        [caisson, "run", "--mode", "restricted", str(EXAMPLE / "workflow.py"), "--input", f"@{EXAMPLE}/input.json"], 10
    )
    print(json.dumps({
        "what": "caisson check, exec to exit, 10 nodes, p50", "value": check, "unit": "ms", "control": control,
        "control_name": "/bin/true", "ratio": check / control, "target": f"< {TARGET_MS:.0f} ms", "ok": check < TARGET_MS,
    }))
    print(json.dumps({"what": "caisson run of examples/grade, exec to exit, p50", "value": run, "unit": "ms"}))
    print(json.dumps({"what": "caisson check, peak memory", "value": check_memory, "unit": "MiB"}))
    print(json.dumps({"what": "caisson run, peak memory without its workers", "value": run_memory, "unit": "MiB"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
