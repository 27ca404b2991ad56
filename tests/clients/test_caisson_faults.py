# SPDX-License-Identifier: Apache-2.0
"""caisson-langflow where something is wrong: what lfx sees of it, from real machines of the driver CAISSON_TEST_DRIVER.

What guests may reach is tried from inside them, in the world of internet.py. Needs root; exits with 77 without.
"""

import asyncio
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import types
import unittest

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
for name in [name for name in os.environ if name.startswith(("CREATEOS_", "LANGFLOW_SANDBOX_", "CAISSON_SANDBOX_", "CAISSON_COMPONENT_"))]:
    del os.environ[name]

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machine"))

import real_service
from environment import EnvironmentCase
from internet import ALLOWED, HOST, METADATA, OTHER, Internet

ROOTFS = os.environ.get("CAISSON_TEST_ROOTFS", "devbox:1")
LONG = 240  # seconds of a run: processors may be emulated
DRIVER = os.environ.get("CAISSON_TEST_DRIVER", "jail")
if why := real_service.why_not(DRIVER, ROOTFS):
    print(f"skipped: {why}")
    raise SystemExit(77)

import httpx
from caisson_langflow import backend as ours
from caisson_langflow.components.caisson import CaissonSandboxComponent
from lfx.services.deps import get_settings_service
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

PROBE = f"""
import http.client, socket
def reach(host):
    try:
        asked = http.client.HTTPConnection(host, 80, timeout=4)
        asked.request('GET', '/latest/meta-data/')
        return asked.getresponse().read() == b'ok'
    except (OSError, http.client.HTTPException): return False
def name(host):
    try: return bool(socket.getaddrinfo(host, 80))
    except OSError: return False
names = ('example.com', 'other.example.org')
print({{host: reach(host) for host in (*names, '{ALLOWED}', '{OTHER}', '{HOST}', '{METADATA}')}}, [name(one) for one in names])
"""


class Case(EnvironmentCase):
    @classmethod
    def setUpClass(cls):
        cls.service = SERVICE

    def setUp(self):
        self.variable("CAISSON_SANDBOX_BASE_URL", SERVICE.url)
        self.variable("CAISSON_SANDBOX_API_KEY", SERVICE.key)
        self.policy(timeout_seconds=LONG)

    def policy(self, **wanted):
        settings = get_settings_service().settings
        for name, value in wanted.items():
            name = "sandbox_" + name
            self.addCleanup(setattr, settings, name, getattr(settings, name))
            setattr(settings, name, value)

    def backend(self):
        made = ours.make_backend()
        self.addCleanup(made.shutdown)
        return made

    def live(self, key=None):
        answer = httpx.get(SERVICE.url + "/v1/sandboxes?limit=500", headers={"X-Api-Key": key or SERVICE.key}, timeout=60)
        return [view["id"] for view in answer.json()["data"]["data"] if view["status"] != "failed"]

    def node(self, program, **fields):
        return asyncio.run(CaissonSandboxComponent(_id="node", python_code=program, **({"timeout_seconds": LONG} | fields)).run_sandbox()).data


class Network(Case):
    """By the backend and by the component, from inside."""

    def assert_reaches(self, text, *expected, names):
        reached, known = text.strip().rsplit(" [", 1)
        reached = json.loads(reached.replace("'", '"').replace("True", "true").replace("False", "false"))
        self.assertEqual({host for host, is_there in reached.items() if is_there}, set(expected))
        self.assertEqual("[" + known, str(names))

    def test_off(self):
        self.assert_reaches(self.backend().run(PROBE).stdout, names=[False, False])
        self.assert_reaches(self.node(PROBE)["result"], names=[False, False])

    def test_domains(self):
        self.policy(allow_network=True, allowed_domains=["example.com"])
        self.assert_reaches(self.backend().run(PROBE).stdout, "example.com", names=[True, False])
        self.assert_reaches(self.node(PROBE, network="domains", domains="example.com")["result"], "example.com", names=[True, False])

    def test_open_is_the_internet_and_nothing_of_the_host(self):
        self.policy(allow_network=True)
        there = ("example.com", "other.example.org", ALLOWED, OTHER)
        self.assert_reaches(self.backend().run(PROBE).stdout, *there, names=[True, True])
        self.assert_reaches(self.node(PROBE, network="open")["result"], *there, names=[True, True])


class Guests(Case):
    def tearDown(self):
        self.assertEqual(self.live(), [])

    def test_a_program_that_takes_all_the_memory(self):
        program = ("held = []\nwhile True:\n    held.append(bytearray(32 << 20))\n"
                   "    held[-1][::4096] = b'x' * 8192  # each page is touched, once")
        result = self.backend().run(program)
        self.assertEqual(result.exit_code, 137)
        self.assertIn("LANGFLOW_SANDBOX_MEMORY_MB", result.error_message())
        data = self.node(program)
        self.assertEqual(data["exit_code"], 137)
        self.assertIn("choose a larger Shape", data["error"])

    def test_a_program_that_takes_all_the_disk(self):
        program = "import os\nos.posix_fallocate(os.open('/var/full', os.O_CREAT | os.O_RDWR), 0, 1 << 44)"
        result = self.backend().run(program)
        self.assertEqual(result.exit_code, 1)
        self.assertRegex(result.error_message(), "No space left on device|File too large")

    def test_a_reused_machine_that_takes_no_program_says_so(self):
        component = CaissonSandboxComponent(_id="node", session_mode="flow", python_code="import os, shutil\n"
                                            "os.makedirs('/workspace', exist_ok=True)\nshutil.rmtree('/workspace/runs')\n"
                                            "open('/workspace/runs', 'w').write('no folder any more')")
        graph = types.SimpleNamespace(flow_id="f", session_id="s")
        component._vertex = types.SimpleNamespace(graph=graph, outgoing_edges=[], edges_source_names=set(), data={})

        async def twice():
            first = (await component.run_sandbox()).data
            try:
                with self.assertRaisesRegex(SandboxExecutionError, "could not be written into the machine.*delete the machine"):
                    await component.run_sandbox()
            finally:
                httpx.delete(f"{SERVICE.url}/v1/sandboxes/{first['sandbox_id']}", headers={"X-Api-Key": SERVICE.key}, timeout=60)

        asyncio.run(twice())

    def test_an_image_without_python(self):
        known = httpx.get(SERVICE.url + "/v1/rootfs", headers={"X-Api-Key": SERVICE.key}).json()["data"]["rootfs"]
        if "debian:12" not in known:
            self.skipTest("there is no image debian:12")
        self.variable("CAISSON_SANDBOX_ROOTFS", "debian:12")
        real_service.prepare(SERVICE.url, SERVICE.key, {"shape": "s-1vcpu-1gb", "rootfs": "debian:12"})
        for attempt in (lambda: self.backend().run("print(1)"), lambda: self.node("print(1)")):
            with self.assertRaisesRegex(SandboxUnavailableError, "debian:12 has no python3; set CAISSON_SANDBOX_ROOTFS"):
                attempt()
        self.assertEqual(self.node("", command="echo $((6 * 7))")["result"], "42")


class Servers(Case):
    def tearDown(self):
        self.assertEqual(self.live(), [])

    def test_one_that_is_killed_in_mid_run_and_started_anew(self):
        backend = self.backend()
        caught = []

        def work(attempt):
            try:
                caught.append(attempt())
            except SandboxExecutionError as why:
                caught.append(why)

        program = "import time; time.sleep(300)"
        workers = [threading.Thread(target=work, args=(attempt,)) for attempt in
                   (lambda: backend.run(program), lambda: self.node(program))]
        [worker.start() for worker in workers]
        deadline = time.monotonic() + 60
        while len(self.live()) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(3)
        SERVICE.kill()
        time.sleep(0.5)
        SERVICE.start()
        [worker.join(120) for worker in workers]
        for why in caught:
            self.assertRegex(str(why), "how the program ended is not known; run it again")
            self.assertNotIsInstance(why, SandboxUnavailableError)
        self.assertEqual(len(caught), 2)
        self.assertEqual(backend.run("print(1)").stdout, "1\n")
        for sandbox in self.live():  # which the server would delete in their time
            view = httpx.get(f"{SERVICE.url}/v1/sandboxes/{sandbox}", headers={"X-Api-Key": SERVICE.key}).json()["data"]
            self.assertIn("delete_at", view)
            httpx.delete(f"{SERVICE.url}/v1/sandboxes/{sandbox}", headers={"X-Api-Key": SERVICE.key}, timeout=60)

    def test_a_quota_that_is_used_up(self):
        key = SERVICE.new_key("small")
        subprocess.run([real_service.BIN / "caisson", "tenants", "set", "small", "--sandboxes", "0", "--state", SERVICE.state],
                       check=True, capture_output=True)
        self.variable("CAISSON_SANDBOX_API_KEY", key)
        for attempt in (lambda: self.backend().run("print(1)"), lambda: self.node("print(1)")):
            with self.assertRaisesRegex(SandboxUnavailableError, "403: .*quota.*ask the server's operator"):
                attempt()
        self.assertEqual(self.live(key), [])


class Slow(http.server.BaseHTTPRequestHandler):
    """Accepts, and says nothing."""

    def do_GET(self):
        time.sleep(5)

    def log_message(self, *_):
        pass


class SlowServers(Case):
    def test_one_that_does_not_answer_in_time(self):
        from caisson_langflow import guest
        for module in (ours, guest):
            self.addCleanup(setattr, module, "CAPABILITIES_SECONDS", module.CAPABILITIES_SECONDS)
            module.CAPABILITIES_SECONDS = 0.5
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.variable("CAISSON_SANDBOX_BASE_URL", f"http://127.0.0.1:{server.server_port}")
            began = time.monotonic()
            for attempt in (ours.make_backend, lambda: self.node("print(1)")):
                with self.assertRaisesRegex(SandboxUnavailableError, "cannot be reached .ReadTimeout.*CAISSON_SANDBOX_BASE_URL"):
                    attempt()
            self.assertLess(time.monotonic() - began, 4)
            server.shutdown()


def main():
    global SERVICE
    real_service.enter_own_world()
    internet = Internet()
    SERVICE = real_service.RealService(DRIVER, ROOTFS)
    try:
        SERVICE.start()
        SERVICE.listen = SERVICE.url.partition("://")[2]
        real_service.prepare(SERVICE.url, SERVICE.key, {"shape": "s-1vcpu-1gb"})
        ended = unittest.main(verbosity=2, exit=False)
        real_service.empty(SERVICE.url, SERVICE.key)
        SERVICE.stop()
        left = SERVICE.left_behind()
        print(*left, sep="\n")
        return 0 if ended.result.wasSuccessful() and not left else 1
    finally:
        if SERVICE.process.poll() is None:
            SERVICE.kill()
        SERVICE.remove()
        internet.close()


if __name__ == "__main__":
    sys.exit(main())
