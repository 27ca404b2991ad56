#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds api/ir.schema.json against the IRs of the corpus and the golden cases: what the compiler wrote
and the loader took must fit, and what the loader refuses for its form must not.

Exit status: 0 it fits, 1 it does not, 77 the package jsonschema is missing.
"""

import json
import pathlib
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What only the loader sees: references, policies, bodies, the text of the document.
BEYOND_FORM = ("ir.duplicate_id", "ir.unknown_type", "ir.entrypoint", "ir.unknown_node", "ir.injected",
               "ir.too_deep", "ir.model", "ir.credential_in_code", "policy.", "body.", "json.")


def good_irs():
    for path in sorted((ROOT / "tests/corpora/workflows").glob("*.json")):
        answer = json.loads(path.read_text())
        if answer["ok"]:
            yield path.name, answer["ir"]
    for area in ("workflow", "ir"):
        for path in sorted((ROOT / "tests/golden" / area).glob("*/expected.json")):
            report = json.loads(path.read_text())
            if "ir" in report:
                yield f"{area}/{path.parent.name}", report["ir"]


def refused_irs():
    for path in sorted((ROOT / "tests/golden/ir").glob("bad_*/ir.json")):
        report = json.loads((path.parent / "expected.json").read_text())
        first = report["diagnostics"][0]["code"]
        if not first.startswith(BEYOND_FORM):
            yield path.parent.name, json.loads(path.read_bytes())


def check():
    try:
        import jsonschema
    except ImportError:
        print("skipped: the Python package jsonschema is not installed")
        return 77
    schema = json.loads((ROOT / "api/ir.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good, refused, wrong = 0, 0, 0
    for name, ir in good_irs():
        good += 1
        for error in validator.iter_errors(ir):
            wrong += 1
            print(f"{name}: {error.json_path}: {error.message[:200]}")
    for name, ir in refused_irs():
        refused += 1
        if validator.is_valid(ir):
            wrong += 1
            print(f"{name}: the loader refuses its form, the schema does not")
    print(f"{good} good and {refused} refused IRs, {wrong} wrong")
    return 1 if wrong or not good or not refused else 0


def main():
    # The validator recurses through a dozen frames per level of the IR.
    sys.setrecursionlimit(100_000)
    threading.stack_size(512 << 20)
    result = []
    thread = threading.Thread(target=lambda: result.append(check()))
    thread.start()
    thread.join()
    return result[0] if result else 1


if __name__ == "__main__":
    sys.exit(main())
