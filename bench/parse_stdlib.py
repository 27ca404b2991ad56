#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parses the standard library of CPython 3.12 with our parser and with `ast.parse`, on one core, in
turns within one run, and prints the processor time of both as JSON for bench/run.py.

usage: bench/parse_stdlib.py PARSE_BENCH [--repeat N] [--sample EVERY_NTH_FILE]

Exit status 77 when there is no CPython 3.12 here.
"""

import argparse
import gc
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python"))
import cpython312  # noqa: E402

cpython312.continue_in_cpython312()

import ast  # noqa: E402

import inputs  # noqa: E402

TARGET = 5.0


def accepted(paths):
    """The files that CPython accepts, with their bytes."""
    sources = []
    for path in paths:
        data = pathlib.Path(path).read_bytes()
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        sources.append((path, data))
    return sources


def seconds_of_cpython(sources):
    started = time.process_time()
    for _, data in sources:
        ast.parse(data)
    return time.process_time() - started


def seconds_of_ours(program, sources):
    paths = "\n".join(path for path, _ in sources) + "\n"
    result = subprocess.run([program, "1"], input=paths, text=True, capture_output=True, check=True)
    return json.loads(result.stdout)


def measure(program, sources, repeat):
    """The least of `repeat` runs each, taken in turns, so that noise meets both alike."""
    theirs, ours = [], []
    for _ in range(repeat):
        ours.append(seconds_of_ours(program, sources))
        gc.collect()
        gc.disable()
        theirs.append(seconds_of_cpython(sources))
        gc.enable()
    return min(theirs), min(ours, key=lambda figures: figures["seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="the parse_bench program")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sample", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sources = accepted(inputs.standard_library()[:: options.sample])
    theirs, ours = measure(options.program, sources, options.repeat)
    ratio = theirs / ours["seconds"]
    figure = {
        "what": f"parse the standard library of CPython {sys.version.split()[0]}"
        f" ({ours['files']} files, {ours['bytes'] / 1e6:.1f} MB)",
        "value": round(ours["seconds"], 3),
        "unit": "s",
        "control": round(theirs, 3),
        "control_name": "ast.parse",
        "ratio": round(ratio, 2),
        "target": f">= {TARGET:g} times as fast",
        "ok": ratio >= TARGET,
    }
    print(json.dumps(figure))
    if ours["refused"]:
        print(f"{ours['refused']} of these files were refused", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
