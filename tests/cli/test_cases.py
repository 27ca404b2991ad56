# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of tests/golden/cli: a folder each, with

  cmd      the arguments, as a shell would split them; $CASE is the folder, $TMP a fresh one
  stdin    optional
  env      optional, NAME=VALUE lines
  stdout, stderr, exit   what must come out, byte for byte
  files/   optional: what must be in $TMP afterwards

All run in the folder of the case. `--bless` after the folder of the programs rewrites what must come out.
"""

import pathlib
import shlex
import sys
import tempfile
import unittest

from programs import ROOT, caisson, main

CASES = ROOT / "tests/golden/cli"
BLESS = "--bless" in sys.argv
sys.argv = [argument for argument in sys.argv if argument != "--bless"]


def read(path: pathlib.Path) -> str:
    return path.read_text() if path.exists() else ""


def outcome(case: pathlib.Path, directory: str) -> dict[str, str]:
    words = [word.replace("$TMP", directory).replace("$CASE", str(case)) for word in shlex.split(read(case / "cmd"))]
    variables = dict(line.split("=", 1) for line in read(case / "env").splitlines())
    stdin = (case / "stdin").read_bytes() if (case / "stdin").exists() else b""
    result = caisson(*words, stdin=stdin, cwd=case, env=variables)
    found = {"stdout": result.stdout, "stderr": result.stderr, "exit": f"{result.code}\n"}
    for path in sorted(pathlib.Path(directory).rglob("*")):
        if path.is_file():
            found[f"files/{path.relative_to(directory)}"] = path.read_text()
    return {name: text.replace(directory, "$TMP").replace(str(case), "$CASE") for name, text in found.items()}


class Cases(unittest.TestCase):
    maxDiff = None

    def check(self, case: pathlib.Path):
        with tempfile.TemporaryDirectory() as directory:
            found = outcome(case, directory)
        if BLESS:
            for name, text in found.items():
                (case / name).parent.mkdir(exist_ok=True)
                (case / name).write_text(text)
            return
        expected = {name: read(case / name) for name in ("stdout", "stderr", "exit")}
        for path in (case / "files").glob("**/*"):
            if path.is_file():
                expected[str(path.relative_to(case))] = path.read_text()
        self.assertEqual(found, expected)

    def test_there_are_cases(self):
        self.assertGreater(len(list(CASES.iterdir())), 20)


for folder in sorted(CASES.iterdir()):
    setattr(Cases, f"test_{folder.name}", lambda self, folder=folder: self.check(folder))

main()
