#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What migration puts in the place of functions that the guest lacks gives what CPython gives: the
function below is run by this interpreter, and migrated and run in the isolate, on the same values,
most of them drawn at random (always the same ones). usage: check_replacements.py BIN"""

import json
import math  # noqa: F401: the function under test uses it
import os
import pathlib
import random
import subprocess
import sys
import tempfile

FUNCTION = '''
def work(state):
    results = []
    for x in state["inputs"]["numbers"]:
        results.append([round(x, 2), round(x, 0), round(x, 15), math.floor(x), math.ceil(x), math.trunc(x), math.fabs(x)])
    rows = state["inputs"]["rows"]
    ordered = [
        sorted(rows, key=lambda row: row["k"]),
        sorted(rows, key=lambda row: row["k"], reverse=True),
    ]
    rows = list(rows)
    rows.sort(key=lambda row: row["k"])
    ordered.append(rows)
    texts = [text.capitalize() for text in state["inputs"]["words"]]
    dumped = [json.dumps(value, sort_keys=True) for value in state["inputs"]["values"]]
    both = {**state["inputs"]["left"], "c": 1, **state["inputs"]["right"]}
    return {"node_results": {"work": [results, ordered, texts, dumped, both]}}
'''
BUILDER = '''
graph = StateGraph(State)
graph.add_node("work", work)
graph.add_edge(START, "work")
'''
HEAD = "import json\nimport math\nfrom langgraph.graph import START, StateGraph\nfrom orcheo.graph.state import State\n\n"


def numbers(draw):
    yield from (0.125, 0.375, 2.675, 1.005, -0.125, -0.001, 0.5, 1.5, 2.5, 1e15, 123456789.125, 5e-324, 3, -7, 0)
    for _ in range(60):
        yield draw.uniform(-1000, 1000)
    for _ in range(30):
        yield draw.randrange(-8000, 8000) / 8
    for _ in range(20):
        yield draw.randrange(-100000, 100000) / 1000


def value(draw, depth=0):
    kind = draw.randrange(6 if depth < 3 else 4)
    if kind == 0:
        return draw.choice([None, True, False])
    if kind == 1:
        return draw.randrange(-(10**12), 10**12)
    if kind < 4:
        return "".join(draw.choice('ab"\\/\n\r\t\b\f\x00\x1f\x7fä€😀') for _ in range(draw.randrange(8)))
    if kind == 4:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {f"{draw.choice('abcä')}{draw.randrange(9)}": value(draw, depth + 1) for _ in range(draw.randrange(4))}


def inputs(seed):
    draw = random.Random(seed)
    return {
        "numbers": [*numbers(draw)] if seed < 3 else [],
        "rows": [{"k": draw.randrange(3), "n": n} for n in range(draw.randrange(12))],
        "words": ["", "a", "ABC", "two Words", "x1Y", *(value(draw, 9) for _ in range(3))] if seed == 0 else ["aB", "Cd"],
        "values": [value(draw) for _ in range(6)],
        "left": {"a": 1, "b": 2},
        "right": {"b": draw.randrange(9), "d": None},
    }


def expected(given):
    names = {}
    exec(compile(HEAD.split("from langgraph")[0] + FUNCTION, "work", "exec"), names)
    return names["work"]({"inputs": given})["node_results"]["work"]


def ascii_words(given):
    """Letters beyond ASCII are known to differ, and noted when a file is migrated."""
    given["words"] = [word for word in given["words"] if isinstance(word, str) and word.isascii()]
    return given


def main():
    program = pathlib.Path(sys.argv[1]).resolve() / "caisson"
    failures = 0
    with tempfile.TemporaryDirectory(prefix="caisson-migrate-") as name:
        file = pathlib.Path(name) / "workflow.py"
        file.write_text(HEAD + FUNCTION.lstrip() + "\n" + BUILDER, encoding="utf-8")
        environment = {**os.environ, "CAISSON_STORE": f"{name}/runs.db"}
        migrated = subprocess.run([program, "migrate", file, "--in-place"], capture_output=True, text=True)
        if migrated.returncode:
            print(migrated.stderr)
            return 1
        for seed in range(30):
            given = ascii_words(inputs(seed))
            command = [program, "run", "--mode", "restricted", file, "--input", "-"]
            process = subprocess.run(
                command, input=json.dumps(given), capture_output=True, text=True, env=environment, timeout=120
            )
            if process.returncode:
                print(f"seed {seed}: status {process.returncode}: {process.stderr}")
                return 1
            actual = json.loads(process.stdout)["node_results"]["work"]
            # As text too: 1 and 1.0 are equal, and -0.0 and 0.0.
            wanted = json.loads(json.dumps(expected(given)))
            if json.dumps(actual, sort_keys=True) != json.dumps(wanted, sort_keys=True):
                failures += 1
                print(f"seed {seed}: differs")
                for part, (one, other) in enumerate(zip(actual, wanted)):
                    for a, b in zip(one, other) if isinstance(one, list) else [(one, other)]:
                        if json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True):
                            print(f"  part {part}: {a!r}, not {b!r}")
    print(f"30 sets of values, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
