#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the workflows here against their own cases, under the packages that they were written for,
runs their demo blocks, and looks that the lines in each *.decisions.json are what it says they are.

Exit status: 0 all as expected, 1 something was not, 77 the lines are right but there is no orcheo."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "workflow"))

from orcheo_process import SKIPPED, find_python  # noqa: E402


def differences(expected, actual, path):
    """Objects are compared by the members that are expected, all else wholly."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key not in actual:
                yield f"{path}.{key} is missing"
            else:
                yield from differences(value, actual[key], f"{path}.{key}")
    elif expected != actual:
        yield f"{path} is {actual!r}, not {expected!r}"


def run_cases(python, file):
    cases = json.loads(file.with_suffix(".cases.json").read_text(encoding="utf-8"))
    lines = "".join(json.dumps(case["inputs"]) + "\n" for case in cases)
    command = [python, HERE / "run_original.py", file]
    process = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120)
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    if len(answers) != len(cases) or not cases:
        yield f"{file.name}: {len(answers)} answers to {len(cases)} cases: {process.stdout}{process.stderr}"
        return
    for number, (case, answer) in enumerate(zip(cases, answers)):
        where = f"{file.name}: case {number}"
        if not answer["ok"]:
            yield f"{where}: {answer['type']}: {answer['error']}"
        else:
            yield from differences(case["expect"], answer["state"], f"{where}: state")


def load(python, file):
    """What is refused is refused for what it does, not because it is broken."""
    command = [python, HERE / "run_original.py", file]
    process = subprocess.run(command, input="", capture_output=True, text=True, timeout=120)
    if process.returncode:
        yield f"{file.name}: does not load: {process.stdout}{process.stderr}"


def run_demo(python, file):
    if '__name__ == "__main__"' not in file.read_text(encoding="utf-8"):
        return
    process = subprocess.run([python, file], capture_output=True, text=True, timeout=120)
    if process.returncode or not process.stdout:
        yield f"{file.name}: demo: status {process.returncode}, printed {process.stdout!r}: {process.stderr}"


def check_decisions(file):
    source = file.with_name(file.name.replace(".decisions.json", ".py"))
    lines = source.read_text(encoding="utf-8").splitlines()
    decisions = json.loads(file.read_text(encoding="utf-8"))
    if not decisions:
        yield f"{file.name}: has no decision"
    for decision in decisions:
        number = decision["line"]
        line = lines[number - 1] if 0 < number <= len(lines) else ""
        if not decision["text"] or decision["text"] not in line or not decision["decide"]:
            yield f"{source.name}:{number}: has no {decision['text']!r} that could be decided on"


def main():
    failures = []
    decisions = sorted(HERE.glob("*/*.decisions.json"))
    for file in decisions:
        failures += check_decisions(file)
    refused = sorted((HERE / "refused").glob("*.py"))
    for file in refused:
        if not file.with_suffix(".decisions.json").exists():
            failures.append(f"{file.name}: has no decisions")

    python = find_python()
    workflows = sorted((HERE / "workflows").glob("*.py"))
    if not workflows or not decisions or not refused:
        failures.append(f"{HERE}: workflows or decisions are missing")
    for file in workflows if python else []:
        failures += run_cases(python, file)
        failures += run_demo(python, file)
    for file in refused if python else []:
        failures += load(python, file)
    print(*failures, sep="\n", end="\n" if failures else "")
    ran = len(workflows) if python else 0
    print(f"{ran} workflows run, {len(refused)} refused, {len(decisions)} lists of decisions, {len(failures)} failures")
    if failures:
        return 1
    return 0 if python else SKIPPED


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
