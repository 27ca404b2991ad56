# SPDX-License-Identifier: Apache-2.0
"""Runs in an interpreter that has orcheo, and knows nothing of ours: reads {"inputs", "seed", "secrets", "chain"} from
standard input, calls each node of the chain itself, one after the other, and prints the update of each, or its error."""

import asyncio
import copy
import json
import sys
import warnings

warnings.simplefilter("ignore")

import orcheo.nodes  # noqa: E402, F401
from langchain_core.messages import BaseMessage  # noqa: E402
from langgraph.graph.message import add_messages  # noqa: E402
from orcheo.nodes.registry import registry  # noqa: E402
from orcheo.runtime.credentials import parse_credential_reference  # noqa: E402
from pydantic import BaseModel  # noqa: E402


class Vault:
    """What the real resolver gives, of fixed secrets."""

    def __init__(self, secrets):
        self.secrets = secrets

    def resolve(self, reference):
        return self.secrets[reference.identifier]


def plain(value):
    if isinstance(value, BaseMessage):
        return value.model_dump()
    if isinstance(value, BaseModel):
        return plain(value.model_dump())
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def apply(state, update):
    for key, value in update.items():
        if key == "node_results":
            state["node_results"] = {**state["node_results"], **value}
        elif key == "messages":
            state["messages"] = add_messages(state["messages"], value)
        elif not key.startswith("_"):
            state[key] = value


async def run(request):
    configurable = {"thread_id": "t"}
    config = {"configurable": configurable, "tags": [], "metadata": {}, "run_name": None}
    state = {"messages": [], "workspace_id": None, "inputs": request["inputs"], "node_results": request["seed"],
             "config": {**config, "callbacks": []}}
    updates = {}
    for name, kind, given in request["chain"]:
        try:
            node = registry.get_node(kind)(name=name, **given)
            update = await node(copy.deepcopy(state), config)  # some change what they are given
        except Exception as error:
            updates[name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        apply(state, update)
        updates[name] = plain({key: value for key, value in update.items() if key in FIELDS})
    return updates


FIELDS = ("messages", "workspace_id", "inputs", "node_results", "structured_response", "config", "assistant_message")


def main():
    from orcheo.runtime import credentials

    request = json.load(sys.stdin)
    assert parse_credential_reference("[[x]]") is not None
    with credentials.credential_resolution(Vault(request["secrets"])):
        updates = asyncio.run(run(request))
    json.dump(updates, sys.stdout, default=lambda value: f"<{type(value).__name__}>")


main()
