#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run every built libFuzzer target for a while, as many at a time as there are cores.

Each fuzzer <name>_fuzz starts from fuzz/corpus/<name>/ (if there) with fuzz/<name>.dict (if there)
and works in build/fuzz/corpus/<name>/, which is kept. A finding's input is left in
build/fuzz/findings/ and its report printed. Exit code 1 on any finding.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"


def fuzz(program: pathlib.Path, seconds: int) -> tuple[str, int, str]:
    name = program.name.removesuffix("_fuzz")
    work, findings = BUILD / "corpus" / name, BUILD / "findings"
    work.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    command = [str(program), f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1",
               f"-artifact_prefix={findings}/{name}-"]
    dictionary = ROOT / "fuzz" / f"{name}.dict"
    if dictionary.is_file():
        command.append(f"-dict={dictionary}")
    command.append(str(work))
    seeds = ROOT / "fuzz" / "corpus" / name
    if seeds.is_dir():
        command.append(str(seeds))
    environment = os.environ | {"ASAN_OPTIONS": "allow_user_segv_handler=1:detect_leaks=1"}
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    return name, result.returncode, result.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("names", nargs="*", help="fuzzers without _fuzz; default all")
    options = parser.parse_args()
    programs = sorted(path for path in BUILD.rglob("*_fuzz") if path.is_file() and os.access(path, os.X_OK))
    if options.names:
        programs = [path for path in programs if path.name.removesuffix("_fuzz") in options.names]
    if not programs:
        print("no fuzzer is built; ./dev build fuzz", file=sys.stderr)
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, report in pool.map(lambda path: fuzz(path, options.seconds), programs):
            runs = re.search(r"number_of_executed_units: (\d+)", report)
            print(f"{name}: {runs.group(1) if runs else '?'} runs, {'clean' if code == 0 else f'FINDING (exit {code})'}", flush=True)
            if code != 0:
                failed += 1
                print("\n".join(report.splitlines()[-60:]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
