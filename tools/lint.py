#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers, formatting and clang-tidy. usage: lint.py [--no-tidy] [FILE …]"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

import tidy

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked(*patterns: str) -> list[str]:
    output = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True, text=True)
    return [name for name in output.stdout.split("\0") if name]


def tidy_arguments(name: str) -> list[str]:
    # In what the macros of a test become, the analyzer takes four times as long as all else, and finds nothing. A
    # test or a bench may build a text as it reads best.
    if name.endswith(("_test.cc", "_bench.cc")):
        return ["--checks=-clang-analyzer-*,-performance-inefficient-*,-bugprone-suspicious-missing-comma"]
    return []


def check_with_tidy(names: list[str]) -> int:
    """How many files have findings, each of which is printed."""
    tidy.forget_old()
    failed = remembered = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda name: tidy.check(name, tidy_arguments(name)), names)
        for name, (findings, was_remembered) in zip(names, results):
            remembered += was_remembered
            if findings:
                failed += 1
                print(f"{name}:\n{findings}", flush=True)
    print(f"clang-tidy: {len(names)} files, {remembered} of them unchanged since they were clean")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-tidy", action="store_true", help="only layers and formatting")
    parser.add_argument("files", nargs="*", help="C++ sources; default all")
    options = parser.parse_args()
    failed = 0

    layers = subprocess.run([sys.executable, "tools/check_layers.py"], cwd=ROOT)
    failed += layers.returncode != 0

    sources = tracked("src/*.h", "src/*.cc", "tests/*.h", "tests/*.cc", "bench/*.cc")
    formatting = subprocess.run(["clang-format-19", "--dry-run", "--Werror", *sources], cwd=ROOT)
    failed += formatting.returncode != 0

    if not options.no_tidy:
        chosen = options.files or [name for name in sources if name.endswith(".cc")]
        failed += check_with_tidy(chosen)
    print(f"lint: {failed or 'no'} problem{'s' if failed != 1 else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
