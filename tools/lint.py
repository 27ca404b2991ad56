#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers, formatting and clang-tidy. usage: lint.py [--no-tidy] [FILE …]"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked(*patterns: str) -> list[str]:
    output = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True, text=True)
    return [name for name in output.stdout.split("\0") if name]


def tidy(name: str) -> tuple[str, subprocess.CompletedProcess]:
    command = ["clang-tidy-19", "--quiet", "-p", "build/fuzz", name]
    # In what the macros of a test become, the analyzer takes four times as long as all else, and finds nothing. A
    # test or a bench may build a text as it reads best.
    if name.endswith(("_test.cc", "_bench.cc")):
        command.append("--checks=-clang-analyzer-*,-performance-inefficient-*,-bugprone-suspicious-missing-comma")
    return name, subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


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
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, result in pool.map(tidy, chosen):
                if result.returncode != 0:
                    failed += 1
                    print(f"{name}:\n{result.stdout}{result.stderr if not result.stdout else ''}", flush=True)
    print(f"lint: {failed or 'no'} problem{'s' if failed != 1 else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
