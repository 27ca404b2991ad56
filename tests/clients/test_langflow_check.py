# SPDX-License-Identifier: Apache-2.0
"""caisson-langflow check, over flows of our own making; without lfx, which it does not need."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/langflow/src"))

from caisson_langflow import command, flow_check

NEW = """
from lfx.custom.custom_component.component import Component
from lfx.utils.sandbox import run_code_in_sandbox
class PythonREPLComponent(Component):
    display_name = "Python Interpreter"
    def run(self):
        return run_code_in_sandbox(self.python_code)
"""
OLD = """
from langchain_experimental.utilities import PythonREPL
class PythonREPLComponent(Component):
    display_name = "Python Interpreter"
    def run(self):
        # run_code_in_sandbox(self.python_code) came later
        return PythonREPL().run(self.python_code)
"""
PLAIN = """
import json, typing
import pandas as pd
from PIL import Image
from lfx.custom import Component
if typing.TYPE_CHECKING:
    import only_for_types
try:
    import only_tried
except ImportError:
    pass
class Plain(Component):
    def run(self):
        from openai import Client
        from . import neighbour
"""


def node(type_, source=None, id_="n1", **fields):
    template = {name: {"value": value} for name, value in fields.items()}
    if source is not None:
        template["code"] = {"value": source, "type": "code"}
    return {"id": id_, "data": {"id": id_, "type": type_, "node": {"display_name": type_, "template": template}}}


def flow(*nodes):
    return json.dumps({"name": "a flow", "data": {"nodes": list(nodes), "edges": []}})


def kinds(text, stock=None, modules=None):
    return [one.kind for one in flow_check.check(text, stock, modules)]


class Nodes(unittest.TestCase):
    def test_an_interpreter_without_the_sandbox_branch(self):
        self.assertEqual(kinds(flow(node("PythonREPLComponent", OLD))), ["stale"])
        self.assertEqual(kinds(flow(node("PythonREPLComponent", NEW))), [])
        self.assertEqual(kinds(flow(node("PythonREPLComponent"))), ["stale"])
        # By its class, when its type says something else.
        self.assertEqual(kinds(flow(node("Harmless", OLD))), ["stale"])
        self.assertEqual(kinds(flow(node("ext:lfx:Thing@official", OLD.replace("PythonREPLComponent", "Thing")))), ["stale"])

    def test_nodes_that_run_code_in_the_server(self):
        self.assertEqual(kinds(flow(node("PythonFunction"), node("Smart Transform"), node("Cuga"))), ["in_process"] * 3)
        self.assertEqual(kinds(flow(node("CSVAgent", allow_dangerous_code=True))), ["in_process"])
        self.assertEqual(kinds(flow(node("CSVAgent", allow_dangerous_code=False))), [])
        self.assertEqual(kinds(flow(node("CSVAgent"))), ["in_process"])  # not said is not off
        self.assertEqual(kinds(flow(node("RunFlow"))), ["other_flow"])

    def test_a_source_that_is_not_stock(self):
        self.assertEqual(kinds(flow(node("Plain", PLAIN)), stock={flow_check.hash_of(PLAIN)}), [])
        self.assertEqual(kinds(flow(node("Plain", PLAIN + "#")), stock={flow_check.hash_of(PLAIN)}), ["custom"])
        self.assertEqual(kinds(flow(node("Plain", "def (")), stock=set()), ["unreadable"])
        self.assertEqual(kinds(flow(node("Plain", "(" * 100_000)), stock=set()), ["unreadable"])

    def test_what_the_image_lacks(self):
        [finding] = flow_check.check(flow(node("Plain", PLAIN)), None, {"pandas"}, "the image langflow:1")
        self.assertEqual(finding.kind, "missing")
        self.assertIn("imports PIL, openai, which the image langflow:1 does not have", finding.text)
        self.assertEqual(kinds(flow(node("Plain", PLAIN)), None, {"pandas", "PIL", "openai"}), [])

    def test_nodes_in_groups_and_in_several_flows(self):
        group = {"id": "g", "data": {"type": "GroupNode", "node": {"flow": {"data": {"nodes": [node("PythonFunction", id_="in")]}}}}}
        [finding] = flow_check.check(flow(group), None)
        self.assertEqual((finding.node, finding.kind), ("in", "in_process"))
        several = json.dumps({"flows": [json.loads(flow(node("PythonFunction"))), json.loads(flow(node("Cuga")))]})
        self.assertEqual(kinds(several), ["in_process"] * 2)
        self.assertEqual(kinds(json.dumps([json.loads(flow(node("Cuga")))])), ["in_process"])

    def test_what_is_no_flow(self):
        deep = []
        for _ in range(flow_check.DEPTH + 2):
            deep = [{"id": "g", "data": {"type": "G", "node": {"flow": {"data": {"nodes": deep}}}}}]
        for text in ("", "{", "7", "[7]", "{}", '{"data": {}}', '{"nodes": {}}', '{"nodes": [{}]}', "[" * 100_000, json.dumps({"nodes": deep})):
            with self.assertRaises(flow_check.NotAFlow, msg=text[:40]):
                flow_check.check(text, None)


class Command(unittest.TestCase):
    def run_it(self, *texts, words=()):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, text in enumerate(texts):
                paths.append(pathlib.Path(folder, f"{number}.json"))
                paths[-1].write_bytes(text if isinstance(text, bytes) else text.encode())
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = command.main(["check", *words, *map(str, paths)])
        return code, out.getvalue(), err.getvalue()

    def test_says_what_it_found_and_how_it_ended(self):
        code, out, _ = self.run_it(flow(node("PythonREPLComponent", OLD, id_="Python-abc12")))
        self.assertEqual(code, 1)
        self.assertRegex(out, r"0\.json: PythonREPLComponent \(Python-abc12\): was saved by .* update the node on the canvas")
        code, out, _ = self.run_it(flow(), words=["--json"])
        self.assertEqual((code, out), (0, ""))
        code, out, _ = self.run_it(flow(node("Cuga")), words=["--json"])
        self.assertEqual((code, json.loads(out)["kind"]), (1, "in_process"))

    def test_files_that_are_none(self):
        code, _, err = self.run_it(b"\xff", flow(node("Cuga")))
        self.assertEqual(code, 2)
        self.assertIn("is no UTF-8", err)
        code = self.run_it(flow(), words=["--modules", "/nowhere"])[0]
        self.assertEqual(code, 2)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(command.main(["check", "/nowhere.json"]), 2)

    def test_a_list_of_modules(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
            listed.write("pandas\nPIL\n")
            listed.flush()
            code, out, _ = self.run_it(flow(node("Plain", PLAIN)), words=["--modules", listed.name])
        self.assertEqual(code, 1)
        self.assertIn("imports openai,", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
