# SPDX-License-Identifier: Apache-2.0
"""Pools: machines that are ready, with a process that waits for its input."""

import base64
import json
import time
import unittest
import uuid

import httpx

from service_under_test import Service

SERVICE = Service()
SANDBOX = {"shape": "s-1vcpu-256mb", "egress": ["240.0.0.0/4"]}
ECHO = {"command": "python3", "args": ["-u", "-c", "print('ready'); print('got', input())"], "ready": "ready"}


class Pools(unittest.TestCase):
    def setUp(self):
        self.http = httpx.Client(base_url=SERVICE.url, headers={"X-Api-Key": SERVICE.key}, timeout=60)
        self.other = httpx.Client(base_url=SERVICE.url, headers={"X-Api-Key": SERVICE.other_key}, timeout=60)
        self.addCleanup(self.http.close)
        self.addCleanup(self.other.close)
        self.name = "p-" + uuid.uuid4().hex[:12]

    def call(self, method, path, expect=200, **keywords):
        answer = self.http.request(method, path, **keywords)
        self.assertEqual(answer.status_code, expect, answer.text)
        return answer.json()["data"]

    def define(self, expect=200, **fields):
        self.addCleanup(self.http.delete, f"/v1/pools/{self.name}")
        return self.call("PUT", f"/v1/pools/{self.name}", expect, json={"sandbox": SANDBOX, "size": 1} | fields)

    def until(self, **wanted):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            view = self.call("GET", f"/v1/pools/{self.name}")
            if all(view.get(name) == value for name, value in wanted.items()):
                return view
            time.sleep(0.05)
        self.fail(f"no {wanted}: {view}")

    def take(self, expect=200, **fields):
        made = self.call("POST", "/v1/sandboxes", expect, json={"pool": self.name} | fields)
        if expect == 200:
            self.addCleanup(self.http.delete, f"/v1/sandboxes/{made['id']}")
        return made

    def output_of(self, sandbox):
        process = f"/v1/sandboxes/{sandbox['id']}/processes/{sandbox['warm_process']}"
        self.call("POST", process + "/input", json={"data_base64": base64.b64encode(b"words\n").decode()})
        self.assertEqual(self.call("GET", process + "/wait", params={"timeout_ms": 20000})["exit_code"], 0)
        text = b""
        with self.http.stream("GET", process + "/connect") as lines:
            for line in lines.iter_lines():
                text += base64.b64decode(json.loads(line).get("data_base64", ""))
        return text.decode()

    def test_a_ready_machine_has_its_process_waiting_for_input(self):
        self.assertTrue(self.define(warm=ECHO)["created"])
        self.assertFalse(self.define(warm=ECHO)["created"])
        self.until(ready=1)
        labels = {"pool-test": self.name}
        first = self.take(name="n-" + self.name[2:12], labels=labels, delete_after_seconds=600)
        self.assertEqual(first["pool"], {"name": self.name, "ready": True})
        self.assertEqual(first["name"], "n-" + self.name[2:12])
        self.assertEqual(first["egress"], SANDBOX["egress"])
        self.assertIn("delete_at", first)
        self.assertEqual(self.output_of(first), "ready\ngot words\n")
        listed = self.call("GET", "/v1/sandboxes", params={"label": f"pool-test={self.name}"})["data"]
        self.assertEqual([view["id"] for view in listed], [first["id"]])
        self.until(ready=1, handed_out=1)  # it is replaced
        second = self.take()
        self.assertNotEqual(first["id"], second["id"])
        self.assertEqual(self.output_of(second), "ready\ngot words\n")

    def test_one_that_is_not_ready_is_made_with_its_process(self):
        self.define(warm=ECHO | {"args": ["-u", "-c", "import time; time.sleep(1); print('ready'); print('got', input())"]})
        made = self.take()
        self.assertEqual(made["pool"], {"name": self.name, "ready": False})
        self.assertEqual(self.output_of(made), "ready\ngot words\n")

    def test_what_waits_is_in_no_list_and_goes_with_the_pool(self):
        before = self.call("GET", "/v1/whoami")["stats"]["total"]
        self.define(size=2)
        self.until(ready=2)
        self.assertEqual(self.call("GET", "/v1/whoami")["stats"]["total"], before)
        self.call("DELETE", f"/v1/pools/{self.name}")
        self.call("GET", f"/v1/pools/{self.name}", 404)
        self.take(404)

    def test_another_tenant_cannot_take_from_it(self):
        self.define()
        self.until(ready=1)
        self.assertEqual(self.other.get(f"/v1/pools/{self.name}").status_code, 404)
        self.assertEqual(self.other.delete(f"/v1/pools/{self.name}").status_code, 404)
        self.assertEqual(self.other.post("/v1/sandboxes", json={"pool": self.name}).status_code, 404)
        self.assertNotIn(self.name, self.other.get("/v1/pools").text)
        self.assertTrue(self.take()["pool"]["ready"])

    def test_a_process_that_ends_or_is_silent_is_told(self):
        # An interpreter takes its time where a processor is imitated.
        for args, seconds, words in (
                (["-c", "import sys; print('no model', file=sys.stderr); sys.exit(3)"], 30, ("exit code 3", "no model")),
                (["-c", "import time; time.sleep(60)"], 1, ("has not written its ready line within 1 s",))):
            self.define(warm=ECHO | {"args": args, "timeout_seconds": seconds})
            end = time.monotonic() + 60
            while "error" not in (view := self.call("GET", f"/v1/pools/{self.name}")) and time.monotonic() < end:
                time.sleep(0.05)
            for word in words:
                self.assertIn(word, view["error"])
            self.assertEqual(view["ready"], 0)
        answer = self.http.post("/v1/sandboxes", json={"pool": self.name})
        self.assertEqual((answer.status_code, answer.headers["X-Error-Code"]), (422, "control.warm_failed"))

    def test_refusals_name_the_field(self):
        for fields, path in (({"size": 0}, "size"), ({"size": "2"}, "size"), ({"sandbox": {}}, "sandbox.shape"),
                             ({"sandbox": SANDBOX | {"name": "n"}}, "sandbox.name"),
                             ({"sandbox": SANDBOX | {"shape": "none"}}, "sandbox.shape"),
                             ({"sandbox": SANDBOX | {"disk_mib": 1}}, "sandbox.disk_mib"),
                             ({"warm": {"args": []}}, "warm.command"), ({"warm": ECHO | {"ready": "a\nb"}}, "warm.ready"),
                             ({"idle_seconds": 0}, "idle_seconds")):
            with self.subTest(fields):
                self.assertIn(path, self.define(400, **fields))
        self.define()
        self.assertIn("shape", self.take(400, shape="s-1vcpu-256mb"))

    def test_values_of_variables_are_not_told(self):
        view = self.define(sandbox=SANDBOX | {"envs": {"KEY": "secret-7"}}, warm=ECHO | {"env": {"OTHER": "secret-7"}})
        self.assertEqual((view["sandbox"]["envs"], view["warm"]["env"]), (["KEY"], ["OTHER"]))
        self.assertNotIn("secret-7", self.http.get("/v1/pools").text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
