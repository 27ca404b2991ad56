# SPDX-License-Identifier: Apache-2.0
"""The state as nodes know it, with chat messages as langchain's classes."""

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

_CLASSES = {"human": HumanMessage, "ai": AIMessage, "system": SystemMessage, "tool": ToolMessage,
            "function": FunctionMessage}


def message_from_json(message: object) -> BaseMessage:
    kind = _CLASSES.get(message.get("type")) if isinstance(message, dict) else None
    if kind is None:
        return convert_to_messages([message])[0]
    return kind(**{key: value for key, value in message.items() if key != "type"})


def state_from_json(state: dict) -> dict:
    made = dict(state)
    if isinstance(made.get("messages"), list):
        made["messages"] = [message_from_json(message) for message in made["messages"]]
    return made
