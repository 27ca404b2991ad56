#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the parser and the printer with the `ast` of a CPython 3.12.

Four kinds of input: every file of its standard library and tests; the sources that its tests hold in
string literals; mutations of its statements; and random trees, printed. Both must accept the same, make
the same tree with the same positions, and what is accepted must survive our printer. Of errors the
type, message, line and column are compared too, and the share that agrees is reported.

Exit status: 0 agreed, 1 did not, 77 no CPython 3.12 was found.
"""

import argparse
import codecs
import io
import multiprocessing
import os
import sys
import time
import tokenize

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpython312  # noqa: E402

cpython312.continue_in_cpython312()

import agreement  # noqa: E402
import ast_tool  # noqa: E402
import inputs  # noqa: E402

_OUR_ENCODINGS = {"utf-8", "utf-8-sig", "iso8859-1", "ascii"}
_tool = None


def start_worker(path):
    global _tool
    _tool = ast_tool.AstTool(path)
    sys.setrecursionlimit(8000)


def _other_encoding(data):
    """The source as text when its coding cookie names an encoding that we refuse to read."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if codecs.lookup(encoding).name in _OUR_ENCODINGS:
            return None
        return data.decode(encoding).replace("\r\n", "\n")
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def compare_file(path, tally):
    with open(path, "rb") as file:
        data = file.read()
    text = _other_encoding(data)
    if text is None:
        agreement.record(tally, path, data, _tool.check_file(path), keep=path)
        return
    status, _ = _tool.check_file(path)
    if status != "error":
        tally.failures.append((path, "an encoding that we do not know was accepted", path))
    agreement.record(tally, path, text, _tool.check_text(text), keep=path)


def compare_files(paths):
    tally = agreement.Tally()
    for path in paths:
        compare_file(path, tally)
    return tally


def compare_text(name, source, tally):
    try:
        source.encode()
    except UnicodeEncodeError:
        return
    agreement.record(tally, name, source, _tool.check_text(source))


def compare_snippets(paths):
    tally = agreement.Tally()
    for path in paths:
        for source in inputs.snippets(path):
            compare_text(os.path.basename(path), source, tally)
    return tally


def compare_mutations(task):
    paths, count, seed = task
    tally = agreement.Tally()
    for path in paths:
        for source in inputs.random_mutations(path, count, seed):
            compare_text(os.path.basename(path), source, tally)
    return tally


def compare_random(seeds):
    tally = agreement.Tally()
    for seed in seeds:
        source = _tool.random_source(seed)
        outcome = agreement.record(tally, f"seed {seed}", source, _tool.check_text(source))
        if outcome == "rejected":
            tally.failures.append((f"seed {seed}", "a printed tree is refused", source))
    return tally


def minimised(source):
    def still_fails(text):
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
        return agreement.compare(text, _tool.check_text(text))[0] == "failed"

    if not still_fails(source):
        return source
    return inputs.minimise(source, still_fails)


def describe_failure(failure, full):
    name, what, source = failure
    text = f"  {name}: {what[:2000]}"
    if source != name:
        short = source if full else minimised(source)
        text += f"\n    from {short!r}"
        if short != source:
            text += f"\n    {agreement.compare(short, _tool.check_text(short))[1][:1000]}"
    return text


def report(title, tally, options, started):
    share = f"{100 * tally.same_error / tally.rejected:.1f}%" if tally.rejected else "-"
    print(
        f"{title}: {tally.compared} compared, {tally.accepted} accepted with equal trees,"
        f" {tally.rejected} rejected by both (same error: {share}), {tally.skipped} beyond CPython's"
        f" own limits, {len(tally.failures)} disagree; {time.monotonic() - started:.1f} s",
        flush=True,
    )
    for failure in tally.failures[: options.show]:
        print(describe_failure(failure, options.raw), flush=True)
    for error, count in tally.other_errors.most_common(options.messages):
        source, theirs, ours = tally.examples[error]
        print(f"  {count:6} {error}")
        print(f"         {theirs} / {ours} in {source[:200]!r}")
    return not tally.failures


def chunks(items, size):
    return [items[i : i + size] for i in range(0, len(items), size)]


def plan(options):
    """(title, function, tasks) per kind of input."""
    files = inputs.standard_library()
    if options.only_file:
        return [("files", compare_files, [[path] for path in options.only_file])]
    step = 12 if options.fast else 1
    mutations = options.mutations or (4000 if options.fast else 120000)
    per_file = max(1, mutations // len(files[::step]))
    tests = [[path] for path in inputs.test_files()][:: 4 if options.fast else 1]
    seeds = list(range(options.seed, options.seed + (1000 if options.fast else 20000)))
    return [
        ("files", compare_files, chunks(files[::step], 8)),
        ("snippets", compare_snippets, tests),
        (
            "mutations",
            compare_mutations,
            [(part, per_file, options.seed) for part in chunks(files[::step], 8)],
        ),
        ("random trees", compare_random, chunks(seeds, 250)),
    ]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True, help="the ast_tool program")
    parser.add_argument("--fast", action="store_true", help="a sample of everything")
    parser.add_argument("--only", help="one kind of input: files, snippets, mutations, random")
    parser.add_argument("--mutations", type=int, help="how many mutations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, default=20, help="how many disagreements to print")
    parser.add_argument("--messages", type=int, default=0, help="how many differing errors to print")
    parser.add_argument("--raw", action="store_true", help="do not minimise the disagreements")
    parser.add_argument("only_file", nargs="*", help="compare these files only")
    return parser.parse_args()


def main():
    options = parse_arguments()
    print(f"against CPython {sys.version.split()[0]}", flush=True)
    start_worker(options.tool)
    agreed = True
    with multiprocessing.Pool(options.jobs, start_worker, [options.tool]) as pool:
        for title, function, tasks in plan(options):
            if options.only and not title.startswith(options.only):
                continue
            started, total = time.monotonic(), agreement.Tally()
            for tally in pool.imap_unordered(function, tasks):
                total.add(tally)
            agreed &= report(title, total, options, started)
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
