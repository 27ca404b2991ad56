# SPDX-License-Identifier: Apache-2.0
"""Options that cannot be meant are refused before anything runs, with what could be."""

import os
import tempfile
import unittest

from programs import caisson, code_workflow, main

SOURCE = code_workflow("return {}")
# option: (values that are refused, what the refusal says, values that are taken)
RANGES = {
    "--memory": (["0", "1MiB", "2MiB", "5GiB", "-1", "lots"], "from the heap and 2MiB to 4GiB", ["16MiB"]),
    "--heap": (["0", "1", "255KiB", "513MiB", "1GiB"], "from 256KiB to 512MiB", ["256KiB"]),
    "--output": (["0", "1", "1023", "513MiB"], "from 1KiB to 512MiB", ["1KiB", "512MiB"]),
    "--fuel": (["1", "999999", "2000000G"], "0, or from 1M to 1000000G", ["0", "10M"]),
    "--call-timeout": (["0", "0.1ms", "1001h", "-1s", "nan", "inf"], "from 1ms to 1000h", ["10s"]),
    "--timeout": (["0", "1001h", "soon"], "from 1ms to 1000h", ["60s", "1000h"]),
    "--state": (["0", "63KiB", "65GiB"], "from 64KiB to 64GiB", ["64KiB", "64GiB"]),
    "--workers": (["0", "65", "-1", "many"], "1 to 64", ["1"]),
}


class Options(unittest.TestCase):
    def refused(self, *arguments: str, stdin=SOURCE, env=None) -> str:
        result = caisson("run", "-", "--events", *arguments, stdin=stdin, env=env)
        self.assertEqual((result.code, result.stdout), (2, ""), (arguments, result.stderr))
        self.assertNotIn("run_started", result.stderr)
        return result.stderr

    def test_quantities_out_of_their_range_name_the_range(self):
        for option, (wrong, said, _) in RANGES.items():
            for value in wrong:
                with self.subTest(option=option, value=value):
                    error = self.refused(f"{option}={value}")
                    self.assertIn(option, error)
                    if value not in ("-1", "lots", "-1s", "nan", "inf", "soon", "many", "0.1ms"):
                        self.assertIn(said, error)

    def test_quantities_within_their_range_are_taken(self):
        for option, (_, _, right) in RANGES.items():
            for value in right:
                with self.subTest(option=option, value=value):
                    result = caisson("run", "-", "-q", option, value, stdin=SOURCE)
                    self.assertEqual(result.code, 0, result.stderr)

    def test_the_help_names_every_range(self):
        text = " ".join(caisson("run", "--help").stdout.split())
        for option, (_, said, _) in RANGES.items():
            self.assertIn(said, text, option)

    def test_linear_memory_must_hold_the_heap(self):
        error = self.refused("--heap", "64MiB", "--memory", "65MiB")
        self.assertIn("do not hold a heap of 67108864 bytes", error)
        described = caisson("describe", "--heap", "64MiB", "--memory", "65MiB")
        self.assertEqual(described.code, 2, described.stderr)

    def test_the_input_must_be_an_object(self):
        for text in ("[]", "5", "null", '"x"', "true"):
            with self.subTest(text):
                self.assertIn("--input must be a JSON object", self.refused("--input", text))

    def test_a_cache_that_cannot_be_used_is_refused_before_the_run(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            for path in ("/proc/nope", directory):
                with self.subTest(path):
                    self.assertIn("Set CAISSON_CACHE_DIR", self.refused(env={"CAISSON_CACHE_DIR": path}))


main()
