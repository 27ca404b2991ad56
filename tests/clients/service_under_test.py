# SPDX-License-Identifier: Apache-2.0
"""The service that the suites of this folder talk to.

CAISSON_URL and CAISSON_KEY (of an administrator; CAISSON_OTHER_KEY: of another tenant) name one that
runs already, with real machines. CAISSON_TEST_DRIVER starts one with machines of that driver (tests/machine/real_service.py).
Else api-service of the build is started: the whole API over namespaces of this host.
"""

import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machine"))

import real_service

BIN = real_service.BUILD
ROOTFS = os.environ.get("CAISSON_TEST_ROOTFS", "devbox:1")


class Service:
    def __init__(self):
        self.driver = os.environ.get("CAISSON_TEST_DRIVER")
        self.is_real = "CAISSON_URL" in os.environ or self.driver is not None
        if "CAISSON_URL" in os.environ:
            self.url = os.environ["CAISSON_URL"]
            self.key = os.environ["CAISSON_KEY"]
            self.other_key = os.environ["CAISSON_OTHER_KEY"]
        elif self.driver is not None:
            self._start_real()
        else:
            self._start_namespaces()

    def _start_real(self):
        if why := real_service.why_not(self.driver, ROOTFS):
            print(f"skipped: {why}")
            raise SystemExit(77)
        real_service.enter_own_world()
        self._real = real_service.RealService(self.driver, ROOTFS)
        atexit.register(self._close_real)
        self._real.start()
        self.url, self.key, self.other_key = self._real.url, self._real.key, self._real.new_key("bob")
        self.warm({"shape": "s-1vcpu-256mb"}, {"shape": "s-1vcpu-1gb"})

    def warm(self, *kinds):
        """The first machine of an image and a shape takes longer than clients wait: a virtual one boots its template."""
        if self.driver is not None:
            for kind in kinds:
                real_service.prepare(self.url, self.key, kind)

    def _call(self, method, path):
        return real_service.call(self.url, self.key, method, path)

    def _close_real(self):
        if self._real.process is not None:
            real_service.empty(self.url, self.key)
            self._real.stop()
            if left := self._real.left_behind():
                print("left behind:", *left, sep="\n")
        self._real.remove()

    def _start_namespaces(self):
        if os.geteuid() != 0:
            print("skipped: without CAISSON_URL this needs root, for namespaces")
            raise SystemExit(77)
        self._directory = tempfile.mkdtemp(prefix="caisson-api-", dir="/tmp")
        os.chmod(self._directory, 0o711)
        self._log = open(os.path.join(self._directory, "log"), "wb")
        self._process = subprocess.Popen([BIN / "tests/api/api-service", self._directory], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._log)
        atexit.register(self._close_namespaces)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(pathlib.Path(self._directory, "log").read_text())
        info = json.loads(line)
        self.url, self.key, self.other_key = info["url"], info["key"], info["other_key"]

    def _close_namespaces(self):
        self._process.stdin.close()
        if self._process.wait(timeout=30) != 0:
            print(pathlib.Path(self._directory, "log").read_text()[-4000:])
        self._log.close()
        shutil.rmtree(self._directory, ignore_errors=True)
