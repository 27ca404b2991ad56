#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripted endpoint is one that the real `openai` client can talk to: what the script says is what
the client reads, whole and in a stream, and each fault is an error of the client's.

Exit status: 0 agreed, 1 did not, 77 no interpreter with openai was found (CAISSON_ORCHEO_PYTHON names one).
"""

import importlib.util
import json
import os
import subprocess
import sys

SKIPPED = 77
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
CALLS = [{"id": "call_1", "name": "look_up", "arguments": {"text": "größe 😀", "limit": 3}},
         {"id": "call_2", "name": "add", "arguments": {"a": 1, "b": [1, 2, 3]}}]
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def collected(stream):
    """What a client puts together from a stream."""
    text, calls, finish, usage = "", {}, None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += part.id or ""
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    return text, [calls[i] for i in sorted(calls)], finish, usage


def plain(calls):
    return [{"id": c["id"], "name": c["name"], "arguments": json.loads(c["arguments"])} for c in calls]


def answers_whole(client, served):
    served.script({"content": "Hello", "usage": USAGE}, {"tool_calls": CALLS})
    ask = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}]}
    first = client.chat.completions.create(**ask)
    expect("content", first.choices[0].message.content, "Hello")
    expect("usage", first.usage.total_tokens, 120)
    second = client.chat.completions.create(**ask, tools=TOOLS)
    calls = second.choices[0].message.tool_calls
    expect("calls", [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls],
           [(c["id"], c["name"], c["arguments"]) for c in CALLS])
    expect("finish", second.choices[0].finish_reason, "tool_calls")
    expect("recorded", served.bodies()[1]["tools"], TOOLS)
    expect("key", served.requests()[0]["authorization"], "Bearer sk-test")


def answers_in_a_stream(client, served):
    served.script({"content": "Grüße, 😀 world", "pieces": 2, "usage": USAGE}, {"tool_calls": CALLS, "pieces": 3})
    ask = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "stream": True,
           "stream_options": {"include_usage": True}}
    text, calls, finish, usage = collected(client.chat.completions.create(**ask))
    expect("streamed", (text, calls, finish, usage.total_tokens), ("Grüße, 😀 world", [], "stop", 120))
    text, calls, finish, _ = collected(client.chat.completions.create(**ask, tools=TOOLS))
    expect("streamed calls", (text, plain(calls), finish), ("", CALLS, "tool_calls"))


def has_a_form(client, served):
    served.script({"content": '{"answer": 42}'})
    form = {"type": "json_schema", "json_schema": {"name": "Answer", "strict": True, "schema": {"type": "object"}}}
    got = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], response_format=form)
    expect("form", json.loads(got.choices[0].message.content), {"answer": 42})
    expect("recorded form", served.bodies()[0]["response_format"], form)


def fails_as_told(client, served, openai):
    error = {"message": "no", "type": "t", "code": "c"}
    cases = [({"status": 401, "error": error}, openai.AuthenticationError),
             ({"status": 429, "error": error, "headers": {"Retry-After": "7"}}, openai.RateLimitError),
             ({"status": 500, "error": error}, openai.InternalServerError),
             ({"fault": "close"}, openai.APIConnectionError),
             ({"fault": "slow", "seconds": 5}, openai.APITimeoutError)]
    for answer, wanted in cases:
        served.script(answer)
        try:
            collected(client.with_options(timeout=1).chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True))
        except wanted as raised:
            if wanted is openai.RateLimitError:
                expect("retry-after", raised.response.headers["retry-after"], "7")
        except Exception as raised:  # the client lets some errors of a body through as the transport's own
            if answer.get("fault") != "slow" or "Timeout" not in type(raised).__name__:
                raise
        else:
            raise AssertionError(f"{answer} was no error")


def breaks_streams(client, served):
    for fault in ("cut", "malformed", "error_event"):
        served.script({"fault": fault})
        try:
            collected(client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True))
        except Exception:
            continue
        raise AssertionError(f"the fault {fault} was not noticed")


def check():
    import openai
    import served as served_process

    with served_process.endpoint() as served:
        client = openai.OpenAI(base_url=served.base_url, api_key="sk-test", max_retries=0, timeout=10)
        answers_whole(client, served)
        answers_in_a_stream(client, served)
        has_a_form(client, served)
        fails_as_told(client, served, openai)
        breaks_streams(client, served)
    print(f"openai {openai.__version__} reads what the script says")
    return 0


def main():
    if importlib.util.find_spec("openai") is not None:
        return check()
    other = os.environ.get("CAISSON_ORCHEO_PYTHON")
    if other and other != sys.executable and subprocess.run([other, "-c", "import openai"], capture_output=True).returncode == 0:
        return subprocess.run([other, __file__]).returncode
    print("skipped: no interpreter with openai; CAISSON_ORCHEO_PYTHON may name one")
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
