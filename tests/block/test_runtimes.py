# SPDX-License-Identifier: Apache-2.0
"""`caisson runtimes`: what it says of the runtimes, and how it installs one."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from programs import OwnPrograms, caisson, environment, main  # noqa: E402


def cpython(env: dict | None = None) -> dict:
    result = caisson("runtimes", "list", env=env)
    assert result.code == 0, result.stderr
    found = {entry["name"]: entry for entry in result.json()["runtimes"]}
    assert found.keys() == {"cpython", "native", "oci"}, found
    return found["cpython"]


class Runtimes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.own = OwnPrograms()

    def tearDown(self):
        self.own.close()
        self.folder.cleanup()

    def test_say_why_one_is_not_there(self):
        found = cpython({"CAISSON_DATA_DIR": self.folder.name})
        self.assertFalse(found["ready"])
        self.assertIn(f"its artifact is not in {self.folder.name}/cpython", found["reason"])
        self.assertEqual(found["what_to_do"], "caisson runtimes install cpython")

    def test_are_part_of_what_the_doctor_says(self):
        told = caisson("doctor", "--json", env={"CAISSON_DATA_DIR": self.folder.name}).json()
        self.assertIn("block_runtimes", told)
        if told["jailed"]:
            self.assertEqual([entry["name"] for entry in told["block_runtimes"]], ["cpython", "native", "oci"])

    def test_that_cannot_be_fetched_say_so(self):
        script = pathlib.Path(self.folder.name) / "fetch_cpython.py"
        script.write_text("import sys\nprint('asking', file=sys.stderr)\nsys.exit('fetch_cpython: nobody answers')\n")
        result = caisson("runtimes", "install", "cpython",
                         env={"CAISSON_RUNTIMES_DIR": self.folder.name, "CAISSON_DATA_DIR": self.folder.name})
        self.assertEqual(result.code, 6, result.stderr)
        self.assertIn("info: cpython: asking\n", result.stderr)
        self.assertIn("error[wasm.artifact]: the artifact of the runtime cpython cannot be fetched: "
                      "fetch_cpython: nobody answers", result.stderr)

    def test_are_installed_by_name(self):
        self.assertEqual(caisson("runtimes", "install", "jvm").code, 2)
        self.assertEqual(caisson("runtimes", "install").code, 2)

    def test_tell_how_far_they_are_and_can_be_cancelled(self):
        env = {"CAISSON_CACHE_DIR": self.folder.name}
        if "its artifact is not in" in cpython(env)["reason"]:
            self.skipTest("the artifact of cpython is not fetched")
        process = subprocess.Popen([self.own.program, "runtimes", "install", "cpython"], stderr=subprocess.PIPE,
                                   env=environment(env), text=True)
        lines = []
        while not any("CPU seconds)" in line for line in lines):
            lines.append(process.stderr.readline())
            self.assertTrue(lines[-1], lines)
        self.assertIn("about 240 MB on disk", "".join(lines))
        process.send_signal(signal.SIGINT)
        self.assertIn("error[cli.cancelled]", process.stderr.read())
        process.stderr.close()
        self.assertEqual(process.wait(30), 4)
        self.own.wait_until_gone()
        self.assertEqual([name for name in os.listdir(self.folder.name) if "code" in name or "snapshot" in name], [])
        found = cpython(env)
        self.assertFalse(found["ready"])
        self.assertIn("not in the cache", found["reason"])


main()
