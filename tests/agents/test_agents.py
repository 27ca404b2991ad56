# SPDX-License-Identifier: Apache-2.0
"""`caisson run` against an endpoint that answers by a script: the example, and everything that breaks."""

import json
import pathlib
import socket
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import served  # noqa: E402
import workflows  # noqa: E402
from programs import ROOT, caisson, main  # noqa: E402

KEY = "sk-never-to-be-seen"
CONTEXT = {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
# answer -> code when it is asked to stream, code when it is not
FAULTS = [
    ({"status": 401, "error": {"message": f"Incorrect API key provided: {KEY}"}}, "model.unauthorized", None),
    ({"status": 403, "error": {"message": "no"}}, "model.unauthorized", None),
    ({"status": 429, "error": {"message": "slow down"}, "headers": {"Retry-After": "3600"}}, "model.rate_limited", None),
    ({"status": 500, "error": {"message": "oops"}}, "model.unavailable", None),
    ({"status": 502, "raw": "caf\u00e9 \u00ff" * 1000}, "model.unavailable", None),
    ({"status": 404, "error": {"message": "The model does not exist"}}, "model.rejected", None),
    ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "model.rejected", None),
    ({"status": 400, "error": CONTEXT}, "model.context_too_long", None),
    ({"status": 400, "error": {"message": "filtered", "code": "content_filter"}}, "model.content_filter", None),
    ({"content": "", "finish_reason": "content_filter"}, "model.content_filter", None),
    ({"refusal": "I will not do that."}, "model.refused", None),
    ({"fault": "close"}, "model.cut", None),
    ({"fault": "cut"}, "model.cut", None),
    ({"fault": "malformed"}, "model.malformed", None),
    ({"fault": "not_object"}, "model.malformed", None),
    ({"fault": "content_type"}, "model.malformed", None),
    ({"fault": "no_choices"}, "model.malformed", None),
    ({"fault": "error_event"}, "model.failed", None),
    ({"fault": "empty"}, "model.cut", "model.malformed"),
    ({"fault": "no_done"}, "model.cut", "answered"),
    ({"fault": "endless"}, "model.too_large", "any"),
    ({"fault": "huge_line"}, "model.too_large", "any"),
    ({"fault": "slow"}, "model.timed_out", None),
]


class Agents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = served.endpoint()
        cls.served = cls.context.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)

    def ask(self, *arguments, inputs=None, base_url=None, allow=True, **fields):
        """The result of a run, and everything that it told anybody."""
        kwargs = {"max_retries": 0, "timeout": 2} | fields.pop("kwargs", {})
        text = workflows.source(base_url or self.served.base_url, key="[[key]]", kwargs=kwargs, **fields)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "workflow.py"
            file.write_text(text)
            allowed = ["--allow-endpoint", self.served.origin] if allow else []
            result = caisson("run", str(file), "--report", "--events", "--input", json.dumps(inputs or {"message": "hi"}),
                             "--credential", "key=env:TEST_MODEL_KEY", *allowed, *arguments, env={"TEST_MODEL_KEY": KEY})
        self.assertNotIn(KEY, result.stdout + result.stderr)
        return result

    def code(self, result):
        return (result.json()["error"] or {"code": "answered"})["code"]

    def said(self, result):
        return [(m["type"], m["content"]) for m in result.json()["state"]["messages"]]

    def test_each_fault_has_its_code(self):
        for streaming in (True, False):
            for answer, streamed, whole in FAULTS:
                expected = streamed if streaming or whole is None else whole
                with self.subTest(streaming=streaming, **answer):
                    self.served.script(answer)
                    result = self.ask(kwargs={"streaming": streaming})
                    got = self.code(result)
                    if expected == "any":  # a stream that nobody asked for
                        self.assertTrue(got.startswith("model."), got)
                    elif expected != "answered":
                        self.assertEqual(got, expected, result.stdout)
                        self.assertEqual(result.json()["error"]["node"], "agent")
                    words = (answer.get("error") or {}).get("message", answer.get("refusal", ""))
                    if words and KEY not in words:
                        self.assertIn(words, result.json()["error"]["message"])

    def test_an_endpoint_that_is_not_there(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            origin = f"http://127.0.0.1:{unused.getsockname()[1]}"
            result = self.ask("--allow-endpoint", origin, base_url=origin + "/v1")
        self.assertEqual(self.code(result), "model.unreachable")

    def test_an_endpoint_of_the_own_host_needs_permission(self):
        self.served.script({"content": "never"})
        result = self.ask(allow=False)
        self.assertEqual(self.code(result), "outbound.refused")
        self.assertEqual(self.served.requests(), [])

    def test_permission_is_for_servers_of_the_own_host_alone(self):
        for url in ("http://example.com:80", "127.0.0.1:80", "http://127.0.0.1:80/v1", "ftp://127.0.0.1"):
            result = caisson("run", "examples/grade/workflow.py", "--allow-endpoint", url)
            self.assertEqual(result.code, 2, url)
            self.assertIn("--allow-endpoint", result.stderr)

    def test_it_asks_again_when_it_is_told_to_wait(self):
        self.served.script({"status": 429, "error": {"message": "slow down"}, "headers": {"Retry-After": "0.2"}},
                           {"status": 503, "error": {"message": "busy"}}, {"content": "at last"})
        result = self.ask(kwargs={"max_retries": 2})
        self.assertEqual(self.said(result)[-1], ("ai", "at last"))
        self.assertEqual(len(self.served.requests()), 3)
        self.assertIn("asking the model again in 0.2 seconds", result.stderr)

    def test_a_stream_is_shown_as_it_comes_and_is_one_message_in_the_end(self):
        self.served.script({"content": "Grüße an 😀 alle", "pieces": 3})
        result = self.ask()
        self.assertEqual(self.said(result), [("human", "hi"), ("ai", "Grüße an 😀 alle")])
        events = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
        deltas = [event for event in events if event["event"] == "message_delta"]
        self.assertEqual("".join(delta["delta"]["content"] for delta in deltas), "Grüße an 😀 alle")
        self.assertGreater(len(deltas), 3)
        self.assertEqual({delta["after"] for delta in deltas}, {6})
        self.assertNotIn("sequence", deltas[0])
        numbered = [event["sequence"] for event in events if "sequence" in event]
        self.assertEqual(numbered, list(range(1, len(numbered) + 1)))

    def test_parallel_calls_in_fragments(self):
        calls = [workflows.call("echo", {"text": f"größe {i} 😀"}, i) for i in range(8)]
        for streaming in (True, False):
            self.served.script({"tool_calls": calls, "pieces": 2}, {"content": "done"})
            result = self.ask(tools=True, kwargs={"streaming": streaming})
            told = [text for kind, text in self.said(result) if kind == "tool"]
            self.assertEqual(told, [f"größe {i} 😀" for i in range(8)])
            self.assertEqual(result.json()["state"]["messages"][-1]["usage_metadata"]["total_tokens"], 18)
            self.assertEqual([body["stream"] for body in self.served.bodies()], [streaming] * 2)

    def test_a_stream_that_breaks_within_a_call_runs_nothing(self):
        self.served.script({"fault": "cut_tool", "tool_calls": [workflows.call("echo", {"text": "a long text"})]})
        result = self.ask(tools=True)
        self.assertEqual(self.code(result), "model.cut")
        self.assertEqual(result.json()["node_visits"], 2)

    def test_a_budget_of_tokens_ends_the_run(self):
        self.served.script({"tool_calls": [workflows.call("echo", {"text": "a"})], "repeat": True})
        result = self.ask("--config", '{"budget": {"tokens": 40}}', tools=True)
        self.assertEqual(self.code(result), "graph.budget")
        self.assertEqual(len(self.served.requests()), 3)

    def test_a_time_limit_ends_a_slow_answer_at_once(self):
        self.served.script({"content": "x" * 1000, "pieces": 1, "delay": 0.05})
        result = self.ask("--timeout", "1s")
        self.assertEqual(self.code(result), "graph.timed_out")

    def test_the_example_gives_what_it_says(self):
        folder = ROOT / "examples/agent"
        self.served.call("/script", json.loads((folder / "endpoint.json").read_text()))
        result = caisson("run", str(folder / "workflow.py"), "--input", f"@{folder}/input.json",
                         "--credential", "model_base_url=env:B", "--credential", "model_api_key=env:K",
                         "--allow-endpoint", self.served.origin, env={"B": self.served.base_url, "K": KEY})
        self.assertEqual(result.code, 0, result.stderr)
        messages = result.json()["messages"]
        self.assertEqual([m["type"] for m in messages], ["human", "ai", "tool", "tool", "ai", "tool"])
        self.assertEqual(json.loads(messages[2]["content"])["order"]["item"], "kettle")
        self.assertIn("$.order_id: must match the pattern", messages[3]["content"])
        self.assertEqual(messages[5]["content"], "39.9 euros for A-1001 are on their way.")
        self.assertNotIn(KEY, result.stdout + result.stderr)

    def test_the_example_has_no_mistakes(self):
        result = caisson("check", "--strict", "examples/agent/workflow.py")
        self.assertEqual(result.code, 0, result.stderr)


main()
