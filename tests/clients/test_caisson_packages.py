# SPDX-License-Identifier: Apache-2.0
"""Packages that our executor installs in machines before a flow, from an index in the world of internet.py: jails of the image
langflow:1. Needs root; exits with 77 without."""

import asyncio
import os
import pathlib
import sys
import tempfile
import unittest
import zipfile

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
for name in [name for name in os.environ if name.startswith(("CREATEOS_", "LANGFLOW_", "CAISSON_SANDBOX_", "CAISSON_EXECUTOR_"))]:
    del os.environ[name]

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machine"))

import real_service
from environment import EnvironmentCase
from internet import Internet

ROOTFS, DRIVER, SHAPE = "langflow:1", "jail", "s-2vcpu-4gb"
if why := real_service.why_not(DRIVER, ROOTFS):
    print(f"skipped: {why}")
    raise SystemExit(77)

from caisson_langflow.executor import CaissonExecutor
from lfx.execution.types import Unit
from lfx.utils.sandbox.base import SandboxUnavailableError

import executor_flows as flows

INDEX = "--index-url http://example.com/simple/ --trusted-host example.com --disable-pip-version-check --retries 0 "


def make_index(folder):
    """An index with the one package own-words."""
    page = pathlib.Path(folder, "simple", "own-words")
    page.mkdir(parents=True)
    about = "own_words-1.0.dist-info/"
    with zipfile.ZipFile(page / "own_words-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("own_words.py", "SAID = 'from a package'\n")
        wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: own-words\nVersion: 1.0\n")
        wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(about + "RECORD", "".join(f"{name},,\n" for name in ("own_words.py", *(about + one for one in ("METADATA", "WHEEL", "RECORD")))))


class Packages(EnvironmentCase):
    def setUp(self):
        self.variable("CAISSON_EXECUTOR_EGRESS", "none")
        self.variable("CAISSON_EXECUTOR_INDEX_HOSTS", "example.com")

    def run_flow(self):
        async def collect():
            return [item async for item in CaissonExecutor().execute(Unit(graph=flows.chain("packages"), inputs=[], runtime_options={}))]

        [outputs] = asyncio.run(collect())[-1].outputs
        [one] = [one for result in outputs.outputs for one in result.outputs.values()]
        return one["message"] if isinstance(one["message"], str) else one["message"]["text"]

    def test_they_are_there_and_the_index_is_closed_when_the_flow_runs(self):
        self.variable("CAISSON_EXECUTOR_PIP", INDEX + "own-words==1.0")
        self.assertEqual(self.run_flow(), "from a package closed")

    def test_with_lfx_as_the_host_has_it(self):
        self.variable("CAISSON_EXECUTOR_PIP", INDEX + "own-words")
        self.variable("CAISSON_EXECUTOR_INSTALL_LFX", "true")  # the image has this very version, so the index need not
        self.assertEqual(self.run_flow(), "from a package closed")
        self.variable("CAISSON_EXECUTOR_LFX_VERSION", "0.0.1")
        with self.assertRaisesRegex(SandboxUnavailableError, "lfx==0.0.1"):
            self.run_flow()

    def test_what_the_index_lacks_is_named_and_nothing_runs(self):
        self.variable("CAISSON_EXECUTOR_PIP", INDEX + "no-such-words")
        with self.assertRaisesRegex(SandboxUnavailableError, "CAISSON_EXECUTOR_PIP.*no-such-words"):
            self.run_flow()

    def test_an_index_that_is_not_named_is_not_reached(self):
        self.variable("CAISSON_EXECUTOR_PIP", INDEX + "own-words")
        self.variable("CAISSON_EXECUTOR_INDEX_HOSTS", "other.example.org")
        with self.assertRaisesRegex(SandboxUnavailableError, "own-words"):
            self.run_flow()
        self.variable("CAISSON_EXECUTOR_INDEX_HOSTS", "")
        with self.assertRaisesRegex(SandboxUnavailableError, "CAISSON_EXECUTOR_INDEX_HOSTS"):
            self.run_flow()


def main():
    real_service.enter_own_world()
    with tempfile.TemporaryDirectory(prefix="caisson-index-") as folder:
        make_index(folder)
        internet = Internet(folder)
        service = real_service.RealService(DRIVER, ROOTFS)
        try:
            service.start()
            os.environ |= {"CAISSON_SANDBOX_BASE_URL": service.url, "CAISSON_SANDBOX_API_KEY": service.key,
                           "CAISSON_EXECUTOR_ROOTFS": ROOTFS, "CAISSON_EXECUTOR_SHAPE": SHAPE}
            real_service.prepare(service.url, service.key, {"shape": SHAPE})
            ended = unittest.main(verbosity=2, exit=False)
            real_service.empty(service.url, service.key)
            return 0 if ended.result.wasSuccessful() else 1
        finally:
            service.kill()
            service.remove()
            internet.close()


if __name__ == "__main__":
    sys.exit(main())
