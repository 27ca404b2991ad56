# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile of an image says what the image's definition says."""

import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEFINITION = ROOT / "runtimes/images/python-science.json"
DOCKERFILE = ROOT / "runtimes/images/python-science.Dockerfile"


class Dockerfile(unittest.TestCase):
    def setUp(self):
        self.definition = json.loads(DEFINITION.read_text())
        text = DOCKERFILE.read_text().replace("\\\n", " ")
        self.stages = re.split(r"(?m)^(?=FROM )", text)[1:]

    def test_the_release_is_the_same(self):
        for stage in self.stages:
            self.assertTrue(stage.startswith(f"FROM debian:{self.definition['suite']}-slim"), stage)

    def test_the_packages_are_the_same(self):
        installed = re.search(r"apt-get install --yes --no-install-recommends ([^&]*)", self.stages[-1])[1].split()
        self.assertEqual(installed, self.definition["packages"])

    def test_the_libraries_are_those_of_the_lock(self):
        lock = (DEFINITION.parent / self.definition["python"]["requirements"]).resolve()
        self.assertIn(f"COPY {lock.relative_to(ROOT)} /python-native.lock\n", self.stages[0])
        for option in ("--require-hashes", "--no-deps", "--only-binary :all:", "--requirement /python-native.lock"):
            self.assertIn(option, self.stages[0])
        self.assertIn(f"COPY --from=libraries /libraries /{self.definition['python']['directory']}\n", self.stages[-1])

    def test_nothing_runs_as_root(self):
        self.assertIn("USER 1001:1001\n", self.stages[-1])
        self.assertIn(f'ENTRYPOINT ["/{self.definition["python"]["program"]}", "-I"]\n', self.stages[-1])


if __name__ == "__main__":
    unittest.main()
