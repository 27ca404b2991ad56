#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrates the workflows here and holds the results against the cases, and against the originals'
own runs where orcheo can be had. usage: check_migrated.py BIN [NAME …]

BIN is the folder of the programs. Of a case, what it expects is compared with the final state of
`caisson run`: fields of Orcheo's state where they are, a field of the workflow's own where its
value lives now: in node_results, else in inputs.

Exit status: 0 all as expected, 1 something was not, 77 all is well but there was no orcheo to
compare with."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "workflow"))

from check_originals import differences  # noqa: E402
from orcheo_process import SKIPPED, find_python  # noqa: E402

BASE_FIELDS = {"assistant_message", "config", "inputs", "messages", "node_results", "structured_response", "workspace_id"}
REFUSED = 3


class Caisson:
    def __init__(self, folder, records):
        self.program = pathlib.Path(folder).resolve() / "caisson"
        self.environment = {**os.environ, "CAISSON_STORE": f"{records}/runs.db"}

    def __call__(self, *arguments, text=None):
        return subprocess.run(
            [self.program, *arguments], input=text, capture_output=True, text=True, timeout=300, env=self.environment
        )


def own_field(state, key):
    """Where a field that is not Orcheo's lives after migration."""
    for home in ("node_results", "inputs"):
        if key in state[home]:
            return state[home][key]
    return None


def compare(expected, state, where):
    for key, value in expected.items():
        actual = state[key] if key in BASE_FIELDS else own_field(state, key)
        yield from differences(value, actual, f"{where}.{key}")


def run_case(caisson, file, inputs):
    process = caisson("run", "--mode", "restricted", file, "--input", json.dumps(inputs))
    if process.returncode:
        raise RuntimeError(f"status {process.returncode}: {process.stderr}")
    return json.loads(process.stdout)


def original_states(python, file, cases):
    lines = "".join(json.dumps(case["inputs"]) + "\n" for case in cases)
    process = subprocess.run(
        [python, HERE / "run_original.py", file], input=lines, capture_output=True, text=True, timeout=300
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    return [answer.get("state") for answer in answers]


def comparable(original):
    """The part of an original's final state that a migrated run has too."""
    left_out = {"config", "inputs", "workspace_id", "messages", "structured_response"}
    inputs = original.get("inputs", {})
    return {key: value for key, value in original.items() if key not in left_out and key not in inputs}


def check_workflow(caisson, python, file, folder):
    """Yields what is wrong with a file that is to be migrated without a decision."""
    result = folder / file.name
    process = caisson("migrate", file, "-o", result)
    if process.returncode:
        yield f"{file.name}: migrate: status {process.returncode}: {process.stderr}"
        return
    checked = caisson("check", result)
    if checked.returncode:
        yield f"{file.name}: check refuses what migrate gave: {checked.stderr}"
        return
    yield from check_again(caisson, result)
    cases = json.loads(file.with_suffix(".cases.json").read_text(encoding="utf-8"))
    originals = original_states(python, file, cases) if python else [None] * len(cases)
    if len(originals) != len(cases) or not cases:
        yield f"{file.name}: {len(originals)} runs of the original for {len(cases)} cases"
        return
    for number, (case, original) in enumerate(zip(cases, originals)):
        where = f"{file.name}: case {number}: state"
        try:
            state = run_case(caisson, result, case["inputs"])
        except RuntimeError as error:
            yield f"{where}: {error}"
            continue
        yield from compare(case["expect"], state, where)
        if original is not None:
            yield from compare(comparable(original), state, f"{where} (as the original's)")


def check_again(caisson, result):
    before = result.read_text(encoding="utf-8")
    process = caisson("migrate", result, "-o", "-")
    if process.returncode or process.stdout != before:
        yield f"{result.name}: migrating it again changes it: status {process.returncode}"


def check_decisions(caisson, file):
    """Yields the decisions that are listed beside `file` and not found."""
    listed = json.loads(file.with_name(f"{file.stem}.decisions.json").read_text(encoding="utf-8"))
    before = file.read_bytes()
    process = caisson("migrate", file, "--json")
    if process.returncode != REFUSED:
        yield f"{file.name}: migrate: status {process.returncode}, not {REFUSED}"
        return
    answer = json.loads(process.stdout)
    found = {each["line"] for each in answer["findings"]["diagnostics"] if each["severity"] == "error"}
    if answer["done"]:
        yield f"{file.name}: is done, although a person must decide"
    for decision in listed:
        if decision["line"] not in found:
            yield f"{file.name}:{decision['line']}: {decision['decide']}: not reported"
    for option in ("--in-place", "--check"):
        if caisson("migrate", file, option).returncode != REFUSED or file.read_bytes() != before:
            yield f"{file.name}: {option} does not leave it alone"


def main():
    caisson_folder, names = sys.argv[1], set(sys.argv[2:])
    python = find_python()
    failures, counts = [], {"migrated": 0, "undecided": 0}
    with tempfile.TemporaryDirectory(prefix="caisson-migrate-") as name:
        folder = pathlib.Path(name)
        caisson = Caisson(caisson_folder, name)
        files = sorted([*HERE.glob("workflows/*.py"), *HERE.glob("refused/*.py")])
        for file in files:
            if names and file.stem not in names:
                continue
            if file.with_name(f"{file.stem}.decisions.json").exists():
                counts["undecided"] += 1
                failures += check_decisions(caisson, file)
            else:
                counts["migrated"] += 1
                failures += check_workflow(caisson, python, file, folder)
    if not names and (counts["migrated"] < 10 or counts["undecided"] < 8):
        failures.append(f"{HERE}: workflows are missing")
    print(*failures, sep="\n", end="\n" if failures else "")
    peers = "compared with the originals" if python else "no orcheo to compare with: skipped"
    print(f"{counts['migrated']} migrated and run ({peers}), {counts['undecided']} with decisions, {len(failures)} failures")
    if failures:
        return 1
    return 0 if python else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
