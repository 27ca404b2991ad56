#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the compiler with orcheo's on the corpus, the golden cases and mutations of both.

Where orcheo rejects a file, our first error must have its text and its line; where it accepts one, we
must give the same IR and index, or refuse with errors that are ours only (section "where we differ" of
docs/compatibility.md).

Exit status: 0 agreed, 1 did not, 77 no interpreter with orcheo was found.
"""

import argparse
import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutations  # noqa: E402
import orcheo_process  # noqa: E402

TESTS = pathlib.Path(__file__).resolve().parent.parent


def sources():
    found = {path.stem: path for path in sorted((TESTS / "corpora" / "workflows").glob("*.py"))}
    found |= {path.parent.name: path for path in sorted((TESTS / "golden" / "workflow").glob("*/workflow.py"))}
    return {name: path.read_bytes().decode() for name, path in found.items()}


def same_text(theirs, ours):
    theirs = theirs.encode("utf-8", "backslashreplace").decode()  # as ours shows lone surrogates
    if theirs == ours:
        return True
    if theirs.startswith("config value is not a JSON literal: "):
        return ours.startswith("config value is not a JSON literal: ")
    allowed = "declares a field name that is not allowed: "
    if allowed in theirs:
        return ours.startswith(theirs[: theirs.index(allowed) + len(allowed)])
    if "node id must be a non-empty string: " in theirs:
        return ours.startswith(theirs[: theirs.index(": ")])
    return False


def difference(theirs, ours):
    """What differs, as text; None when the answers agree; a code when ours is stricter on purpose."""
    errors = [d for d in ours["diagnostics"] if d["severity"] == "error"]
    if theirs["ok"] is None:
        return None
    if not theirs["ok"]:
        if not errors:
            return f"orcheo rejects it: line {theirs['line']}: {theirs['error']}"
        first = errors[0]
        if first["code"] == "workflow.reserved_key":
            return None  # a forged marker; which of its own checks orcheo stops at does not matter
        if first.get("peer_accepts"):
            return f"orcheo rejects it: line {theirs['line']}: {theirs['error']}; ours: {first['message']}"
        if not same_text(theirs["error"], first["message"]) or theirs["line"] != first["peer_line"]:
            return (
                f"orcheo: line {theirs['line']}: {theirs['error']}\n"
                f"  ours:   line {first['peer_line']}: {first['message']}"
            )
        return None
    if not ours["ok"]:
        unexpected = [d for d in errors if not d.get("peer_accepts")]
        if unexpected:
            return f"orcheo accepts it; ours: line {unexpected[0]['peer_line']}: {unexpected[0]['message']}"
        return None
    # As text, so that the order of keys counts, and 1, 1.0 and true are three values.
    if json.dumps(theirs["ir"]) != json.dumps(ours["ir"]):
        return f"the IR differs\n  orcheo: {theirs['ir']}\n  ours:   {ours['ir']}"
    if json.dumps(theirs["index"], sort_keys=True) != json.dumps(ours["index"], sort_keys=True):
        return f"the index differs\n  orcheo: {theirs['index']}\n  ours:   {ours['index']}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the compile_tool program")
    parser.add_argument("--mutations", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--verbose", action="store_true", help="show where only one of them refuses")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory for the sources that differ")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")
    python = orcheo_process.find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one")
        return orcheo_process.SKIPPED

    theirs = orcheo_process.Compiler([python, str(orcheo_process.PEER)])
    ours = orcheo_process.Compiler([arguments.tool])
    tally = collections.Counter()
    known = sources()
    cases = [(name, source) for name, source in known.items()]
    for name, source in [*cases, *mutations.mutations(known, arguments.mutations, arguments.seed)]:
        if arguments.only and arguments.only not in name:
            continue
        peer, mine = theirs(source), ours(source)
        tally["compared"] += 1
        tally["accepted by both"] += bool(peer["ok"] and mine["ok"])
        tally["rejected by both"] += bool(peer["ok"] is False and not mine["ok"])
        tally["rejected by ours only"] += bool(peer["ok"] and not mine["ok"])
        tally["orcheo failed"] += peer["ok"] is None
        if arguments.verbose and bool(peer["ok"]) != mine["ok"]:
            print(f"{name}: orcheo: {peer.get('error', 'accepts it')}; ours: {mine['diagnostics'][:1]}")
        what = difference(peer, mine)
        if what is None:
            continue
        tally["differences"] += 1
        print(f"{name}: {what}")
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            (arguments.keep / f"{name}.py").write_text(source)
    print(", ".join(f"{count} {what}" for what, count in tally.items()))
    return 1 if tally["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
