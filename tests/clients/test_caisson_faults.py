# SPDX-License-Identifier: Apache-2.0
"""caisson-langflow where something is wrong: what lfx sees of it, from real machines of the driver CAISSON_TEST_DRIVER.

What guests may reach is tried from inside them, in a world of this test's own: public addresses, a name server and a
metadata address, each of which answers whoever gets there. Needs root; exits with 77 without.
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

ALLOWED, OTHER, HOST, UP = "203.0.113.10", "203.0.113.20", "198.51.100.1", "198.51.100.53"
METADATA = "169.254.169.254"
SERVERS = """
import http.server, socket, socketserver, struct, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'ok')
    def log_message(self, *_): pass
class Names(socketserver.BaseRequestHandler):
    def handle(self):
        question, reply = self.request
        end = question.index(b'\\0', 12) + 5
        name = question[12:end - 5]
        kind = struct.unpack('>H', question[end - 4:end - 2])[0]
        address = {b'\\7example\\3com': '203.0.113.10'}.get(name.lower(), '203.0.113.20')
        answers = [b'\\xc0\\x0c' + struct.pack('>HHIH', 1, 1, 60, 4) + socket.inet_aton(address)] if kind == 1 else []
        reply.sendto(question[:2] + struct.pack('>HHHHH', 0x8180, 1, len(answers), 0, 0) + question[12:end] + b''.join(answers), self.client_address)
for address in sys.argv[2:]:
    threading.Thread(target=http.server.ThreadingHTTPServer((address, 80), Page).serve_forever).start()
if sys.argv[1] == 'names':
    threading.Thread(target=socketserver.ThreadingUDPServer(('198.51.100.53', 53), Names).serve_forever).start()
print('up', flush=True)
"""
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


def run(*words):
    subprocess.run(words, check=True)


class Internet:
    """Two public addresses and a name server behind the host's one link; a metadata address on the host itself."""

    def __init__(self):
        run("ip", "link", "add", "wan0", "type", "veth", "peer", "name", "net0")
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        pid, own = str(self.holder.pid), os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{pid}/ns/net") == own:
            time.sleep(0.02)
        run("ip", "link", "set", "net0", "netns", pid)
        run("sh", "-c", f"ip addr add {HOST}/24 dev wan0 && ip link set wan0 up && ip route add default via {UP} && "
                        f"ip addr add {METADATA}/32 dev lo")
        inside = ("nsenter", "-t", pid, "-n")
        run(*inside, "sh", "-c", f"ip link set lo up && ip link set net0 up && ip addr add {UP}/24 dev net0 && "
                                 f"ip addr add {ALLOWED}/32 dev net0 && ip addr add {OTHER}/32 dev net0")
        self.servers = [subprocess.Popen([*inside, sys.executable, "-c", SERVERS, "names", ALLOWED, OTHER], stdout=subprocess.PIPE),
                        subprocess.Popen([sys.executable, "-c", SERVERS, "none", HOST, METADATA], stdout=subprocess.PIPE)]
        for server in self.servers:
            assert server.stdout.readline() == b"up\n"
        self.resolvers = f"/run/caisson-test-resolv-{os.getpid()}"
        pathlib.Path(self.resolvers).write_text(f"nameserver {UP}\n")
        run("mount", "--bind", self.resolvers, "/etc/resolv.conf")

    def close(self):
        run("umount", "/etc/resolv.conf")
        os.unlink(self.resolvers)
        for process in (*self.servers, self.holder):
            process.kill()
            process.wait()
        for server in self.servers:
            server.stdout.close()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = SERVICE

    def setUp(self):
        self.variable("CAISSON_SANDBOX_BASE_URL", SERVICE.url)
        self.variable("CAISSON_SANDBOX_API_KEY", SERVICE.key)
        self.policy(timeout_seconds=LONG)

    def variable(self, name, value):
        before = os.environ.get(name)
        self.addCleanup(lambda: os.environ.pop(name, None) if before is None else os.environ.__setitem__(name, before))
        os.environ[name] = value

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
