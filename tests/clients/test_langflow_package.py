# SPDX-License-Identifier: Apache-2.0
"""caisson-langflow as users get it: the wheel, installed into an empty environment.

usage: test_langflow_package.py [--wheel FILE] [--lfx VERSION]. Without a wheel one is built. With a version of lfx, such as
1.13.*, that is installed beside it and must find backend and component.
"""

import argparse
import email
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "clients/langflow"
LOADED = """
import json

from lfx.extension.loader import load_installed_extensions
from lfx.utils.sandbox import known_sandbox_backends
[bundle] = [one for one in load_installed_extensions() if one.bundle == 'caisson']
print(json.dumps({'errors': [str(one) for one in bundle.errors], 'names': [one.klass.display_name for one in bundle.components],
                  'backends': sorted(known_sandbox_backends())}))
"""
LACKING = """
from caisson_langflow.plugin import make_backend
try: make_backend()
except Exception as why: print(type(why).__name__, why)
"""


def pip(python, *words):
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words], check=True)


class Package(unittest.TestCase):
    wheel, lfx = None, None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="caisson-wheel-")
        cls.addClassCleanup(folder.cleanup)
        if cls.wheel is None:
            subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", folder.name,
                            PACKAGE], check=True)
            [cls.wheel] = pathlib.Path(folder.name).glob("*.whl")
        cls.bin = pathlib.Path(folder.name, "empty/bin")
        venv.create(cls.bin.parent, with_pip=True)
        pip(cls.bin / "python", cls.wheel, *([f"lfx=={cls.lfx}"] if cls.lfx else []))

    def run_in_it(self, *words, env=None):
        return subprocess.run(words, capture_output=True, text=True, cwd=self.bin.parent, env={"PATH": "/usr/bin:/bin", "LFX_LOG_LEVEL": "ERROR",
                                                                                              "HOME": str(self.bin.parent), **(env or {})})

    def test_what_is_in_the_wheel(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = set(wheel.namelist())
            [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
            told = email.message_from_bytes(wheel.read(metadata))
            extension = json.loads(wheel.read("caisson_langflow/extension.json"))
        sources = {f"caisson_langflow/{path.relative_to(PACKAGE / 'src/caisson_langflow')}"
                   for path in (PACKAGE / "src/caisson_langflow").rglob("*.py")}
        self.assertLessEqual(sources, names)
        self.assertEqual(extension["version"], told["Version"])
        self.assertEqual(told["Requires-Python"], ">=3.10")
        self.assertIn("# caisson-langflow", told.get_payload())

    def test_the_command_works_without_langflow(self):
        flow = self.bin.parent / "flow.json"
        flow.write_text(json.dumps({"nodes": [{"id": "n", "data": {"type": "PythonFunction", "node": {}}}]}))
        ran = self.run_in_it(self.bin / "caisson-langflow", "check", "flow.json")
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("runs its function_code in the Langflow process", ran.stdout)

    def test_lfx_finds_backend_and_component(self):
        if not self.lfx:
            self.skipTest("without --lfx")
        ran = self.run_in_it(self.bin / "python", "-W", "ignore", "-c", LOADED, env={"LANGFLOW_SANDBOX_BACKEND_PLUGINS": "caisson"})
        told = json.loads(ran.stdout.splitlines()[-1]) if ran.stdout else ran.stderr
        self.assertEqual((told["errors"], told["names"]), ([], ["Caisson Sandbox"]))
        self.assertIn("caisson", told["backends"])
        ran = self.run_in_it(self.bin / "python", "-W", "ignore", "-c", LACKING)
        self.assertIn("SandboxUnavailableError CAISSON_SANDBOX_API_KEY is not set", ran.stdout)


if __name__ == "__main__":
    words = argparse.ArgumentParser()
    words.add_argument("--wheel", type=pathlib.Path)
    words.add_argument("--lfx")
    told, rest = words.parse_known_args()
    Package.wheel, Package.lfx = told.wheel.resolve() if told.wheel else None, told.lfx
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
