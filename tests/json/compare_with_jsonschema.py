#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares verdicts on values with those of PyPI's jsonschema (Draft202012Validator).

Schemas are random ones, and those of Pydantic models where an interpreter with Pydantic is found.
Exit status: 0 agreed, 1 did not, 77 there is no jsonschema.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

import schema_pairs

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77

try:
    import jsonschema
except ImportError:
    print("skipped: this interpreter has no jsonschema")
    sys.exit(SKIPPED)


def pydantic_schemas():
    for python in (os.environ.get("CAISSON_ORCHEO_PYTHON"), sys.executable):
        if python is None:
            continue
        done = subprocess.run([python, str(HERE / "pydantic_schemas.py")], capture_output=True, text=True)
        if done.returncode == 0:
            return [json.loads(line) for line in done.stdout.splitlines()]
    return []


def pairs(count, seed):
    maker = schema_pairs.Maker(seed)
    for _ in range(count):
        schema = maker.schema()
        for _ in range(4):
            yield "random", schema, maker.fitting(schema, schema) if isinstance(schema, dict) else maker.value()
    for schema in pydantic_schemas():
        for _ in range(max(20, count // 20)):
            yield "pydantic", schema, maker.fitting(schema, schema)


def answers(tool, cases):
    lines = "".join(json.dumps([schema, value]) + "\n" for _, schema, value in cases)
    done = subprocess.run([tool], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the schema_tool program")
    parser.add_argument("--random", type=int, default=1000, help="schemas, with four values each")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    cases = list(pairs(arguments.random, arguments.seed))
    mine = answers(arguments.tool, cases)
    assert len(mine) == len(cases), "an answer is missing"
    tally, wrong = collections.Counter(), 0
    for (origin, schema, value), answer in zip(cases, mine):
        expected = jsonschema.Draft202012Validator(schema).is_valid(value)
        verdict = answer.get("ok")
        tally[f"{origin}: {'valid' if verdict else 'invalid' if verdict is False else answer['error']}"] += 1
        if verdict is not expected:
            wrong += 1
            if wrong <= 10:
                print(f"schema  {json.dumps(schema)}\nvalue   {json.dumps(value)}\ntheirs  {expected}\nours    {answer}\n")
    for name, count in sorted(tally.items()):
        print(f"{count:7} {name}")
    if not any(name.startswith("pydantic") for name in tally):
        print("no interpreter with Pydantic: its schemas were left out")
    print(f"{wrong} of {len(cases)} verdicts differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
