# SPDX-License-Identifier: Apache-2.0
"""A sandbox's network policy through the life of the service itself: pauses, forks, and a service that is killed and started
anew, with machines of the driver CAISSON_TEST_DRIVER, which try from inside what they may reach.

usage: test_policies.py. Needs root and an image with python3 (CAISSON_TEST_ROOTFS, else python-science); exits with 77 without.
"""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machine"))

import real_service

ROOTFS = os.environ.get("CAISSON_TEST_ROOTFS", "python-science")
DRIVER = os.environ.get("CAISSON_TEST_DRIVER", "jail")
OPEN, CLOSED = "203.0.113.10", "203.0.113.20"
PROBE = """
import socket
def reach(address):
    try:
        with socket.create_connection((address, 80), 4) as s: return s.recv(2) == b'ok'
    except OSError: return False
print([reach(a) for a in ('203.0.113.10', '203.0.113.20', '198.51.100.1')])
"""
SERVER = """
import socket, threading
def serve(address):
    s = socket.create_server((address, 80))
    while True:
        c = s.accept()[0]
        c.sendall(b'ok')
        c.close()
for address in ('203.0.113.10', '203.0.113.20', '198.51.100.53'):
    threading.Thread(target=serve, args=(address,)).start()
print('up', flush=True)
"""


def run(*words):
    subprocess.run(words, check=True)


class Internet:
    """Two public addresses behind the host's one link, in a namespace of their own."""

    def __init__(self):
        run("ip", "link", "add", "wan0", "type", "veth", "peer", "name", "net0")
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        pid = str(self.holder.pid)
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{pid}/ns/net") == own:
            time.sleep(0.02)
        run("ip", "link", "set", "net0", "netns", pid)
        run("sh", "-c", "ip addr add 198.51.100.1/24 dev wan0 && ip link set wan0 up && ip route add default via 198.51.100.53")
        inside = ("nsenter", "-t", pid, "-n")
        run(*inside, "sh", "-c", "ip link set lo up && ip link set net0 up && ip addr add 198.51.100.53/24 dev net0 && "
                                 f"ip addr add {OPEN}/32 dev net0 && ip addr add {CLOSED}/32 dev net0")
        self.server = subprocess.Popen([*inside, sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
        assert self.server.stdout.readline() == b"up\n"
        self.host = socket.create_server(("198.51.100.1", 80))
        threading.Thread(target=self.serve_on_host, daemon=True).start()

    def serve_on_host(self):
        while True:
            with self.host.accept()[0] as connection:
                connection.sendall(b"ok")

    def close(self):
        for process in (self.server, self.holder):
            process.kill()
            process.wait()
        self.server.stdout.close()


class Policies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.internet = Internet()
        cls.addClassCleanup(cls.internet.close)
        cls.service = real_service.RealService(DRIVER, ROOTFS)
        cls.addClassCleanup(cls.service.remove)
        cls.service.start()
        cls.addClassCleanup(cls.service.stop)
        real_service.prepare(cls.service.url, cls.service.key, {"shape": "s-1vcpu-256mb"})

    def call(self, method, path, body=None, expect=200):
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.service.url).netloc, timeout=300)
        connection.request(method, path, None if body is None else json.dumps(body), {"X-Api-Key": self.service.key})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        self.assertEqual(answer.status, expect, text)
        return json.loads(text).get("data")

    def make(self, rules):
        sandbox = self.call("POST", "/v1/sandboxes", {"shape": "s-1vcpu-256mb", "egress": rules})["id"]
        self.addCleanup(self.call, "DELETE", f"/v1/sandboxes/{sandbox}")
        return sandbox

    def assert_reaches(self, sandbox, expected, when):
        """The open address, the other one, the host."""
        outcome = self.call("POST", f"/v1/sandboxes/{sandbox}/exec",
                            {"cmd": "python3", "args": ["-ISc", PROBE], "cwd": "/"})["result"]
        self.assertEqual(outcome["stdout"].strip(), str(expected), f"{when}: {outcome['stderr']}")

    def test_a_policy_outlives_pauses_forks_and_the_service(self):
        rules = [f"{OPEN}:80", "example.com"]
        one = self.make(rules)
        everything = self.make(["*"])
        nothing = self.make(["240.0.0.0/4"])
        self.assert_reaches(one, [True, False, False], "first")
        self.assert_reaches(everything, [True, True, False], "first")
        self.assert_reaches(nothing, [False, False, False], "first")
        for path in (one, nothing):
            self.call("POST", f"/v1/sandboxes/{path}/pause")
        # gVisor writes no machine to a file that has had a TCP connection just now.
        capabilities = json.dumps(self.call("GET", "/v1/capabilities"))
        what = {"extent": "filesystem"} if "user-space-kernel" in capabilities else {}
        fork = self.call("POST", f"/v1/sandboxes/{one}/fork", what)["id"]
        self.addCleanup(self.call, "DELETE", f"/v1/sandboxes/{fork}")
        self.assert_reaches(fork, [True, False, False], "in a fork")
        for _ in range(2):
            self.service.kill()
            self.service.start()
            self.assert_reaches(fork, [True, False, False], "a fork after a restart")
            self.assert_reaches(everything, [True, True, False], "after a restart")
        for sandbox, expected in ((one, [True, False, False]), (nothing, [False, False, False])):
            self.call("POST", f"/v1/sandboxes/{sandbox}/resume")
            self.assert_reaches(sandbox, expected, "resumed after a restart")
        self.assertEqual(self.call("GET", f"/v1/sandboxes/{one}/egress")["egress"], rules)
        self.call("PUT", f"/v1/sandboxes/{one}/egress", {"egress": [CLOSED]})
        self.assert_reaches(one, [False, True, False], "changed")
        self.service.kill()
        self.service.start()
        self.assert_reaches(one, [False, True, False], "changed, after a restart")
        self.call("PUT", f"/v1/sandboxes/{one}/egress", {"egress": ["not a rule"]}, expect=422)
        self.assert_reaches(one, [False, True, False], "after a rule that is none")


if __name__ == "__main__":
    if reason := real_service.why_not(DRIVER, ROOTFS):
        print(f"skipped: {reason}")
        sys.exit(77)
    real_service.enter_own_world()
    unittest.main(verbosity=2)
