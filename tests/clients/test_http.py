# SPDX-License-Identifier: Apache-2.0
"""What no client library has a method for: tunnels, preview URLs, events, idempotency, labels, measurements,
delegated rights, malformed requests."""

import json
import socket
import threading
import time
import unittest
import urllib.parse
import uuid

import httpx

from service_under_test import Service

SERVICE = Service()
SHAPE = "s-1vcpu-256mb"
URL = urllib.parse.urlsplit(SERVICE.url)


def unique(prefix="t"):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


class Case(unittest.TestCase):
    def setUp(self):
        self.http = httpx.Client(base_url=SERVICE.url, headers={"X-Api-Key": SERVICE.key}, timeout=30)
        self.addCleanup(self.http.close)

    def call(self, method, path, expect=200, **keywords):
        answer = self.http.request(method, path, **keywords)
        self.assertEqual(answer.status_code, expect, answer.text)
        return answer.json()["data"] if expect < 500 else answer.json()

    def make(self, **fields):
        sandbox = self.call("POST", "/v1/sandboxes", json={"shape": SHAPE} | fields)
        self.addCleanup(self.http.delete, f"/v1/sandboxes/{sandbox['id']}")
        return sandbox

    def run_in(self, sandbox, script):
        return self.call("POST", f"/v1/sandboxes/{sandbox['id']}/exec", json={"cmd": "bash", "args": ["-c", script]})["result"]

    def serve_in(self, sandbox, port, address, program):
        """Starts a Python program in the sandbox that listens, and waits until it does."""
        script = f"import socket\ns = socket.create_server(('{address}', {port}))\nprint('up', flush=True)\n{program}"
        process = self.call("POST", f"/v1/sandboxes/{sandbox['id']}/processes",
                            json={"cmd": "python3", "args": ["-c", script]})
        with self.http.stream("GET", f"/v1/sandboxes/{sandbox['id']}/processes/{process['process_id']}/connect") as lines:
            for line in lines.iter_lines():
                event = json.loads(line)
                if event["type"] == "data":
                    return
                self.assertEqual(event["type"], "heartbeat", event)


class Tunnel(Case):
    def open(self, sandbox, port, key=SERVICE.key):
        connection = socket.create_connection((URL.hostname, URL.port), timeout=10)
        self.addCleanup(connection.close)
        connection.sendall((f"POST /v1/sandboxes/{sandbox['id']}/tunnel/{port} HTTP/1.1\r\nHost: x\r\n"
                            f"X-Api-Key: {key}\r\nConnection: Upgrade\r\nUpgrade: tcp-tunnel\r\n"
                            "Content-Length: 0\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(1)
            self.assertTrue(piece, head)
            head += piece
        return connection, head.decode()

    def test_bytes_go_both_ways_with_half_close(self):
        sandbox = self.make()
        self.serve_in(sandbox, 7000, "127.0.0.1",
                      "c, _ = s.accept()\ndata = b''\nwhile piece := c.recv(65536): data += piece\n"
                      "c.sendall(b'%d:' % len(data) + data[::-1][:5])\nc.close()")
        connection, head = self.open(sandbox, 7000)
        self.assertTrue(head.startswith("HTTP/1.1 101"), head)
        self.assertIn("tcp-tunnel", head)
        connection.sendall(b"x" * 300_000 + b"abcde")
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        self.assertEqual(answer, b"300005:edcba")

    def test_refusals_are_ordinary_answers(self):
        sandbox = self.make()
        self.assertIn(" 502 ", self.open(sandbox, 7999)[1])
        self.assertIn(" 401 ", self.open(sandbox, 7999, "wrong")[1])
        self.assertIn(" 400 ", self.open(sandbox, 70000)[1])
        self.call("POST", f"/v1/sandboxes/{sandbox['id']}/pause")
        self.assertIn(" 409 ", self.open(sandbox, 7000)[1])


ECHO = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        text = (self.requestline + '|' + self.headers['Host'] + '|' + str(self.headers.get('Authorization')) + '|' +
                str(self.headers.get('X-Api-Key')) + '|' + str(self.headers.get('X-Ingress-Token'))).encode()
        self.send_response(203)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for byte in body[::-1]:
            self.wfile.write(b'1\\r\\n' + bytes([byte]) + b'\\r\\n')
        self.wfile.write(b'0\\r\\n\\r\\n')
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('0.0.0.0', 8080), Handler, bind_and_activate=False)
server.socket = s
server.serve_forever()
"""


class Ingress(Case):
    def url(self, sandbox, path="/"):
        template = sandbox["ingress_url_template"]
        url = urllib.parse.urlsplit(template.replace("<port>", "8080"))
        headers = {} if url.hostname == URL.hostname else {"Host": url.netloc}
        prefix = url.path.rstrip("/")
        return SERVICE.url + prefix + path, headers

    def get(self, sandbox, path="/", **headers):
        url, host = self.url(sandbox, path)
        return httpx.get(url, headers=host | headers, timeout=20)

    def test_reaches_what_listens_for_everybody(self):
        sandbox = self.make(ingress_enabled=True)
        self.serve_in(sandbox, 8080, "0.0.0.0", ECHO)
        answer = self.get(sandbox, "/a%20b?c=1&d=%41", Authorization="secret", **{"X-Api-Key": "k"})
        self.assertEqual((answer.status_code, answer.text),
                         (203, "GET /a%20b?c=1&d=%41 HTTP/1.1|localhost:8080|None|None|None"))
        url, host = self.url(sandbox, "/post")
        self.assertEqual(httpx.post(url, headers=host, content=b"abc").text, "cba")
        off = self.call("PATCH", f"/v1/sandboxes/{sandbox['id']}", json={"ingress_enabled": False})
        self.assertNotIn("ingress_url_template", off)
        self.assertEqual(self.get(sandbox).status_code, 404)

    def test_not_what_listens_on_loopback(self):
        sandbox = self.make(ingress_enabled=True)
        self.serve_in(sandbox, 8080, "127.0.0.1", ECHO)
        self.assertEqual(self.get(sandbox).status_code, 502)

    def test_token(self):
        sandbox = self.make(ingress_enabled=True, ingress_token=True)
        token = sandbox["ingress_token"]
        self.assertNotIn("ingress_token", self.call("GET", f"/v1/sandboxes/{sandbox['id']}"))
        self.serve_in(sandbox, 8080, "0.0.0.0", ECHO)
        self.assertEqual(self.get(sandbox).status_code, 404)
        self.assertEqual(self.get(sandbox, **{"X-Ingress-Token": "wrong"}).status_code, 404)
        self.assertEqual(self.get(sandbox, **{"X-Ingress-Token": token}).text.split("|")[-1], "None")
        answer = self.get(sandbox, f"/x?a=1&ingress_token={token}&b=2")
        self.assertTrue(answer.text.startswith("GET /x?a=1&b=2 HTTP"), answer.text)


class Events(Case):
    def test_transitions_come_as_they_happen_and_again(self):
        seen, started = [], threading.Event()

        def listen():
            with httpx.stream("GET", SERVICE.url + "/v1/events", headers={"X-Api-Key": SERVICE.key}, timeout=30) as stream:
                for line in stream.iter_lines():
                    started.set()
                    if line.startswith("data: "):
                        seen.append(json.loads(line[6:]))
                        if seen[-1]["type"] == "sandbox.destroyed" and seen[-1]["sandbox_id"] in ids:
                            return

        ids = []
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        self.assertTrue(started.wait(10))
        sandbox = self.make()
        ids.append(sandbox["id"])
        self.call("POST", f"/v1/sandboxes/{sandbox['id']}/pause")
        self.call("DELETE", f"/v1/sandboxes/{sandbox['id']}")
        thread.join(15)
        mine = [event for event in seen if event.get("sandbox_id") == sandbox["id"]]
        self.assertEqual([event["type"] for event in mine],
                         ["sandbox.running", "sandbox.pausing", "sandbox.paused", "sandbox.destroying", "sandbox.destroyed"])
        first = mine[0]["seq"]
        with self.http.stream("GET", f"/v1/events?sandbox_id={sandbox['id']}", headers={"Last-Event-ID": str(first)}) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("event: "))
            self.assertEqual(next(lines), "event: sandbox.pausing")


class Ours(Case):
    def test_idempotency_key(self):
        key = {"Idempotency-Key": unique()}
        first = self.call("POST", "/v1/sandboxes", json={"shape": SHAPE}, headers=key)
        self.addCleanup(self.http.delete, f"/v1/sandboxes/{first['id']}")
        self.assertEqual(self.call("POST", "/v1/sandboxes", json={"shape": SHAPE}, headers=key)["id"], first["id"])
        self.call("POST", "/v1/sandboxes", 422, json={"shape": "s-1vcpu-1gb"}, headers=key)

    def test_labels(self):
        value = unique()
        one = self.make(labels={"run": value, "a/b": "1"})
        self.make(labels={"run": "other"})
        found = self.call("GET", "/v1/sandboxes", params=[("label", f"run={value}"), ("label", "a/b=1")])
        self.assertEqual([row["id"] for row in found["data"]], [one["id"]])
        self.call("PATCH", f"/v1/sandboxes/{one['id']}", json={"labels": {}})
        self.assertEqual(self.call("GET", "/v1/sandboxes", params={"label": f"run={value}"})["pagination"]["total"], 0)

    def test_delete_after(self):
        sandbox = self.make(delete_after_seconds=1)
        deadline = time.monotonic() + 20
        while self.call("GET", f"/v1/sandboxes/{sandbox['id']}")["status"] != "destroyed":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)

    def test_drivers_and_what_they_can_do(self):
        can = self.call("GET", "/v1/capabilities")
        drivers = {driver["driver"]: driver for driver in can["drivers"]}
        standard = drivers[can["default"]]
        sandbox = self.make(driver=can["default"])
        self.assertEqual((sandbox["driver"], sandbox["isolation"], sandbox["emulated"]),
                         (can["default"], standard["isolation"], standard["emulated"]))
        refused = self.call("POST", "/v1/sandboxes", 400, json={"shape": SHAPE, "driver": "teapot"})
        self.assertEqual(refused["code"], "control.unknown_driver")
        self.call("POST", f"/v1/sandboxes/{sandbox['id']}/pause")
        fork = self.call("POST", f"/v1/sandboxes/{sandbox['id']}/fork", json={})
        self.addCleanup(self.http.delete, f"/v1/sandboxes/{fork['id']}")
        self.assertEqual(fork["driver"], can["default"])
        self.assertEqual(self.call("GET", "/v1/hosts")["data"][0]["drivers"], list(drivers))

    def test_rules_by_name_are_enforced_or_refused(self):
        can = self.call("GET", "/v1/capabilities")
        standard = next(driver for driver in can["drivers"] if driver["driver"] == can["default"])
        if standard["egress"]["host_names"]:
            self.assertEqual(self.make(egress=["example.org"])["egress"], ["example.org"])
        else:
            refused = self.call("POST", "/v1/sandboxes", 422, json={"shape": SHAPE, "egress": ["example.org"]})
            self.assertEqual(refused["code"], "egress.host_names_unsupported")

    def test_log_of_what_was_denied(self):
        sandbox = self.make(egress=["240.0.0.0/4"])
        log = self.call("GET", f"/v1/sandboxes/{sandbox['id']}/egress/log?after=0")
        self.assertEqual((log["id"], log["denials"], log["rules"]), (sandbox["id"], [], []))
        self.call("GET", f"/v1/sandboxes/{sandbox['id']}/egress/log?after=x", 400)

    def test_effective_policy(self):
        sandbox = self.make(egress=["240.0.0.0/4"])
        policy = self.call("GET", f"/v1/sandboxes/{sandbox['id']}/egress")
        self.assertEqual((policy["egress"], policy["enforced"], policy["exceptions"]), (["240.0.0.0/4"], True, []))

    def test_measurements(self):
        sandbox = self.make()
        view = self.call("GET", f"/v1/sandboxes/{sandbox['id']}/metrics")
        self.assertEqual(view["sandbox_id"], sandbox["id"])
        self.assertGreater(view["memory_limit_bytes"], view["memory_bytes"])
        self.assertIn(sandbox["id"], [row["sandbox_id"] for row in self.call("GET", "/v1/metrics?limit=500")["data"]])
        text = httpx.get(SERVICE.url + "/metrics").text
        self.assertIn('caisson_sandboxes{state="running"}', text)
        self.assertIn("caisson_http_requests_total{", text)
        self.assertNotIn(SERVICE.key, text)

    def test_audit_log(self):
        sandbox = self.make()
        after = 0
        entries = []
        while page := self.call("GET", f"/v1/audit?limit=500&after={after}")["data"]:
            entries += page
            after = page[-1]["seq"]
        self.run_in(sandbox, "true")
        for _ in range(100):  # an entry is written after the answer
            more = self.call("GET", f"/v1/audit?limit=500&after={after}")["data"]
            mine = [entry for entry in entries + more if entry["target"] == sandbox["id"]]
            if mine:
                break
            time.sleep(0.05)
        self.assertEqual([(entry["action"], entry["status"]) for entry in mine],
                         [("POST /v1/sandboxes/{id}/exec", 200)])
        answer = httpx.get(SERVICE.url + "/v1/audit", headers={"X-Api-Key": SERVICE.other_key})
        self.assertEqual(answer.status_code, 403)

    def test_a_sandbox_can_pause_and_delete_itself(self):
        if not SERVICE.is_real:
            self.skipTest("the machines of this service have no self endpoint")
        for action, status in (("pause", "paused"), ("delete", "destroyed")):
            sandbox = self.make()
            time.sleep(1.5)  # until its agent is heard
            script = ("import urllib.request; print(urllib.request.urlopen(urllib.request.Request("
                      f"'http://127.0.0.1:1029/self/{action}?reason=done', method='POST')).status, flush=True)")
            self.call("POST", f"/v1/sandboxes/{sandbox['id']}/processes", json={"cmd": "python3", "args": ["-c", script]})
            deadline = time.monotonic() + 15
            while self.call("GET", f"/v1/sandboxes/{sandbox['id']}")["status"] != status:
                self.assertLess(time.monotonic(), deadline, action)
                time.sleep(0.2)


class Malformed(Case):
    def test_wrong_types_are_refused_in_every_field(self):
        fields = {"shape": str, "rootfs": str, "name": str, "disk_mib": int, "egress": list, "envs": dict, "labels": dict,
                  "networks": list, "disks": list, "ssh_pubkeys": list, "ingress_enabled": bool, "region": str,
                  "auto_pause_after_seconds": int, "delete_after_seconds": int, "bandwidth_quota_bytes": int, "host_id": str,
                  "driver": str, "ingress_wake": bool}
        for field, kind in fields.items():
            for wrong in (1.5, "text", 7, True, [1], {"k": 1}, [["x"]]):
                if type(wrong) is kind and kind not in (list, dict):
                    continue
                with self.subTest(field=field, wrong=wrong):
                    data = self.call("POST", "/v1/sandboxes", 400, json={"shape": SHAPE} | {field: wrong})
                    self.assertIn("must be", next(iter(data.values())))
        self.assertEqual(self.call("POST", "/v1/sandboxes", 400, json={"shape": SHAPE, "envs": {"A": 1}}),
                         {"envs": "$.envs.A must be a string, not an integer", "code": "api.field"})

    def test_unknown_fields_and_null_are_ignored(self):
        self.make(no_such_field={"x": [1]}, name=None, egress=None, auto_pause_after_seconds=None)

    def test_bodies_that_are_no_objects(self):
        for body in (b"{", b"[]", b"\xff\xfe", b'"x"', b"[" * 5000, b'{"shape": "a"} x'):
            with self.subTest(body=body[:20]):
                self.call("POST", "/v1/sandboxes", 400, content=body, headers={"Content-Type": "application/json"})

    def test_answers_are_envelopes_everywhere(self):
        for method, path, status in (("GET", "/nothing", 404), ("PUT", "/v1/shapes", 405), ("GET", "/v1/sandboxes?limit=x", 400),
                                     ("GET", "/v1/sandboxes?status=odd", 400), ("GET", "/v1/sandboxes/%2e%2e/x", 400),
                                     ("GET", "/v1/sandboxes/a%2Fb", 404), ("GET", "/v1/disks", 501), ("POST", "/v1/sandboxes/x/shell", 501),
                                     ("GET", "/v1/sandboxes/x/shell-ws", 501), ("GET", "/v1/metrics/timeseries", 501)):
            with self.subTest(path=path):
                answer = self.http.request(method, path)
                self.assertEqual(answer.status_code, status, answer.text)
                self.assertTrue(answer.headers["content-type"].startswith("application/json"))
                self.assertEqual(answer.json()["status"], "fail" if status < 500 else "error")
                self.assertTrue(answer.headers["x-error-code"])
                self.assertTrue(answer.headers["x-request-id"])

    def test_pages(self):
        for _ in range(3):
            self.make()
        page = self.call("GET", "/v1/sandboxes?limit=2&offset=1")
        self.assertEqual((page["pagination"]["limit"], page["pagination"]["offset"], page["pagination"]["count"]), (2, 1, 2))
        self.assertEqual(self.call("GET", "/v1/sandboxes?limit=9999")["pagination"]["limit"], 500)
        self.assertEqual(self.call("GET", "/v1/sandboxes?offset=100000")["data"], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
