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
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machine"))

import real_service

BIN = real_service.BUILD
PREPARED_WITHIN = 600  # seconds
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
        if self.driver is None:
            return
        for kind in kinds:
            begin = time.monotonic()
            sandbox = self._first(kind)
            self._call("DELETE", f"/v1/sandboxes/{sandbox}")
            print(f"{self.driver}: the first machine of {kind} took {time.monotonic() - begin:.1f} s", flush=True)

    def _first(self, kind):
        """While its template is made, who asks is told to come again."""
        deadline = time.monotonic() + PREPARED_WITHIN
        while True:
            try:
                return self._call("POST", "/v1/sandboxes", kind)["data"]["id"]
            except urllib.error.HTTPError as error:
                told = error.read().decode(errors="replace")
                if error.code != 503 or "Retry-After" not in error.headers or time.monotonic() > deadline:
                    raise SystemExit(f"no machine of {kind}: {error.code} {told}") from error
                time.sleep(int(error.headers["Retry-After"]))

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(),
                                         {"X-Api-Key": self.key, "Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def _close_real(self):
        if self._real.process is not None:
            for view in self._call("GET", "/v1/sandboxes?limit=500")["data"]["data"]:
                self._call("DELETE", f"/v1/sandboxes/{view['id']}")
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
