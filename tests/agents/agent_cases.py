# SPDX-License-Identifier: Apache-2.0
"""Agents and the scripts of what their models answer, on which ours and the peer's must agree."""

import json
import random

from workflows import call

OUTER, INNER = {"model": "outer-model"}, {"model": "inner-model"}
SCHEMA = {"title": "Answer", "description": "A form", "type": "object", "required": ["n"],
          "properties": {"n": {"title": "N", "type": "integer"}, "s": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
HISTORY = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "second"},
           {"role": "user", "content": " /new "}, {"role": "tool", "content": "not a turn"}, {"role": "user", "content": 7},
           {"role": "assistant", "content": "third"}, {"role": "user", "content": "hi"}]
SEED = [{"role": "user", "content": "one"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "x", "args": {"a": "ö"}, "id": "q", "type": "tool_call"}]},
        {"role": "tool", "content": "two", "tool_call_id": "q"}, {"role": "system", "content": "three"},
        {"role": "assistant", "content": "four"}, {"role": "user", "content": "five", "name": "Ann"}]


def says(text, **more):
    return {"content": text, "when": OUTER} | more


def calls(*made, **more):
    return {"tool_calls": list(made), "when": OUTER} | more


def fixed():
    """name, fields of the node, inputs, answers"""
    hello = [says("Hello 😀")]
    yield "plain", {}, {"message": "hi"}, hello
    yield "system prompt", {"system_prompt": "Be {{inputs.how}}."}, {"message": "hi", "how": "brief"}, hello
    for name, inputs in {"nothing": {}, "query": {"query": " q "}, "object": {"message": {"text": "t", "content": "c"}},
                         "content": {"prompt": {"content": "c"}}, "listener": {"listener": {"message": {"text": "l"}}},
                         "odd": {"message": 7, "user_message": ["x"], "query": "found"}, "history": {"history": HISTORY},
                         "turn": {"history": HISTORY, "message": " hi"}, "other": {"history": HISTORY, "message": "ho"},
                         "no list": {"history": "x", "message": "hi"}}.items():
        yield f"inputs: {name}", {}, inputs, hello
        yield f"inputs, reset: {name}", {"reset_command": "/new"}, inputs, hello
    for most in (-3, 0, 1, 2, 3, 4, 5, 6, 30):
        yield f"max_messages {most}", {"max_messages": most}, {"history": HISTORY}, hello
        yield f"state, max_messages {most}", {"max_messages": most, "messages": SEED}, {"message": "not used"}, hello
    yield "state, reset", {"messages": SEED, "reset_command": "four"}, {}, hello
    yield "kwargs", {"kwargs": {"temperature": 0.5, "max_tokens": 5, "top_p": 0.3, "stop": ["x"], "seed": 3,
                                "frequency_penalty": 0.1, "presence_penalty": -0.5, "model_kwargs": {"user": "me"},
                                "extra_body": {"foo": {"a": [1]}}, "logprobs": None, "anthropic_api_key": "other"}}, {"message": "hi"}, hello
    yield "length", {}, {"message": "hi"}, [says("cut", finish_reason="length")]
    yield "empty", {}, {"message": "hi"}, [says("")]
    for content in ('{"n": 3}', '{"n": 3, "s": null}', '{"s": "ö", "n": -1}'):
        yield f"form {content}", {"response_format": SCHEMA}, {"message": "hi"}, [says(content)]
    yield "form, no JSON", {"response_format": SCHEMA}, {"message": "hi"}, [says("three")]
    yield "form and tools", {"response_format": SCHEMA, "tools": True}, {"message": "hi"}, [
        calls(call("echo", {"text": "a"})), says('{"n": 1}')]
    for text in (None, "", "  ", " a "):
        for more in ({}, {"instruction": "do"}, {"user_message": " u "}, {"draft_reply": "d", "instruction": " i ", "user_message": "u"}):
            yield f"llm {text!r} {more}", {"node": "LLMNode", "input_text": text} | more, {"message": "hi"}, hello
    yield "llm, state", {"node": "LLMNode", "input_text": "{{inputs.message}}", "messages": SEED}, {"message": "hi"}, hello
    yield "llm, tools", {"node": "LLMNode", "input_text": "x", "tools": True}, {}, [calls(call("all", {"text": "a"})), says("done")]
    for name in ("echo", "all", "item", "direct", "bare", "lost", "none"):
        yield f"tool {name}", {"tools": True}, {"message": "hi"}, [calls(call(name, {"text": "a ö"})), says("done")]
    yield "tool, text beside", {"tools": True}, {"message": "hi"}, [calls(call("echo", {"text": "a"}), content="Let me see"), says("done")]
    yield "tool, no arguments", {"tools": True}, {"message": "hi"}, [calls(call("bare", "")), says("done")]
    yield "tool, kwargs", {"tools": True}, {"message": "hi"}, [calls(call("bare", {"kwargs": {"a": 1}, "b": 2})), says("done")]
    yield "tool, all fields", {"tools": True}, {"message": "hi"}, [calls(call("all", {"text": "a", "limit": 7, "mode": "exact"})), says("done")]
    yield "direct beside another", {"tools": True}, {"message": "hi"}, [
        calls(call("direct", {"text": "a"}), call("echo", {"text": "b"}, 2)), says("done")]
    yield "two direct", {"tools": True}, {"message": "hi"}, [calls(call("direct", {"text": "a"}), call("direct", {"text": "b"}, 2))]
    yield "direct beside none", {"tools": True}, {"message": "hi"}, [calls(call("direct", {"text": "a"}), call("none", {}, 2)), says("done")]
    yield "nested", {"tools": True}, {"message": "hi"}, [
        calls(call("ask", {"text": "what"})), {"tool_calls": [call("echo", {"text": "x"}, 9)], "when": INNER},
        {"content": '{"answer": "because"}', "when": INNER}, says("done")]


def some(count, seed):
    """Conversations by chance."""
    source = random.Random(seed)
    for number in range(count):
        answers, made = [], 0
        for _ in range(source.randrange(1, 5)):
            turn, asks = [], False
            for _ in range(source.randrange(1, 5)):
                made += 1
                name = source.choice(["echo", "all", "item", "bare", "none", "ask", "direct"])
                if name == "ask" and asks:
                    name = "echo"
                asks = asks or name == "ask"
                turn.append(call(name, {"text": source.choice(["a", "größe", "😀", '"q"', "{{inputs.message}}"])}, made))
            answers.append(calls(*turn, content=source.choice([None, "", "so"])))
            if asks:
                answers.append({"content": json.dumps({"answer": source.choice(["yes", "ö"])}), "when": INNER})
            if all(one["name"] == "direct" for one in turn):
                break
        else:
            answers.append(says(source.choice(["done", "", "Ende 😀"])))
        yield f"random {seed}.{number}", {"tools": True, "max_messages": source.choice([1, 3, 30])}, {"message": "hi"}, answers
