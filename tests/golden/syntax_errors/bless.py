#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites the `error` lines of cases.txt with what a CPython 3.12 says of each source.

The sources are ours; the errors are CPython's: type, (lineno, offset, end_lineno, end_offset) and
message of the exception that `ast.parse` raises. parser_errors_test.cc checks the parser against them.
"""

import ast
import os
import pathlib
import re
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parents[1] / "python"))
import cpython312  # noqa: E402

cpython312.continue_in_cpython312()


def error_of(source):
    try:
        ast.parse(source)
    except SyntaxError as error:
        place = (error.lineno, error.offset, error.end_lineno, error.end_offset)
        message = error.msg.encode("unicode_escape").decode("ascii")
        return f"{type(error).__name__} {tuple(n or 0 for n in place)} {message}"
    except (RecursionError, MemoryError) as error:
        return f"{type(error).__name__} {error}"
    sys.exit(f"CPython accepts {source!r}")


def main():
    warnings.simplefilter("ignore")
    path = HERE / "cases.txt"
    out = []
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("error "):
            continue
        out.append(line)
        if line.startswith("source "):
            literal = re.fullmatch(r'source (b?".*")', line).group(1)
            out.append("error " + error_of(ast.literal_eval(literal)))
    path.write_text("\n".join(out) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
