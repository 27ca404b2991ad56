# SPDX-License-Identifier: Apache-2.0
"""Runs in an interpreter that has orcheo: runs one IR per line of standard input, {"ir", "inputs",
"recursion_limit"?, "items"?, "answers"?}, as the peer does, and answers with the final state, the order of the
visits and what the stores hold, or with where and why it failed."""

import asyncio
import json
import logging
import sys
import warnings

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from orcheo.graph.ir.builder import build_state_graph_from_ir
from pydantic import BaseModel


def plain(value):
    if isinstance(value, BaseMessage):
        return value.model_dump()
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Uploads:
    def __init__(self):
        self.kept = []

    async def upload_attachment(self, content, name, mime_type):
        if not isinstance(content, bytes) or not isinstance(name, str) or not isinstance(mime_type, str):
            raise TypeError("no file")
        self.kept.append([content.decode(), name, mime_type])
        name = f"atc_{len(self.kept)}"
        return name, "memory:" + name


def contents(store):
    found = {}
    for item in store.search((), limit=1000):
        found.setdefault("/".join(item.namespace), {})[item.key] = plain(item.value)
    return found


async def run(graph, request, uploads):
    """The run goes on from each question with the next of the answers."""
    inputs, limit = request["inputs"], request.get("recursion_limit")
    answers = iter(request.get("answers", ()))
    configurable = {"thread_id": "t"}
    config = {"configurable": configurable, "tags": [], "metadata": {}, "callbacks": [], "run_name": None}
    if limit is not None:
        config["recursion_limit"] = limit
    state = {"workspace_id": None, "messages": [], "node_results": {}, "inputs": inputs, "config": config}
    order, values, questions = [], [], []
    options = {"configurable": {"attachment_uploader": uploads, "thread_id": "t"}}
    if limit is not None:
        options["recursion_limit"] = limit
    while state is not None:
        asked = []
        async for path, mode, event in graph.astream(state, options, stream_mode=["updates", "values"], subgraphs=True):
            if mode == "updates" and "__interrupt__" in event:
                asked = [question.value for question in event["__interrupt__"]] if not path else asked
            elif mode == "updates":
                order.extend(node for node in event if node != "__metadata__")
            elif not path:
                values.append(plain({key: value for key, value in event.items() if key != "__interrupt__"}))
        questions += asked
        state = Command(resume=next(answers)) if asked else None
    return {"ok": True, "state": values[-1], "order": order, "values": values, "questions": questions}


def answer(request):
    try:
        store = InMemoryStore()
        for space, entries in request.get("items", {}).items():
            for key, value in entries.items():
                store.put((space,), key, value)
        saver = InMemorySaver() if "answers" in request else None
        graph = build_state_graph_from_ir(request["ir"]).compile(store=store, checkpointer=saver)
    except Exception as error:
        return {"ok": False, "stage": "build", "error": str(error)}
    try:
        uploads = Uploads()
        answer = asyncio.run(run(graph, request, uploads))
        return answer | {"items": contents(store), "blobs": uploads.kept}
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
