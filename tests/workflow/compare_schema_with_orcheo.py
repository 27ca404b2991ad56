#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the JSON Schemas of schema classes, and what is refused in them, with orcheo's.

Schemas are compared as text, so that the order of keys counts. Exit status: 0 agreed, 1 did not, 77 no
interpreter with orcheo was found.
"""

import argparse
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare_with_orcheo  # noqa: E402
import orcheo_process  # noqa: E402
import schema_cases  # noqa: E402


# An option that means nothing for a model makes the library copy the model under a name of its own.
CLASSES = {"Other", "Third"}


def is_library_accident(peer):
    if not peer["ok"]:
        return False
    schema = peer["ir"]["nodes"][0]["config"]["response_format"]
    return not set(schema.get("$defs", {})) <= CLASSES


def asked_afresh(python, source):
    """The answer of a process of its own: Python's cache of unions, which ignores the order of their
    members, lets one source change what the next one gets."""
    fresh = orcheo_process.Compiler([python, str(orcheo_process.PEER)])
    answer = fresh(source)
    fresh.close()
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the compile_tool program")
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show-texts", action="store_true",
                        help="show where only the library's own words differ")
    arguments = parser.parse_args()
    python = orcheo_process.find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one")
        return orcheo_process.SKIPPED
    theirs = orcheo_process.Compiler([python, str(orcheo_process.PEER)])
    ours = orcheo_process.Compiler([arguments.tool])
    tally = collections.Counter()
    for name, source in schema_cases.cases(arguments.random, arguments.seed):
        peer, mine = theirs(source), ours(source)
        tally["compared"] += 1
        tally["accepted by both"] += bool(peer["ok"] and mine["ok"])
        tally["rejected by both"] += bool(peer["ok"] is False and not mine["ok"])
        tally["rejected by ours only"] += bool(peer["ok"] and not mine["ok"])
        tally["orcheo failed"] += peer["ok"] is None
        errors = [d for d in mine["diagnostics"] if d["severity"] == "error"]
        if peer["ok"] is False and errors and peer["error"] == errors[0]["message"]:
            tally["same text"] += 1
        elif peer["ok"] is False and errors and arguments.show_texts:
            print(f"{name}\n  orcheo: {peer['error']!r}\n  ours:   {errors[0]['message']!r}")
        what = compare_with_orcheo.difference(peer, mine)
        if what is not None and not is_library_accident(peer):
            what = compare_with_orcheo.difference(asked_afresh(python, source), mine)
        if peer["ok"] and not mine["ok"]:
            what = what or f"only ours refuses it: {errors[0]['message']}"
        if what is not None and is_library_accident(peer):
            tally["definition named by the library"] += 1
        elif what is not None:
            tally["differences"] += 1
            print(f"{name}: {what}")
    print(", ".join(f"{count} {what}" for what, count in tally.items()))
    return 1 if tally["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
