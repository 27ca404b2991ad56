#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an unrestricted workflow under the packages that it was written for. usage: run_original.py
[--entrypoint NAME] FILE

One JSON object of inputs per line of standard input; one line of JSON per run: {"ok": true, "state":
…, "order": …} or {"ok": false, "stage": "load" or "run", "type", "error"}. What the nodes print goes
to standard error. Needs an interpreter that has orcheo; exit status 77 without it."""

import argparse
import asyncio
import json
import logging
import pathlib
import sys
import warnings

SKIPPED = 77  # what ctest is told to read as "skipped"
# What an author of several graphs in one file calls the one to run.
USUAL_NAME = "graph"

try:
    from langchain_core.messages import BaseMessage
    from orcheo.graph.ingestion import (
        LANGGRAPH_SCRIPT_FORMAT,
        ScriptIngestionError,
        load_graph_from_script,
    )
    from orcheo.runtime.state_builder import build_initial_state
except ImportError as missing:
    print(f"{sys.executable} has no orcheo ({missing}); install it, or use an interpreter that has", file=sys.stderr)
    sys.exit(SKIPPED)


def plain(value):
    if isinstance(value, BaseMessage):
        return {"role": value.type, "content": value.content}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def load(path, entrypoint):
    source = path.read_text(encoding="utf-8")
    try:
        return load_graph_from_script(source, entrypoint=entrypoint)
    except ScriptIngestionError as error:
        if entrypoint is not None or "Multiple StateGraph candidates" not in str(error):
            raise
    return load_graph_from_script(source, entrypoint=USUAL_NAME)


async def run(graph, inputs):
    state = build_initial_state({"format": LANGGRAPH_SCRIPT_FORMAT}, inputs, {})
    order, final = [], None
    async for mode, event in graph.astream(state, stream_mode=["updates", "values"]):
        if mode == "updates":
            order.extend(event)
        else:
            final = event
    return {"ok": True, "state": plain(final), "order": order}


def failure(stage, error):
    return {"ok": False, "stage": stage, "type": type(error).__name__, "error": str(error)}


def answer(graph, line):
    try:
        return json.dumps(asyncio.run(run(graph, json.loads(line))))
    except Exception as error:
        return json.dumps(failure("run", error))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entrypoint", help="which graph or builder of the file, when it has several")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr
    try:
        graph = load(options.file, options.entrypoint).compile()
    except Exception as error:
        print(json.dumps(failure("load", error)), file=answers)
        return 1
    for line in sys.stdin:
        print(answer(graph, line), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
