# SPDX-License-Identifier: Apache-2.0
"""A whole Langflow of tests/clients/langflow-server.txt in a process of its own, with an empty database, whose machines are those of
a service under test."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import httpx

START_SECONDS = 600


class Langflow:
    def __init__(self, service, **variables):
        self.folder = tempfile.mkdtemp(prefix="caisson-langflow-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        env = {name: text for name, text in os.environ.items() if not name.startswith(("CAISSON_SANDBOX_", "CREATEOS_", "LANGFLOW_"))}
        env |= {"CAISSON_SANDBOX_BASE_URL": service.url, "CAISSON_SANDBOX_API_KEY": service.key, "LANGFLOW_CONFIG_DIR": self.folder,
                "LANGFLOW_DATABASE_URL": f"sqlite:///{self.folder}/langflow.db", "LANGFLOW_AUTO_LOGIN": "true",
                "LANGFLOW_SKIP_AUTH_AUTO_LOGIN": "true", "LANGFLOW_ALLOW_CUSTOM_COMPONENTS": "false", "DO_NOT_TRACK": "true",
                "LANGFLOW_CREATE_STARTER_PROJECTS": "false"} | variables
        self.log = open(f"{self.folder}/log", "wb")
        self.process = subprocess.Popen([pathlib.Path(sys.executable).with_name("langflow"), "run", "--host", "127.0.0.1", "--port",
                                         str(self.port), "--no-open-browser"], env=env, cwd=self.folder, stdout=self.log,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if httpx.get(self.url + "/health", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(1)
        raise SystemExit("langflow did not start: " + pathlib.Path(self.folder, "log").read_text(errors="replace")[-4000:])

    def client(self):
        token = httpx.get(self.url + "/api/v1/auto_login", timeout=60).json()["access_token"]
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=180)

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def store(http, name, data):
    """Saves a flow and gives its id."""
    made = http.post("/api/v1/flows/", json={"name": name, "data": json.loads(json.dumps(data, default=str))})
    assert made.status_code < 300, made.text
    return made.json()["id"]


def build(http, flow):
    """A build of the saved flow as the editor's API does it: what each vertex told when it ended."""
    told = {}
    with http.stream("POST", f"/api/v1/build/{flow}/flow", params={"event_delivery": "direct"}, json={}) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            event = json.loads(line) if line.strip() else {}
            if event.get("event") == "end_vertex":
                one = event["data"]["build_data"]
                told[one["id"]] = one
            elif event.get("event") == "error":
                raise AssertionError(json.dumps(event)[:4000])
    return told
