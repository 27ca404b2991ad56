# SPDX-License-Identifier: Apache-2.0
"""Every example gives what its expected.json says, compiled at once or by way of its IR."""

import json
import pathlib
import re
import tempfile
import unittest

from programs import ROOT, caisson, main

# What needs an endpoint is run by tests/agents.
FOLDERS = sorted(path.parent for path in (ROOT / "examples").glob("*/workflow.py")
                 if not (path.parent / "endpoint.json").exists())


def optional(path: pathlib.Path, otherwise):
    return json.loads(path.read_text()) if path.exists() else otherwise


def differences(expected: dict, state: dict) -> list[str]:
    """Every key of `expected` is in `state` with that value; likewise one level down in node_results."""
    found = []
    for key, value in expected.items():
        if key == "node_results":
            found += differences(value, state[key])
        elif key not in state:
            found.append(f"{key} is missing")
        elif json.dumps(state[key], sort_keys=True) != json.dumps(value, sort_keys=True):
            found.append(f"{key} is {state[key]!r} and not {value!r}")
    return found


class Examples(unittest.TestCase):
    def run_one(self, folder: pathlib.Path, source: str):
        result = caisson("run", source, "--mode", "restricted", "--input", f"@{folder}/input.json",
                         *optional(folder / "arguments.json", []), env=optional(folder / "environment.json", {}))
        for answer in optional(folder / "answers.json", []):
            self.assertEqual(result.code, 9, result.stderr)
            [run] = re.findall(r"caisson runs resume (\S+)", result.stderr)
            result = caisson("runs", "resume", run, "--value", json.dumps(answer))
        self.assertEqual(result.code, 0, result.stderr)
        expected = json.loads((folder / "expected.json").read_text())
        self.assertEqual(differences(expected, result.json()), [])

    def test_there_are_nine(self):
        self.assertEqual(len(FOLDERS), 9)

    def test_each_gives_what_it_must(self):
        for folder in FOLDERS:
            with self.subTest(folder.name):
                self.run_one(folder, str(folder / "workflow.py"))

    def test_each_gives_the_same_by_way_of_its_ir(self):
        with tempfile.TemporaryDirectory() as directory:
            for folder in FOLDERS:
                with self.subTest(folder.name):
                    ir = f"{directory}/{folder.name}.json"
                    compiled = caisson("compile", str(folder / "workflow.py"), "-o", ir)
                    self.assertEqual(compiled.code, 0, compiled.stderr)
                    self.run_one(folder, ir)

    def test_each_has_a_line_of_readme(self):
        for folder in FOLDERS:
            self.assertTrue((folder / "README.md").read_text().strip(), folder.name)


main()
