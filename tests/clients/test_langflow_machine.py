# SPDX-License-Identifier: Apache-2.0
"""A whole Langflow server of the image langflow:1 in a machine: its page and a flow's answer through the ingress URL, from which the
key of an administrator of the service never reaches it. CAISSON_TEST_DRIVER names the driver."""

import os
import sys
import time
import unittest
import urllib.parse

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")

import httpx

from service_under_test import Service

if "CAISSON_TEST_DRIVER" not in os.environ and "CAISSON_URL" not in os.environ:
    print("skipped: a server of Langflow needs the image langflow:1, thus CAISSON_TEST_DRIVER")
    sys.exit(77)
SERVICE = Service()

import executor_flows as flows

PORT = 7860
BEGUN_WITHIN = 1500
VARIABLES = {"HOME": "/root", "LANGFLOW_AUTO_LOGIN": "true", "LANGFLOW_SKIP_AUTH_AUTO_LOGIN": "true", "DO_NOT_TRACK": "true",
             "LANGFLOW_CONFIG_DIR": "/root/langflow", "LANGFLOW_CREATE_STARTER_PROJECTS": "false", "LANGFLOW_UPDATE_STARTER_PROJECTS": "false"}


class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        wanted = {"shape": "s-2vcpu-4gb", "rootfs": "langflow:1", "ingress_enabled": True, "ingress_token": True, "envs": VARIABLES,
                  "egress": ["240.0.0.0/4"]}
        SERVICE.warm({"shape": wanted["shape"], "rootfs": wanted["rootfs"]})
        cls.sandbox = cls.call("POST", "/v1/sandboxes", json=wanted)
        cls.process = cls.call("POST", f"/v1/sandboxes/{cls.sandbox['id']}/processes", json={
            "cmd": "python3", "args": ["-m", "langflow", "run", "--host", "0.0.0.0", "--port", str(PORT), "--no-open-browser"]})
        url = urllib.parse.urlsplit(cls.sandbox["ingress_url_template"].replace("<port>", str(PORT)))
        host = {} if url.hostname == urllib.parse.urlsplit(SERVICE.url).hostname else {"Host": url.netloc}
        cls.client = httpx.Client(base_url=SERVICE.url + url.path.rstrip("/"), timeout=120,
                                  headers=host | {"X-Ingress-Token": cls.sandbox["ingress_token"]})
        begin = time.monotonic()
        while not cls.is_up():
            if time.monotonic() > begin + BEGUN_WITHIN:
                raise AssertionError("Langflow does not answer: " + cls.said())
            time.sleep(1)
        print(f"Langflow answered {time.monotonic() - begin:.0f} s after it was started", flush=True)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.call("DELETE", f"/v1/sandboxes/{cls.sandbox['id']}")

    @classmethod
    def call(cls, method, path, **fields):
        answer = httpx.request(method, SERVICE.url + path, headers={"X-Api-Key": SERVICE.key}, timeout=300, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    @classmethod
    def is_up(cls):
        view = cls.call("GET", f"/v1/sandboxes/{cls.sandbox['id']}/processes/{cls.process['process_id']}")
        if view["state"] not in ("starting", "running"):
            raise AssertionError("Langflow has ended: " + cls.said())
        try:
            return cls.client.get("/health", timeout=30).status_code == 200
        except httpx.TimeoutException:
            return False

    @classmethod
    def said(cls):
        import base64
        import json
        text = b""
        with httpx.stream("GET", f"{SERVICE.url}/v1/sandboxes/{cls.sandbox['id']}/processes/{cls.process['process_id']}/connect",
                          headers={"X-Api-Key": SERVICE.key}, timeout=3) as answer:
            try:
                for line in answer.iter_lines():
                    text += base64.b64decode(json.loads(line).get("data_base64") or "")
            except httpx.HTTPError:
                pass
        return text[-4000:].decode(errors="replace")

    def test_the_editor_is_there_and_a_flow_answers(self):
        page = self.client.get("/")
        self.assertEqual(page.status_code, 200)
        self.assertIn("<title>Langflow</title>", page.text)
        made = self.client.post("/api/v1/flows/", json={"name": "echo", "data": flows.echo().dump()["data"]})
        self.assertEqual(made.status_code, 201, made.text[:500])
        answer = self.client.post(f"/api/v1/run/{made.json()['id']}", params={"stream": "false"},
                                  json={"input_value": "through the ingress", "input_type": "chat", "output_type": "chat"})
        self.assertEqual(answer.status_code, 200, answer.text[:500])
        self.assertIn("through the ingress", str(answer.json()["outputs"]))

    def test_without_the_token_nobody_comes_in(self):
        url = self.client.base_url
        host = {"Host": self.client.headers["Host"]} if "Host" in self.client.headers else {}
        self.assertEqual(httpx.get(str(url) + "health", headers=host, timeout=30).status_code, 404)


if __name__ == "__main__":
    unittest.main(verbosity=2)
