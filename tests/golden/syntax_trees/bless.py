#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites NAME.ast beside each NAME.py here with the tree that a CPython 3.12 makes of it.

The sources are ours. syntax_trees_test.cc compares the parser's trees with these, positions included;
src/python/ast_dump.h describes their form.
"""

import ast
import os
import pathlib
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parents[1] / "python"))
import cpython312  # noqa: E402

cpython312.continue_in_cpython312()

import ast_text  # noqa: E402


def main():
    warnings.simplefilter("ignore")
    for source in sorted(HERE.glob("*.py")):
        if source.name != "bless.py":
            tree = ast.parse(source.read_bytes())
            source.with_suffix(".ast").write_text(ast_text.dump(tree), encoding="utf-8")


if __name__ == "__main__":
    main()
