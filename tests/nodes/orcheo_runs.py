# SPDX-License-Identifier: Apache-2.0
"""Runs in an interpreter that has orcheo: runs one IR per line of standard input, {"ir", "inputs",
"recursion_limit"?}, as the peer does, and answers with the final state and the order of the visits,
or with where and why it failed."""

import asyncio
import json
import logging
import sys
import warnings

from langchain_core.messages import BaseMessage
from orcheo.graph.ir.builder import build_state_graph_from_ir


def plain(value):
    if isinstance(value, BaseMessage):
        return value.model_dump()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


async def run(graph, inputs, limit):
    configurable = {"thread_id": "t"}
    config = {"configurable": configurable, "tags": [], "metadata": {}, "callbacks": [], "run_name": None}
    if limit is not None:
        config["recursion_limit"] = limit
    state = {"workspace_id": None, "messages": [], "node_results": {}, "inputs": inputs, "config": config}
    order, final = [], None
    options = {"recursion_limit": limit} if limit is not None else {}
    async for _, mode, event in graph.astream(state, options, stream_mode=["updates", "values"], subgraphs=True):
        if mode == "updates":
            order.extend(event)
        elif not _:
            final = event
    return {"ok": True, "state": plain(final), "order": order}


def answer(request):
    try:
        graph = build_state_graph_from_ir(request["ir"]).compile()
    except Exception as error:
        return {"ok": False, "stage": "build", "error": str(error)}
    try:
        return asyncio.run(run(graph, request["inputs"], request.get("recursion_limit")))
    except Exception as error:
        return {"ok": False, "stage": "run", "error": str(error), "type": type(error).__name__}


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        try:
            text = json.dumps(answer(json.loads(line)), allow_nan=False)
        except (TypeError, ValueError) as error:
            text = json.dumps({"ok": None, "error": f"{type(error).__name__}: {error}"})
        print(text, file=answers, flush=True)


if __name__ == "__main__":
    main()
