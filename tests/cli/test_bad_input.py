# SPDX-License-Identifier: Apache-2.0
"""Whatever comes in gets its error and exit code; the program lives, the next call is served."""

import copy
import json
import pathlib
import tempfile
import unittest

from programs import ROOT, caisson, code_workflow, main

GOOD = (ROOT / "examples/grade/workflow.py").read_text()


def codes(result) -> list[str]:
    return [diagnostic["code"] for file in result.json() for diagnostic in file["diagnostics"]]


class Sources(unittest.TestCase):
    def refused(self, source: bytes, code: str, line: int | None = None):
        result = caisson("check", "-", "--format", "json", stdin=source)
        self.assertEqual(result.code, 3, result.stderr[:500] + result.stdout[:500])
        self.assertEqual(codes(result)[0], code, result.stdout[:500])
        if line is not None:
            self.assertEqual(result.json()[0]["diagnostics"][0]["line"], line)

    def test_an_empty_file(self):
        self.refused(b"", "workflow.entrypoint")

    def test_a_binary_file(self):
        self.refused(pathlib.Path("/bin/true").read_bytes()[:4000], "workflow.parse")

    def test_one_byte_too_many(self):
        comment = b"#" * (524288 - len(GOOD.encode()) - 1) + b"\n"
        fits = caisson("check", "-", stdin=comment + GOOD.encode())
        self.assertEqual(fits.code, 0, fits.stderr)
        self.refused(b"#" + comment + GOOD.encode(), "workflow.too_large")

    def test_a_file_without_end(self):
        result = caisson("check", "/dev/zero")
        self.assertEqual(result.code, 8, result.stderr[:300])

    def test_text_that_is_not_utf8(self):
        self.refused(GOOD.replace("lowest", "l\xf6west").encode("latin-1"), "workflow.parse")

    def test_a_nul_byte(self):
        self.refused(GOOD.encode() + b"\n# \0\n", "workflow.parse")

    def test_a_byte_order_mark(self):
        self.refused(b"\xef\xbb\xbf" + GOOD.encode(), "workflow.parse", 1)

    def test_deep_nesting(self):
        for text in ("(" * 3000 + ")" * 3000, "-" * 3000 + "1", "[" * 100000, "a." * 100000 + "b", "not " * 50000 + "a",
                     "lambda: " * 20000 + "0", "f'{" * 300 + "1" + "}'" * 300, "1 if a else " * 20000 + "1",
                     "x = " * 20000 + "1", "if a:\n " + "if a: " * 3000):
            with self.subTest(text[:12]):
                self.refused(f"x = {text}\n".encode(), "workflow.parse" if text[0] != "a" and "lambda" not in text and
                             "not " not in text and "if a else" not in text and "x = " not in text else
                             codes(caisson("check", "-", "--format", "json", stdin=f"x = {text}\n"))[0])

    def test_huge_literals(self):
        for literal, code in (("9" * 5000, "workflow.parse"), ("0x" + "f" * 5000, "workflow.literal_not_json"),
                              ("1e999", "workflow.literal_not_json"), ("'\\ud800'", "workflow.literal_not_json")):
            source = f"""
def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", SetVariableNode(name="a", variables={{"x": {literal}}}))
    graph.add_edge(START, "a")
    return graph
"""
            with self.subTest(literal[:10]):
                self.refused(source.encode(), code, 4)

    def test_a_graph_that_contains_itself(self):
        self.refused(b"def orcheo_workflow():\n    g = StateGraph(State)\n    g.add_node('g', g)\n"
                     b"    g.add_edge(START, 'g')\n    return g\n", "workflow.graph_cycle")


class Irs(unittest.TestCase):
    def setUp(self):
        compiled = caisson("compile", "examples/grade/workflow.py")
        self.assertEqual(compiled.code, 0, compiled.stderr)
        self.ir = compiled.json()

    def refused(self, change, code: str):
        document = copy.deepcopy(self.ir)
        change(document)
        result = caisson("run", "-", "-q", "--format", "json", stdin=json.dumps(document))
        self.assertEqual(result.code, 3, result.stderr[:500])
        found = json.loads(result.stderr)["diagnostics"]
        self.assertIn(code, [diagnostic["code"] for diagnostic in found])

    def test_a_forged_body(self):
        def body(text):
            return lambda ir: ir["nodes"][0].update(body=text)
        self.refused(body("import os\nreturn {}"), "body.import_not_allowed")
        self.refused(body("print('x')\nreturn {}"), "body.builtin_not_allowed")
        self.refused(body("return {'a': ().__class__}"), "body.dunder")
        self.refused(body("return open('/etc/passwd')"), "body.builtin_not_allowed")
        self.refused(body("return {"), "body.syntax")

    def test_unknown_fields_and_versions(self):
        self.refused(lambda ir: ir.update(extra=1), "ir.unknown_field")
        self.refused(lambda ir: ir["nodes"][0].update(extra=1), "ir.unknown_field")
        self.refused(lambda ir: ir.update(schema_version=2), "ir.schema_version")
        self.refused(lambda ir: ir["nodes"][1].update(type="ClaudeCodeNode"), "policy.node_restricted")
        self.refused(lambda ir: ir["nodes"][1].update(type="NoSuchNode"), "ir.unknown_type")

    def test_references_that_lead_nowhere(self):
        self.refused(lambda ir: ir.update(entrypoint="nowhere"), "ir.entrypoint")
        self.refused(lambda ir: ir["edges"].append({"source": "grade", "target": "nowhere"}), "ir.unknown_node")

    def test_a_secret_for_code(self):
        self.refused(lambda ir: ir["nodes"][0]["config"].update(lowest="[[key]]"), "ir.credential_in_code")

    def test_text_that_is_no_json(self):
        for text in ("{", '{"a": NaN}', '{"a": "\\ud800"}', "{" * 100000, "[]"):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(text)
                file.flush()
                result = caisson("run", file.name, "-q")
                self.assertEqual(result.code, 3, (text[:20], result.stderr[:300]))

    def test_a_hundred_thousand_nodes(self):
        count = 100_000
        nodes = [{"kind": "builtin", "id": f"n{i}", "type": "NoOpTaskNode", "config": {}} for i in range(count)]
        edges = [{"source": f"n{i}", "target": f"n{i + 1}"} for i in range(count - 1)]
        chain = {"schema_version": 1, "state_ref": "orcheo.graph.state.State", "entrypoint": "n0", "nodes": nodes,
                 "edges": [{"source": "__start__", "target": "n0"}, *edges], "conditional_edges": []}
        result = caisson("run", "-", "-q", stdin=json.dumps(chain))
        self.assertEqual(result.code, 4, result.stderr[:300])
        self.assertIn("graph.recursion_limit", result.stderr)

        star = chain | {"edges": [{"source": "__start__", "target": f"n{i}"} for i in range(count)]}
        result = caisson("run", "-", "-q", stdin=json.dumps(star))
        self.assertEqual(result.code, 0, result.stderr[:300])
        self.assertEqual(len(result.json()["node_results"]), count)


# body: (code, exit code, exception or None)
BODIES = {
    "x = set([1])\nreturn {'x': x}": ("graph.code_protocol", 4),
    "return {'x': 1e308 * 10}": ("graph.code_protocol", 4),
    "return [1, 2]": ("graph.code_protocol", 4),
    "return None": ("graph.code_protocol", 4),
    "raise SystemExit(3)": ("graph.code_exited", 4),
    "raise KeyboardInterrupt()": ("graph.code_exited", 4),
    "return {'x': 1 // 0}": ("graph.code_raised", 4),
    "return {'x': ['flood' * 1000] * 20000}": ("isolate.output_exceeded", 5),
    "while True:\n    pass": ("isolate.fuel_exhausted", 5),
    "x = 'x'\nwhile True:\n    x = x + x": ("isolate.memory_exhausted", 5),
}


class Bodies(unittest.TestCase):
    def test_each_gets_its_error_and_the_next_is_served(self):
        for body, (code, exit_code) in BODIES.items():
            with self.subTest(body):
                result = caisson("run", "-", "-q", "--report", stdin=code_workflow(body))
                self.assertTrue(result.stdout, result.stderr)
                error = result.json()["error"]
                self.assertEqual((error["code"], result.code), (code, exit_code), error)
                self.assertEqual(error["node"], "work")
                served = caisson("run", "-", "-q", "--report", stdin=code_workflow("return {'ok': True}"))
                self.assertEqual(served.code, 0, served.stderr)

    def test_an_exception_names_the_line_of_the_file(self):
        result = caisson("run", "-", "-q", stdin=code_workflow("a = 1\n\nreturn {'x': a // 0}"))
        self.assertEqual(result.code, 4)
        self.assertIn("ZeroDivisionError", result.stderr)
        self.assertIn("<stdin>:12", result.stderr)
        self.assertIn("return {'x': a // 0}", result.stderr)

    def test_control_characters_of_a_message_do_not_reach_the_terminal(self):
        result = caisson("run", "-", "-q", stdin=code_workflow("raise ValueError('\\x1b[2Jgone')"))
        self.assertEqual(result.code, 4)
        self.assertNotIn("\x1b", result.stderr)
        self.assertIn("\\x1b[2Jgone", result.stderr)


main()
