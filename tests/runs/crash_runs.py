#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the process of runs with SIGKILL at random moments and goes on with them until they end, then looks whether
everything that was told is so:

- each event that a process had told is in the record, with the same content, and none is there twice;
- a node that had finished never ran again, and every node's start has its end;
- the run ends as one that nobody disturbed, as do forks from its steps;
- a run whose process was killed is shown as crashed, and can be taken up at once.

    crash_runs.py BIN --runs N [--seed N]
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WORKFLOW = HERE / "crash_workflow.py"
INPUT = json.dumps({"items": [3, 1, 4, 1, 5, 9, 2, 6], "name": "Ann"})
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "CAISSON_STORE"}


class Failure(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(str(part) for part in what))


class Program:
    def __init__(self, folder: pathlib.Path, binaries: str, generator: random.Random):
        self.command = [f"{binaries}/caisson"]
        self.store = folder / "runs.db"
        self.folder = folder
        self.generator = generator
        self.kills = 0

    def call(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([*self.command, *arguments, "--store", str(self.store)], capture_output=True, text=True,
                              env=ENVIRONMENT, timeout=120, check=False)

    def json(self, *arguments: str):
        done = self.call(*arguments)
        expect(done.returncode == 0, arguments, "failed:", done.stderr)
        return json.loads(done.stdout)

    def attempt(self, told: pathlib.Path, delay: float | None, *arguments: str) -> int | None:
        """The exit code; None when it was killed."""
        process = subprocess.Popen([*self.command, *arguments, "--store", str(self.store), "--events-file", str(told), "-q"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
        if delay is not None:
            time.sleep(delay)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                self.kills += 1
        _, errors = process.communicate(timeout=120)
        expect(process.returncode in (0, 9, -9, 6), arguments, "ended with", process.returncode, errors)
        return None if process.returncode == -9 else process.returncode

    def events(self, run: str) -> list[dict]:
        done = self.call("runs", "events", run)
        expect(done.returncode == 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


def whole_lines(path: pathlib.Path) -> list[dict]:
    """What a process told, without a last line that it was writing."""
    if not path.exists():
        return []
    text = path.read_bytes()
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def check_record(events: list[dict], told: list[dict]):
    expect([event["sequence"] for event in events] == list(range(1, len(events) + 1)), "numbers have gaps")
    by_number = {event["sequence"]: event for event in events}
    for event in told:
        expect(by_number.get(event["sequence"]) == event, "told, but not so in the record:", event)
    open_visits = {}
    finished = collections.Counter()
    for event in events:
        visit = (event.get("graph"), event.get("node"), event.get("step"))
        if event["event"] == "run_resumed":
            open_visits.clear()  # the process had gone with them
        elif event["event"] == "node_started":
            expect(visit not in finished, "ran again:", event)
            expect(visit not in open_visits, "began twice:", event)
            open_visits[visit] = event
        elif event["event"] == "node_finished":
            expect(visit in open_visits, "ended without a beginning:", event)
            del open_visits[visit]
            finished[visit] += 1
        elif event["event"] == "node_interrupted":
            del open_visits[visit]
    expect(not open_visits, "has no end:", open_visits)
    expect(set(finished.values()) == {1}, "finished twice:", finished)


def results_of(state: dict) -> dict:
    return {"node_results": state["node_results"],
            "messages": [message["content"] for message in state["messages"]],
            "reply": state.get("assistant_message")}


def one_round(program: Program, number: int, expected: dict, span: float):
    told = program.folder / "told.jsonl"
    told.unlink(missing_ok=True)
    known = {run["id"] for run in program.json("runs", "list", "--json", "--limit", "1000000")["runs"]}
    code = program.attempt(told, program.generator.uniform(0, span), "run", "--mode", "restricted", str(WORKFLOW),
                           "--input", INPUT, "--workers", "1")
    heard = whole_lines(told)
    new = [run for run in program.json("runs", "list", "--json", "--limit", "1000000")["runs"] if run["id"] not in known]
    if not new:
        expect(not heard and code is None, "told of a run that is not there")
        return
    run = new[0]["id"]
    for _ in range(200):
        shown = program.json("runs", "show", run)
        if shown["status"] == "succeeded":
            break
        expect(shown["status"] in ("crashed", "interrupted"), "is shown as", shown["status"])
        answers = ["--answer", 'outer/ask="yes"'] if shown["status"] == "interrupted" else []
        expect(len(answers) == 0 or shown["questions"][0]["node_path"] == "outer/ask", shown.get("questions"))
        told.unlink(missing_ok=True)
        delay = program.generator.uniform(0, span) if program.generator.random() < 0.7 else None
        program.attempt(told, delay, "runs", "resume", run, "--workers", "1", *answers)
        heard += whole_lines(told)
    shown = program.json("runs", "show", run)
    expect(shown["status"] == "succeeded", "did not end:", shown["status"])
    expect(results_of(shown["state"]) == expected, "ended otherwise:", results_of(shown["state"]))
    check_record(program.events(run), heard)
    if number % 10 == 0:
        fork_ends_alike(program, run, shown["steps"], expected)
    program.call("runs", "rm", run)


def fork_ends_alike(program: Program, run: str, steps: int, expected: dict):
    step = program.generator.randint(0, steps)
    forked = program.call("runs", "fork", run, "--step", str(step), "--report", "--workers", "1")
    report = json.loads(forked.stdout)
    if report["status"] == "interrupted":
        done = program.call("runs", "resume", report["run_id"], "--value", '"yes"', "--report", "--workers", "1")
        report = json.loads(done.stdout)
    expect(report["status"] == "succeeded", "the fork ended with", report["status"], report["error"])
    expect(results_of(report["state"]) == expected, "the fork from", step, "ended otherwise")


def undisturbed(program: Program) -> tuple[dict, float]:
    """What the run ends with, and how long its first part takes."""
    start = time.monotonic()
    program.attempt(program.folder / "calm.jsonl", None, "run", "--mode", "restricted", str(WORKFLOW), "--input", INPUT,
                    "--workers", "1")
    span = time.monotonic() - start
    run = program.json("runs", "list", "--json")["runs"][0]["id"]
    done = program.call("runs", "resume", run, "--value", '"yes"', "--workers", "1")
    expect(done.returncode == 0, done.stderr)
    return results_of(json.loads(done.stdout)), span


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="caisson-crash-") as folder:
        program = Program(pathlib.Path(folder), options.binaries, random.Random(options.seed))
        expected, span = undisturbed(program)
        for number in range(options.runs):
            try:
                one_round(program, number, expected, span)
            except Failure as failure:
                print(f"run {number} of seed {options.seed}: {failure}")
                return 1
    print(f"{options.runs} runs, {program.kills} kills: everything that was told is so")
    expect(program.kills > options.runs / 2, "hardly anything was killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
