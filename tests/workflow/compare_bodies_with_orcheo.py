#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares code bodies with orcheo: what is refused, with which text and line, and the text that is
kept.

The text may differ where orcheo's does not mean what the author wrote; then ours must. Exit status: 0
agreed, 1 did not, 77 no interpreter with orcheo was found.
"""

import argparse
import ast
import collections
import os
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import body_cases  # noqa: E402
import compare_with_orcheo  # noqa: E402
import orcheo_process  # noqa: E402


class _WithoutBareStrings(ast.NodeTransformer):
    def visit_Expr(self, node):
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)


def meaning(statements):
    """Statements as text, without the strings that mean nothing."""
    module = ast.Module(body=statements, type_ignores=[])
    return ast.dump(_WithoutBareStrings().visit(module))


def parse_body(text):
    """Meaning of a body's text, or None when it is no Python."""
    first = next((line for line in text.split("\n") if line.strip() and not line.strip().startswith("#")), "")
    try:
        if first[:1] in " \t":
            return meaning(ast.parse("if True:\n" + text).body[0].body)
        return meaning(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return None


def written_body(source):
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef):
            runs = [m for m in statement.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)]
            return meaning(runs[-1].body)


def body_difference(source, peer, mine):
    """(what differs or None, whether ours is a canonical text where orcheo's means something else)."""
    if not (peer["ok"] and mine["ok"]):
        return compare_with_orcheo.difference(peer, mine), False
    theirs, ours = (side["ir"]["nodes"][0]["body"] for side in (peer, mine))
    if theirs == ours:
        if parse_body(ours) != written_body(source):
            return f"both texts mean something else: {ours!r}", False
        return compare_with_orcheo.difference(peer, mine), False
    if parse_body(theirs) == written_body(source):
        return f"the text differs without need\n  orcheo: {theirs!r}\n  ours:   {ours!r}", False
    if parse_body(ours) != written_body(source):
        return f"our text means something else: {ours!r}", False
    return None, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the compile_tool program")
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    python = orcheo_process.find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one")
        return orcheo_process.SKIPPED
    if sys.version_info < (3, 12):  # bodies are parsed here as well
        os.execv(python, [python, __file__, *sys.argv[1:]])
    warnings.simplefilter("ignore")
    theirs = orcheo_process.Compiler([python, str(orcheo_process.PEER)])
    ours = orcheo_process.Compiler([arguments.tool])
    tally = collections.Counter()
    for name, source in body_cases.cases(arguments.random, arguments.seed):
        peer, mine = theirs(source), ours(source)
        what, canonical = body_difference(source, peer, mine)
        tally["compared"] += 1
        tally["accepted by both"] += bool(peer["ok"] and mine["ok"])
        tally["rejected by both"] += bool(peer["ok"] is False and not mine["ok"])
        tally["rejected by ours only"] += bool(peer["ok"] and not mine["ok"])
        tally["orcheo failed"] += peer["ok"] is None
        tally["canonical where orcheo's text means something else"] += canonical
        if what is not None:
            tally["differences"] += 1
            print(f"{name!r}: {what}")
    print(", ".join(f"{count} {what}" for what, count in tally.items()))
    return 1 if tally["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
