# SPDX-License-Identifier: Apache-2.0
"""The service that the suites of this folder talk to.

CAISSON_URL and CAISSON_KEY (of an administrator; CAISSON_OTHER_KEY: of another tenant) name one that
runs already, with real machines. Else api-service of the build is started: the whole API over
namespaces of this host.
"""

import atexit
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

BIN = pathlib.Path(os.environ.get("CAISSON_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/release"))


class Service:
    def __init__(self):
        self.is_real = "CAISSON_URL" in os.environ
        if self.is_real:
            self.url = os.environ["CAISSON_URL"]
            self.key = os.environ["CAISSON_KEY"]
            self.other_key = os.environ["CAISSON_OTHER_KEY"]
            return
        if os.geteuid() != 0:
            print("skipped: without CAISSON_URL this needs root, for namespaces")
            raise SystemExit(77)
        self._directory = tempfile.mkdtemp(prefix="caisson-api-", dir="/tmp")
        os.chmod(self._directory, 0o711)
        self._log = open(os.path.join(self._directory, "log"), "wb")
        self._process = subprocess.Popen([BIN / "tests/api/api-service", self._directory], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._log)
        atexit.register(self.close)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(pathlib.Path(self._directory, "log").read_text())
        info = json.loads(line)
        self.url, self.key, self.other_key = info["url"], info["key"], info["other_key"]

    def close(self):
        self._process.stdin.close()
        if self._process.wait(timeout=30) != 0:
            print(pathlib.Path(self._directory, "log").read_text()[-4000:])
        self._log.close()
        shutil.rmtree(self._directory, ignore_errors=True)
