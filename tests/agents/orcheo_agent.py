# SPDX-License-Identifier: Apache-2.0
"""Runs in an interpreter that has orcheo: runs one IR per line of standard input, {"ir", "inputs"}, as the
peer does, and answers with the messages and the structured response of the final state, or with the error."""

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


async def answer(request):
    try:
        graph = build_state_graph_from_ir(request["ir"]).compile()
        config = {"configurable": {"thread_id": "t"}}
        state = {"workspace_id": None, "messages": [], "node_results": {}, "inputs": request["inputs"], "config": config}
        final = await graph.ainvoke(state, config)
    except Exception as error:
        return {"error": str(error)}
    return {"state": plain({key: final.get(key) for key in ("messages", "structured_response")})}


async def serve(answers):
    for line in sys.stdin:
        try:
            text = json.dumps(await answer(json.loads(line)))
        except (TypeError, ValueError) as error:
            text = json.dumps({"error": f"no JSON: {error}"})
        print(text, file=answers, flush=True)


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr
    # One loop for all: the peer's library keeps its connections from one request to the next.
    asyncio.run(serve(answers))


if __name__ == "__main__":
    main()
