# SPDX-License-Identifier: Apache-2.0
"""What the completion scripts offer, in bash, and in zsh and fish where they are installed."""

import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import unittest

from programs import ROOT, caisson, main

# Among others.
COMMANDS = {"check", "compile", "run", "schema", "graph", "describe", "doctor", "completions"}


class Completions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.files = pathlib.Path(self.folder.name)
        (self.files / "my workflow.py").write_text("")

    def tearDown(self):
        self.folder.cleanup()

    def script(self, shell: str) -> str:
        result = caisson("completions", shell)
        self.assertEqual((result.code, result.stderr), (0, ""))
        path = self.files / f"caisson.{shell}"
        path.write_text(result.stdout)
        return str(path)

    def shell(self, name: str, *arguments: str) -> str:
        done = subprocess.run([name, *arguments], cwd=self.files, capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder.name, "TERM": "dumb"})
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def bash(self, *words: str) -> list[str]:
        quoted = " ".join(shlex.quote(word) for word in words)
        return self.shell("bash", "-c", f"source {self.script('bash')}; COMP_WORDS=(caisson {quoted}); "
                          f"COMP_CWORD={len(words)}; _caisson; printf '%s\\n' \"${{COMPREPLY[@]}}\"").splitlines()

    def test_bash(self):
        self.assertLessEqual(COMMANDS | {"--help", "--version"}, set(self.bash("")))
        self.assertEqual(self.bash("comp"), ["compile", "completions"])
        self.assertIn("--credential", self.bash("run", "--c"))
        self.assertEqual(self.bash("run", "--policy", ""), ["drop", "raise"])
        self.assertEqual(self.bash("check", "--format", "=", "s"), ["sarif"])
        self.assertEqual(self.bash("check", "--format", "="), ["text", "json", "sarif"])
        self.assertEqual(self.bash("check", "my"), ["my workflow.py"])
        self.assertEqual(self.bash("compile", "-o", "my"), ["my workflow.py"])
        self.assertEqual(self.bash("run", "--memory", ""), [""])
        self.assertEqual(self.bash("completions", "z"), ["zsh"])
        self.assertEqual(self.bash("doctor", ""), [""])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_script(self):
        self.shell("zsh", "-f", "-n", self.script("zsh"))

    def fish(self, line: str) -> list[str]:
        offered = self.shell("fish", "-N", "-c", f"source {self.script('fish')}; complete -C {shlex.quote(line)}")
        return [row.split("\t")[0] for row in offered.splitlines()]

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.shell("fish", "-n", self.script("fish"))
        self.assertLessEqual(COMMANDS, set(self.fish("caisson ")))
        self.assertEqual(self.fish("caisson comp"), ["compile", "completions"])
        self.assertIn("--credential", self.fish("caisson run --c"))
        self.assertEqual(set(self.fish("caisson run --policy ")), {"drop", "raise"})
        self.assertEqual(self.fish("caisson check --format=s"), ["--format=sarif"])
        self.assertEqual(self.fish("caisson completions z"), ["zsh"])
        self.assertEqual(self.fish("caisson doctor "), [])
        self.assertNotIn("--credential", self.fish("caisson check run --c"))

    def test_every_option_of_the_help_is_offered(self):
        for command in COMMANDS:
            words = caisson(command, "--help").stdout.replace(",", " ").split()
            options = {word for word in words if word.startswith("--") and word.strip("-")}
            offered = set(self.bash(command, "--"))
            # Examples may show options of other programs.
            self.assertLessEqual({option for option in offered if option.startswith("--")}, options)
            self.assertIn("--help", offered)


main()
