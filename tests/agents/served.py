# SPDX-License-Identifier: Apache-2.0
"""The scripted endpoint as a process of its own, for tests."""

import contextlib
import json
import pathlib
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent


class Served:
    def __init__(self, port):
        self.origin = f"http://127.0.0.1:{port}"
        self.base_url = self.origin + "/v1"

    def call(self, path, document=None):
        data = None if document is None else json.dumps(document).encode()
        with urllib.request.urlopen(self.origin + path, data=data, timeout=30) as answer:
            return json.load(answer)

    def script(self, *answers):
        self.call("/script", {"answers": list(answers)})

    def requests(self):
        return self.call("/requests")

    def bodies(self):
        return [request["body"] for request in self.requests()]


@contextlib.contextmanager
def endpoint():
    process = subprocess.Popen([sys.executable, str(HERE / "endpoint.py")], stdout=subprocess.PIPE, text=True)
    try:
        yield Served(json.loads(process.stdout.readline())["port"])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
