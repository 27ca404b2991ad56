# SPDX-License-Identifier: Apache-2.0
"""Orcheo's compiler and ours on the corpus and the golden cases: the same IR, or the same class, text and line of the error. Where we
refuse what Orcheo takes (docs/compatibility.md), the error says so."""

import collections
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "workflow"))

from compare_with_orcheo import same_text, sources
from orcheo.graph.ir import exceptions, models
from orcheo.graph.ir.interpreter import compile_workflow_to_ir as theirs

import caisson


def attempt(compiler, source):
    try:
        return compiler(source)
    except exceptions.IRError as error:
        return error


class Sources(unittest.TestCase):
    def compare(self, source):
        """None, or what differs."""
        try:
            peer = attempt(theirs, source)
        except Exception:
            return "orcheo failed"
        ours = attempt(caisson.compile_workflow_to_ir, source)
        if isinstance(peer, models.GraphIR):
            if isinstance(ours, models.GraphIR):
                self.assertEqual(json.dumps(ours.model_dump(mode="json")), json.dumps(peer.model_dump(mode="json")))
                return "same IR"
            first = next(each for each in ours.diagnostics if each["severity"] == "error")
            self.assertTrue(first["peer_accepts"] or first["code"] == "workflow.reserved_key", first)
            return "refused by ours only"
        if getattr(ours, "code", "") == "workflow.reserved_key":
            return "forged marker"
        self.assertIs(type(ours), type(peer), f"{ours!r} for {peer!r}")
        if isinstance(peer, exceptions.WorkflowValidationError):
            self.assertEqual(ours.lineno, peer.lineno)
            self.assertTrue(same_text(peer.raw_message, ours.raw_message), f"{ours!r} for {peer!r}")
        else:
            self.assertTrue(same_text(str(peer), str(ours)), f"{ours!r} for {peer!r}")
        self.assertTrue(ours.diagnostics)
        return "same error"

    def test_corpus_and_golden_cases(self):
        tally = collections.Counter()
        for name, source in sources().items():
            with self.subTest(name):
                tally[self.compare(source)] += 1
        print(dict(tally), flush=True)
        self.assertGreater(tally["same IR"], 20)
        self.assertGreater(tally["same error"], 50)

    def test_the_policy_is_off_for_trusted_sources(self):
        source = ("def orcheo_workflow():\n    g = StateGraph(State)\n    g.add_node('r', RSSNode(sources=['https://a.example']))\n"
                  "    g.add_node('p', PythonCode(code='return 1'))\n    g.set_entry_point('p')\n    return g\n")
        restricted = attempt(caisson.compile_workflow_to_ir, source)
        self.assertEqual(type(restricted), type(attempt(theirs, source)))
        for compiler in (theirs, caisson.compile_workflow_to_ir):
            told = attempt(lambda text, use=compiler: use(text, enforce_node_policy=False), source)
            self.assertEqual(str(told) if isinstance(told, Exception) else told.model_dump(),
                             str(other) if isinstance(other := attempt(lambda text: theirs(text, enforce_node_policy=False), source),
                                                      Exception) else other.model_dump())

    def test_classes_are_orcheos(self):
        self.assertIs(caisson.WorkflowValidationError, exceptions.WorkflowValidationError)
        self.assertIs(caisson.IRValidationError, exceptions.IRValidationError)
        self.assertIs(caisson.GraphIR, models.GraphIR)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
