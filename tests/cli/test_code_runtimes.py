# SPDX-License-Identifier: Apache-2.0
"""Code nodes in MicroPython and in CPython: the same results, each node where it was told to be."""

import json
import signal
import subprocess
import time
import unittest

from programs import BIN, ROOT, caisson, code_workflow, environment, main

# What needs an endpoint is run by tests/agents.
FOLDERS = sorted(path.parent for path in (ROOT / "examples").glob("*/workflow.py")
                 if not (path.parent / "endpoint.json").exists())
# MicroPython knows UTF-8 only.
BODY = "return {'bytes': list('\\u00e9'.encode('latin-1'))}"
TWO_NODES = """
class Bytes(CodeNode):
    def run(self, state, config):
        return {"bytes": list("\\u00e9".encode("latin-1"))}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("one", Bytes(name="one"))
    graph.add_node("two", Bytes(name="two"))
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    return graph
"""


def optional(path, otherwise):
    return json.loads(path.read_text()) if path.exists() else otherwise


class CodeRuntimes(unittest.TestCase):
    def report(self, *arguments, stdin=b"", env=None, answers=()):
        result = caisson("run", *arguments, "-q", "--report", stdin=stdin, env=env)
        for answer in answers:
            self.assertEqual(result.code, 9, result.stderr)
            # The run goes on in the runtime that it was begun with.
            result = caisson("runs", "resume", result.json()["run_id"], "--value", json.dumps(answer), "-q", "--report")
        self.assertEqual(result.code, 0, result.stderr)
        return result.json()

    def test_the_examples_give_the_same(self):
        for folder in FOLDERS:
            with self.subTest(folder.name):
                arguments = [f"{folder}/workflow.py", "--input", f"@{folder}/input.json",
                             *optional(folder / "arguments.json", [])]
                env = optional(folder / "environment.json", {})
                answers = optional(folder / "answers.json", [])
                reports = [self.report(*arguments, "--runtime", name, env=env, answers=answers)
                           for name in ("micropython", "cpython")]
                for report, name in zip(reports, ("micropython", "cpython")):
                    self.assertLessEqual(set(report["runtimes"].values()), {name})
                    report["state"].pop("config")
                    for message in report["state"]["messages"]:
                        message.pop("id")
                self.assertEqual(reports[0]["state"], reports[1]["state"])

    def test_each_node_runs_where_it_was_told(self):
        for arguments in (["--node-runtime", "two=cpython"], ["--runtime", "cpython", "--node-runtime", "one=micropython"]):
            report = self.report("-", *arguments, stdin=TWO_NODES)
            self.assertEqual(report["runtimes"], {"one": "micropython", "two": "cpython"})
            self.assertEqual(report["state"]["node_results"], {"one": {"bytes": [195, 169]}, "two": {"bytes": [233]}})

    def test_one_line_of_configuration_is_the_default(self):
        env = {"CAISSON_CODE_RUNTIME": "cpython"}
        self.assertEqual(self.report("-", stdin=TWO_NODES, env=env)["runtimes"], {"one": "cpython", "two": "cpython"})
        report = self.report("-", "--runtime", "micropython", stdin=TWO_NODES, env=env)
        self.assertEqual(report["runtimes"], {"one": "micropython", "two": "micropython"})
        result = caisson("check", "-", stdin=TWO_NODES, env={"CAISSON_CODE_RUNTIME": "pypy"})
        self.assertEqual(result.code, 2)
        self.assertIn("'pypy' is none of micropython|cpython", result.stderr)

    def test_bodies_are_checked_for_their_runtime(self):
        source = code_workflow(BODY)
        checked = caisson("check", "-", stdin=source)
        self.assertIn("1 warning", checked.stderr)
        self.assertIn("1 of them come from MicroPython", checked.stderr)
        checked = caisson("check", "--runtime", "cpython", "-", stdin=source)
        self.assertIn("0 warnings", checked.stderr)
        self.assertNotIn("MicroPython", checked.stderr)
        results = self.report("-", "--runtime", "cpython", stdin=source)["state"]["node_results"]
        self.assertIn({"bytes": [233]}, results.values())

    def test_limits_are_told_apart(self):
        for body, code in (("while True: pass", "isolate.wall_clock_exceeded"),
                           ("return {'x': 'x' * (1 << 30)}", "isolate.memory_exhausted"),
                           ("return {'x': 'x' * 5000}", "isolate.output_exceeded"),
                           ("1 / 0", "graph.code_raised")):
            result = caisson("run", "-", "-q", "--runtime", "cpython", "--call-timeout", "2s", "--output", "4KiB",
                             stdin=code_workflow(body))
            self.assertIn(f"error[{code}]: node 'work'", result.stderr)

    def test_a_signal_ends_a_call_in_cpython(self):
        command = [str(BIN / "caisson"), "run", "-", "-q", "--report", "--events", "--runtime", "cpython"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment()) as process:
            process.stdin.write(code_workflow("while True: pass").encode())
            process.stdin.close()
            while b"node_started" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.stderr.read()
            self.assertEqual(json.loads(process.stdout.read())["status"], "cancelled")
            self.assertEqual(process.wait(30), 4)
            self.assertLess(time.monotonic() - begin, 5)

    def test_limits_that_cpython_does_not_have_are_refused(self):
        for option in ("--heap=1MiB", "--fuel=5M"):
            result = caisson("run", "-", "--runtime", "cpython", option, stdin=TWO_NODES)
            self.assertEqual(result.code, 2)
            self.assertIn("only limits MicroPython", result.stderr)
            result = caisson("run", "-", "--node-runtime", "one=cpython", option, stdin=TWO_NODES)
            self.assertEqual(result.code, 0, result.stderr)
            self.assertIn("MicroPython-WASM and CPython-WASM sandboxes", result.stderr)

    def test_a_node_that_is_not_there_is_refused(self):
        result = caisson("run", "-", "--node-runtime", "none=cpython", stdin=TWO_NODES)
        self.assertNotEqual(result.code, 0)
        self.assertIn("the workflow has no code node of that id", result.stderr)
        result = caisson("run", "-", "--node-runtime", "one", stdin=TWO_NODES)
        self.assertEqual(result.code, 2)
        self.assertIn("'one' is not NODE=micropython or NODE=cpython", result.stderr)


if __name__ == "__main__":
    main()
