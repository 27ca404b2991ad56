#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the tests, stage by stage, and end with one line "N passed, N failed[, N skipped]".

The quick tier is what CI runs: the release build's unit and system tests, layers and formatting,
the unit tests once more under ASan and UBSan (a build by clang), and every fuzzer for a short time.
--full runs the first stage with its long tests, adds clang-tidy to the second, fuzzes for three minutes
each (`./dev fuzz 600` is the long way), and adds TSan and the benches. Named stages run alone.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Tally:
    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0
        self.failures: list[str] = []

    def add(self, name: str, ok: bool) -> None:
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(name)


def run(command: list[str], env: dict | None = None) -> bool:
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, cwd=ROOT, env=os.environ | (env or {})).returncode == 0


def configure(preset: str) -> bool:
    # Also where it was done before: that writes the headers that are generated, which clang-tidy reads.
    return run(["cmake", "--preset", preset, f"-DPython3_EXECUTABLE={ROOT}/.venv/bin/python"])


def build(preset: str, tally: Tally, *targets: str) -> bool:
    ok = configure(preset) and run(["cmake", "--build", "--preset", preset, *(["--target", *targets] if targets else [])])
    if not ok:
        tally.add(f"build of preset {preset}", False)
    return ok


def ctest(preset: str, tally: Tally, *arguments: str, env: dict | None = None) -> None:
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.xml"
        run(["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--progress", "--no-tests=error",
             "-j", str(os.cpu_count()), "--output-junit", str(report), *arguments], env)
        if not report.is_file():
            tally.add(f"ctest of preset {preset}", False)
            return
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            status = case.get("status")
            if status in {"notrun", "disabled"}:
                tally.skipped += 1
                print(f"skipped: {case.get('name')}")
            else:
                tally.add(f"{preset}: {case.get('name')}", status == "run")


SYMBOLIZER = "/usr/bin/llvm-symbolizer-19"
SANITIZER_ENV = {
    "ASAN_OPTIONS": "allow_user_segv_handler=1:detect_leaks=1:abort_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "LSAN_OPTIONS": "report_objects=1",
}


def release(tally: Tally, full: bool) -> None:
    peers = ROOT / ".venv" / "peers" / "bin" / "python"
    # Runs that tests start without naming a store are not recorded among the user's own.
    env = {"CAISSON_STORE": str(ROOT / "build" / "release" / "runs.db")}
    if build("release", tally):
        ctest("release", tally, *(["-C", "Full"] if full else []),
              env=env | ({"CAISSON_ORCHEO_PYTHON": str(peers)} if peers.is_file() else {}))


def style(tally: Tally, full: bool) -> None:
    if full and not configure("fuzz"):
        tally.add("configuration of preset fuzz", False)
    tally.add("lint", run([sys.executable, "tools/lint.py", *([] if full else ["--no-tidy"])]))


def sanitized(tally: Tally, full: bool) -> None:
    if not build("fuzz", tally):
        return
    ctest("fuzz", tally, "-L", "unit", env=SANITIZER_ENV)
    command = [sys.executable, "tools/run_fuzzers.py", "--seconds", "180" if full else "10"]
    tally.add("fuzzers", run(command))


def threads(tally: Tally, _full: bool) -> None:
    if build("tsan", tally):
        # Wasmtime leaves the handler of a trap for good, so it may allocate in it.
        options = f"halt_on_error=1:report_signal_unsafe=0:suppressions={ROOT}/tools/tsan.supp"
        ctest("tsan", tally, "-L", "unit", env={"TSAN_OPTIONS": f"{options}:external_symbolizer_path={SYMBOLIZER}"})


def benches(tally: Tally, _full: bool) -> None:
    if build("bench", tally):
        tally.add("benches", run([sys.executable, "bench/run.py"]))


STAGES = {"release": release, "style": style, "sanitized": sanitized, "threads": threads, "benches": benches}
QUICK = ["release", "style", "sanitized"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    options = parser.parse_args()
    for name in set(options.stages) - set(STAGES):
        parser.error(f"there is no stage {name}; the stages are {', '.join(STAGES)}")
    names = options.stages or (STAGES if options.full else QUICK)
    tally = Tally()
    for name in names:
        start = time.monotonic()
        STAGES[name](tally, options.full)
        print(f"== {name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    for name in tally.failures:
        print(f"FAILED: {name}")
    skipped = f", {tally.skipped} skipped" if tally.skipped else ""
    print(f"{tally.passed} passed, {tally.failed} failed{skipped}")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
