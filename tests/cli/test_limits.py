# SPDX-License-Identifier: Apache-2.0
"""Each limit, broken, is reported as itself: code, exit code and the author's line."""

import unittest

from programs import caisson, code_workflow, main

ENDLESS = "while True:\n    pass"
# name: (body, options, code, exit code, line of the body or 0)
MATRIX = {
    "fuel": (ENDLESS, ["--fuel", "20M"], "isolate.fuel_exhausted", 5),
    "wall clock of a call": (ENDLESS, ["--fuel", "0", "--call-timeout", "300ms"], "isolate.wall_clock_exceeded", 5),
    "the guest's heap": ("kept = []\nwhile True:\n    kept.append(bytes(10000))",
                         [], "isolate.memory_exhausted", 5),
    "a smaller heap": ("kept = bytearray(3000000)\nreturn {'n': len(kept)}",
                       ["--heap", "2MiB"], "isolate.memory_exhausted", 5),
    "the result's size": ("return {'text': 'x' * 200000}", ["--output", "100KiB"], "isolate.output_exceeded", 5),
    "time of the run": (ENDLESS, ["--fuel", "0", "--timeout", "300ms"], "graph.timed_out", None),
}


class Limits(unittest.TestCase):
    def report(self, body: str, options: list[str]) -> tuple[int, dict]:
        result = caisson("run", "-", "--report", "-q", *options, stdin=code_workflow(body))
        self.assertTrue(result.stdout, result.stderr)
        return result.code, result.json()

    def test_each_limit_sees_its_own_kind(self):
        for name, (body, options, code, exit_code) in MATRIX.items():
            with self.subTest(name):
                status, report = self.report(body, options)
                self.assertEqual(report["error"]["code"], code, report["error"])
                self.assertEqual(report["error"]["node"], "work")
                self.assertEqual(status, 5 if exit_code is None else exit_code)

    def test_within_the_limits_the_same_bodies_pass(self):
        status, report = self.report("kept = bytearray(3000000)\nreturn {'n': len(kept)}", ["--heap", "8MiB"])
        self.assertEqual((status, report["status"]), (0, "succeeded"), report)
        self.assertEqual(report["state"]["node_results"]["work"], {"n": 3000000})
        status, report = self.report("return {'text': 'x' * 90000}", ["--output", "100KiB"])
        self.assertEqual((status, report["status"]), (0, "succeeded"), report)

    def test_the_recursion_limit_of_a_run(self):
        source = """
def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(name="a", variables={"x": 1}))
    graph.add_node("b", SetVariableNode(name="b", variables={"x": 2}))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "a")
    return graph
"""
        result = caisson("run", "-", "-q", "--report", "--config", '{"recursion_limit": 7}', stdin=source)
        self.assertEqual(result.code, 4, result.stderr)
        self.assertEqual(result.json()["error"]["code"], "graph.recursion_limit")
        self.assertIn("Recursion limit of 7 reached", result.json()["error"]["message"])

    def test_deep_recursion_is_an_exception_of_the_guest(self):
        status, report = self.report("def deep(n):\n    return deep(n + 1)\nreturn {'n': deep(0)}", [])
        self.assertEqual((status, report["error"]["error_type"]), (4, "RuntimeError"), report["error"])
        status, report = self.report("def deep(n):\n    return n and deep(n - 1)\nreturn {'n': deep(900)}", [])
        self.assertEqual(status, 0, report["error"])


main()
