# SPDX-License-Identifier: Apache-2.0
"""Uses every method of createos-sandbox (PyPI) that this server has a part for."""

import io
import json
import os
import threading
import time
import unittest
import uuid

import httpx

from createos import (Client, CommandError, CreateSandboxRequest, ExecOptions, ForkSandboxRequest, GetTemplateOptions,
                      ManagedProcessConnectOptions, ManagedProcessCreateRequest, ManagedProcessDeleteOptions,
                      ManagedProcessSignal, ManagedProcessWaitOptions, ManagedProcessWaitScope, NetworkCreateRequest,
                      ListSandboxesOptions, PTYSize, RetryOptions, RunCommandRequest,
                      SandboxStatus, TemplateCreateRequest, TemplateInclude, WaitOptions)
from createos import errors
from createos.models import DiskCreateRequest

from service_under_test import Service

SERVICE = Service()
SHAPE = "s-1vcpu-256mb"


def client(key=None):
    return Client(SERVICE.key if key is None else key, base_url=SERVICE.url, retry=RetryOptions(max_retries=0))


def unique(prefix="t"):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


class Case(unittest.TestCase):
    def setUp(self):
        self.client = client()
        self.addCleanup(self.client.close)

    def make(self, **fields):
        sandbox = self.client.create_sandbox(CreateSandboxRequest(**({"shape": SHAPE} | fields)))
        self.addCleanup(self.drop, sandbox)
        return sandbox

    @staticmethod
    def drop(sandbox):
        try:
            sandbox.destroy()
        except errors.APIError:
            pass  # deleted by the test itself

    def refuses(self, status, call, *arguments, **keywords):
        with self.assertRaises(errors.APIError) as caught:
            call(*arguments, **keywords)
        self.assertEqual(caught.exception.status_code, status, caught.exception)
        return str(caught.exception)


class Account(Case):
    def test_health(self):
        self.assertTrue(self.client.health().up)
        self.assertTrue(self.client.readiness().ready)

    def test_whoami_counts_sandboxes(self):
        before = self.client.who_am_i().stats
        self.make()
        after = self.client.who_am_i().stats
        self.assertEqual(after.running, before.running + 1)
        self.assertEqual(after.total, before.total + 1)

    def test_refuses_wrong_keys(self):
        for key in ("wrong", "csk_" + "x" * 43):
            self.refuses(401, client(key).who_am_i)

    def test_catalogue(self):
        shapes = {shape.id: shape for shape in self.client.list_shapes()}
        self.assertEqual(shapes["s-4vcpu-8gb"].memory_mib, 8192)
        self.assertEqual(shapes["s-4vcpu-8gb"].cpu_quota_pct, 0)
        rootfs = self.client.list_root_file_systems()
        self.assertIn(rootfs.default, rootfs.root_file_systems)

    def test_hosts_are_for_administrators(self):
        hosts = self.client.list_hosts()
        self.assertEqual(len(hosts), 1)
        self.assertEqual(hosts[0].status, "active")
        self.refuses(403, client(SERVICE.other_key).list_hosts)

    def test_networks_between_sandboxes(self):
        network = self.client.networks.create(NetworkCreateRequest(name=unique("net")))
        self.addCleanup(lambda: self.client.networks.delete(network.id))
        self.refuses(400, self.client.networks.create, NetworkCreateRequest(name=network.name))
        self.assertIn(network.id, [one.id for one in self.client.networks.list()])
        first = self.make(networks=[{"id": network.name}])
        second = self.make()
        second.attach_network(network.id)
        members = self.client.networks.get(network.id).members
        self.assertEqual({member.sandbox_id for member in members}, {first.id, second.id})
        self.refuses(409, self.client.networks.delete, network.id)
        self.refuses(404, client(SERVICE.other_key).networks.get, network.id)
        second.detach_network(network.id)
        self.refuses(404, second.detach_network, network.id)
        first.destroy()
        self.assertEqual(self.client.networks.get(network.id).member_count, 0)

    def test_what_does_not_exist_says_so(self):
        self.refuses(501, self.client.disks.list)
        self.refuses(501, self.client.disks.create, DiskCreateRequest(name="disk"))
        self.refuses(501, self.client.disks.get, "disk")
        sandbox = self.make()
        self.refuses(501, sandbox.list_disks)
        self.refuses(501, sandbox.add_ssh_public_keys, ["ssh-ed25519 AAAA"])
        self.refuses(501, sandbox.computer.screen)


class Life(Case):
    def test_create_get_list_delete(self):
        name = unique()
        sandbox = self.make(name=name, egress_rules=["240.0.0.0/4"], environment_variables={"A": "1"})
        self.assertEqual(sandbox.status, SandboxStatus.RUNNING)
        self.assertEqual(sandbox.name, name)
        again = self.client.get_sandbox(sandbox.id)
        self.assertEqual(again.data.egress_rules, ["240.0.0.0/4"])
        self.assertEqual(again.data.environment_variables, ["A"])
        self.assertIsNotNone(again.data.created_at)
        self.assertIsNotNone(again.data.running_at)
        self.assertIn(sandbox.id, [one.id for one in self.client.list_sandboxes()])
        running = self.client.list_sandboxes(ListSandboxesOptions(status=SandboxStatus.RUNNING))
        self.assertIn(sandbox.id, [one.id for one in running])
        self.assertEqual(self.client.get_sandbox_by_ip(again.ip_address).id, sandbox.id)
        sandbox.destroy()
        sandbox.destroy()
        sandbox.wait_until_destroyed(WaitOptions(timeout=10))
        self.assertNotIn(sandbox.id, [one.id for one in self.client.list_sandboxes()])
        self.refuses(404, self.client.get_sandbox_by_ip, again.ip_address)

    def test_name_is_free_again_after_delete(self):
        name = unique()
        first = self.make(name=name)
        self.refuses(409, self.client.create_sandbox, CreateSandboxRequest(shape=SHAPE, name=name))
        first.destroy()
        self.assertEqual(self.make(name=name).name, name)

    def test_others_do_not_see_it(self):
        sandbox = self.make()
        other = client(SERVICE.other_key)
        self.refuses(404, other.get_sandbox, sandbox.id)
        self.assertNotIn(sandbox.id, [one.id for one in other.list_sandboxes()])

    def test_refuses_what_is_wrong(self):
        for status, fields in (
            (400, {"shape": "s-9"}),
            (400, {"rootfs": "nothing:1"}),
            (400, {"name": "Upper"}),
            (400, {"name": "x" * 23}),
            (400, {"auto_pause_after_seconds": 59}),
            (400, {"auto_pause_after_seconds": 86401}),
            (400, {"region": "mars"}),
            (400, {"environment_variables": {"1A": ""}}),
            (400, {"environment_variables": {"A": "x" * 4097}}),
            (400, {"environment_variables": {f"K{i}": "" for i in range(65)}}),
            (422, {"egress_rules": ["no rule at all"]}),
            (404, {"networks": [{"id": "net-nothing"}]}),
        ):
            with self.subTest(fields=str(fields)[:60]):
                self.refuses(status, self.client.create_sandbox,
                             CreateSandboxRequest(**({"shape": SHAPE} | fields)))

    def test_a_large_variable_fits(self):
        sandbox = self.make(environment_variables={"BLOB": "x" * 4096})
        self.assertEqual(sandbox.shell("printf %s \"$BLOB\" | wc -c").result.standard_output.strip(), "4096")

    def test_pause_and_resume(self):
        sandbox = self.make()
        sandbox.files.upload("/tmp/kept", b"kept")
        for _ in range(2):
            sandbox.pause().wait_until_paused(WaitOptions(timeout=10))
            self.assertIsNotNone(sandbox.data.paused_at)
            self.assertIn("paused", self.refuses(409, sandbox.run_command, RunCommandRequest("true")))
            self.assertIn("sandbox is paused; resume it before accessing files",
                          self.refuses(409, sandbox.files.upload, "/tmp/x", b""))
            self.refuses(409, sandbox.files.download, "/tmp/kept")
            self.assertEqual(sandbox.pause().status, SandboxStatus.PAUSED)
            sandbox.resume().wait_until_running(WaitOptions(timeout=10))
            self.assertIsNotNone(sandbox.data.last_resumed_at)
            self.assertEqual(sandbox.files.download("/tmp/kept").read(), b"kept")
            self.assertEqual(sandbox.resume().status, SandboxStatus.RUNNING)

    def test_fork(self):
        sandbox = self.make(environment_variables={"WHO": "parent"})
        sandbox.files.upload("/root/kept", b"from the parent")
        self.refuses(409, sandbox.fork)
        sandbox.pause()
        child = sandbox.fork()
        self.addCleanup(self.drop, child)
        child.wait_until_running(WaitOptions(timeout=20))
        self.assertEqual(child.data.forked_from, sandbox.id)
        self.assertEqual(child.files.download("/root/kept").read(), b"from the parent")
        self.assertEqual(child.shell("echo $WHO").result.standard_output, "parent\n")
        other = sandbox.fork(ForkSandboxRequest(start_paused=True, environment_variables={"WHO": "child"},
                                                egress_rules=["240.0.0.0/4"], ingress_enabled=True))
        self.addCleanup(self.drop, other)
        self.assertEqual(other.status, SandboxStatus.PAUSED)
        self.assertEqual(other.data.egress_rules, ["240.0.0.0/4"])
        other.resume()
        self.assertEqual(other.shell("echo $WHO").result.standard_output, "child\n")
        self.assertEqual(sandbox.refresh().status, SandboxStatus.PAUSED)

    def test_changes(self):
        sandbox = self.make()
        self.assertEqual(sandbox.set_auto_pause(60).data.auto_pause_after_seconds, 60)
        self.assertIsNone(sandbox.set_auto_pause(None).data.auto_pause_after_seconds)
        self.assertEqual(sandbox.set_ingress(True).data.ingress_enabled, True)
        self.assertIn("8080", sandbox.preview_url(8080))
        self.assertEqual(sandbox.set_ingress(False).data.ingress_url_template, "")
        self.assertEqual(sandbox.resize(sandbox.data.disk_mib + 512).disk_mib, sandbox.data.disk_mib)
        self.refuses(400, sandbox.resize, 1)

    def test_egress(self):
        sandbox = self.make()
        self.assertEqual(sandbox.egress().egress_rules, [])
        self.assertEqual(sandbox.set_egress(["*"]).egress_rules, ["*"])
        self.assertEqual(sandbox.set_egress(["240.0.0.0/4", "1.1.1.1:53"]).egress_rules,
                         ["240.0.0.0/4", "1.1.1.1:53"])
        self.refuses(422, sandbox.set_egress, ["no rule"])
        self.assertEqual(sandbox.egress().egress_rules, ["240.0.0.0/4", "1.1.1.1:53"])

    def test_bandwidth(self):
        sandbox = self.make()
        before = sandbox.bandwidth()
        self.assertEqual(before.quota_bytes, 5 << 30)
        self.assertFalse(before.capped)
        after = sandbox.recharge_bandwidth(1000)
        self.assertEqual(after.quota_bytes, before.quota_bytes + 1000)
        self.refuses(400, sandbox.recharge_bandwidth, 0)


class Commands(Case):
    @classmethod
    def setUpClass(cls):
        cls.client = client()
        cls.sandbox = cls.client.create_sandbox(
            CreateSandboxRequest(shape=SHAPE, environment_variables={"DECLARED": "1", "EMPTY": ""}))

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.destroy()
        cls.client.close()

    def setUp(self):
        pass

    def run_in(self, script, **options):
        return self.sandbox.run_command(RunCommandRequest("bash", ["-c", script]), ExecOptions(**options)).result

    def test_streams_and_exit_codes(self):
        result = self.run_in("echo out; echo err >&2; exit 3")
        self.assertEqual((result.standard_output, result.standard_error, result.exit_code), ("out\n", "err\n", 3))
        self.assertEqual(self.run_in("kill -9 $$").exit_code, 137)
        self.assertEqual(self.run_in("printf 'a\\xffb'").standard_output, "a\ufffdb")
        self.assertGreaterEqual(self.sandbox.run_command(RunCommandRequest("true")).execution_milliseconds, 0)

    def test_input_and_environment(self):
        self.assertEqual(self.run_in("cat", standard_input="h\u00e9llo").standard_output, "h\u00e9llo")
        self.assertEqual(self.run_in("cat; echo end").standard_output, "end\n")
        self.assertEqual(self.run_in("echo $DECLARED", environment_variables={"DECLARED": "2"}).standard_output, "2\n")
        self.assertIn("UNDECLARED", self.refuses(400, self.run_in, "true", environment_variables={"UNDECLARED": "1"}))
        self.assertEqual(self.run_in("echo $HOME $USER; id -u").standard_output, "/root root\n0\n")

    def test_large_input(self):
        text = "0123456789abcdef" * 65536
        self.assertEqual(self.run_in("wc -c", standard_input=text).standard_output.strip(), str(len(text)))

    def test_a_command_that_does_not_exist(self):
        result = self.sandbox.run_command(RunCommandRequest("no-such-program")).result
        self.assertNotEqual(result.exit_code, 0)
        self.assertTrue(result.error_message)

    def test_shell_raises(self):
        self.assertEqual(self.sandbox.shell("echo $((6*7))").result.standard_output, "42\n")
        with self.assertRaises(CommandError):
            self.sandbox.shell("exit 4")

    def test_a_child_in_the_background_does_not_hold_the_call(self):
        start = time.monotonic()
        self.assertEqual(self.run_in("sleep 30 & echo started").standard_output, "started\n")
        self.assertLess(time.monotonic() - start, 5)

    def test_output_is_capped_and_says_so(self):
        result = self.run_in("head -c 20000000 /dev/zero | tr '\\0' x")
        self.assertEqual(len(result.standard_output), 16 << 20)
        self.assertIn("cut", result.error_message)
        self.assertEqual(result.exit_code, 0)

    def test_stream(self):
        events = []
        with self.sandbox.stream_command(RunCommandRequest("bash", ["-c", "echo a; sleep 0.3; echo b >&2; exit 5"])) as stream:
            for event in stream:
                events.append(event)
        self.assertEqual("".join(e.data for e in events if e.type == "stdout"), "a\n")
        self.assertEqual("".join(e.data for e in events if e.type == "stderr"), "b\n")
        self.assertEqual(events[-1].exit_code, 5)

    def test_stream_never_splits_a_character(self):
        script = "for i in 1 2 3; do printf '\\xe2'; sleep 0.1; printf '\\x82\\xac'; done"
        with self.sandbox.stream_command(RunCommandRequest("bash", ["-c", script])) as stream:
            pieces = [event.data for event in stream if event.type == "stdout"]
        self.assertEqual("".join(pieces), "\u20ac" * 3)

    def test_stream_has_heartbeats(self):
        with self.sandbox.stream_command(RunCommandRequest("sleep", ["6"])) as stream:
            self.assertIn("heartbeat", [str(event.type) for event in stream])

    def test_a_closed_stream_kills_the_command(self):
        mark = unique("mark")
        with self.sandbox.stream_command(RunCommandRequest("bash", ["-c", f"echo go; exec -a {mark} sleep 300"])) as stream:
            next(stream)
        deadline = time.monotonic() + 10
        while mark in self.run_in("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'").standard_output:
            self.assertLess(time.monotonic(), deadline, "the command lives on")
            time.sleep(0.2)

    def test_a_caller_that_gives_up_kills_the_command(self):
        mark = unique("mark")
        with self.assertRaises(Exception):
            self.sandbox.run_command(RunCommandRequest("bash", ["-c", f"exec -a {mark} sleep 300"]), ExecOptions(timeout=0.5))
        deadline = time.monotonic() + 10
        while mark in self.run_in("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'").standard_output:
            self.assertLess(time.monotonic(), deadline, "the command lives on")
            time.sleep(0.2)

    def test_cwd_and_timeout_are_ours(self):
        url = f"{SERVICE.url}/v1/sandboxes/{self.sandbox.id}/exec"
        headers = {"X-Api-Key": SERVICE.key}
        result = httpx.post(url, headers=headers, json={"cmd": "pwd", "cwd": "/usr"}).json()["data"]["result"]
        self.assertEqual(result["stdout"], "/usr\n")
        start = time.monotonic()
        result = httpx.post(url, headers=headers, json={"cmd": "sleep", "args": ["60"], "timeout_seconds": 0.5}).json()["data"]["result"]
        self.assertEqual(result["exit_code"], 124)
        self.assertIn("0.5 s", result["error"])
        self.assertLess(time.monotonic() - start, 10)

    def test_wait_for_port(self):
        thread = threading.Thread(target=self.run_in, args=(
            "timeout 20 python3 -m http.server 18181 --bind 127.0.0.1 >/dev/null 2>&1; true",))
        thread.start()
        self.sandbox.wait_for_port(18181, timeout=15)
        self.run_in("pkill -f 'http.server 18181'")
        thread.join()


class Files(Case):
    @classmethod
    def setUpClass(cls):
        cls.client = client()
        cls.sandbox = cls.client.create_sandbox(CreateSandboxRequest(shape=SHAPE))

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.destroy()
        cls.client.close()

    def setUp(self):
        pass

    def test_round_trip(self):
        for size in (0, 1, 65537, 5_000_000):
            data = os.urandom(size)
            self.sandbox.files.upload("/tmp/deep/er/file", data)
            with self.sandbox.files.download("/tmp/deep/er/file") as stream:
                if size > 0:  # an empty file may be one whose size is not known, as those of /proc
                    self.assertEqual(int(stream.headers["content-length"]), size)
                self.assertEqual(stream.read(), data)

    def test_upload_of_a_stream(self):
        self.sandbox.files.upload("/tmp/stream", (b"x" * 1000 for _ in range(100)))
        self.assertEqual(len(self.sandbox.files.download("/tmp/stream").read()), 100_000)
        self.sandbox.files.upload("/tmp/stream", io.BytesIO(b"shorter"))
        self.assertEqual(self.sandbox.files.download("/tmp/stream").read(), b"shorter")

    def test_names_of_all_kinds(self):
        for name in ("/tmp/with space", "/tmp/h\u00e9", "/tmp/a&b=c?d#e%41", "/tmp/-rf"):
            self.sandbox.files.upload(name, name.encode())
            self.assertEqual(self.sandbox.files.download(name).read(), name.encode())

    def test_refusals(self):
        self.refuses(400, self.sandbox.files.upload, "relative", b"")
        self.refuses(400, self.sandbox.files.download, "relative")
        self.refuses(404, self.sandbox.files.download, "/tmp/nothing")
        self.refuses(409, self.sandbox.files.download, "/tmp")
        self.refuses(409, self.sandbox.files.upload, "/tmp", b"")

    def test_list_stat_and_delete_are_ours(self):
        base = f"{SERVICE.url}/v1/sandboxes/{self.sandbox.id}/files"
        headers = {"X-Api-Key": SERVICE.key}
        self.sandbox.files.upload("/tmp/dir/one", b"1234")
        listed = httpx.get(base + "/list", params={"path": "/tmp/dir"}, headers=headers).json()["data"]["entries"]
        self.assertEqual([(e["name"], e["type"], e["size"]) for e in listed], [("one", "file", 4)])
        stat = httpx.get(base + "/stat", params={"path": "/tmp/dir"}, headers=headers).json()["data"]
        self.assertEqual(stat["type"], "directory")
        self.assertEqual(httpx.delete(base, params={"path": "/tmp/dir"}, headers=headers).status_code, 409)
        gone = httpx.delete(base, params={"path": "/tmp/dir", "recursive": "true"}, headers=headers)
        self.assertEqual(gone.status_code, 200, gone.text)
        self.refuses(404, self.sandbox.files.download, "/tmp/dir/one")


class Processes(Case):
    @classmethod
    def setUpClass(cls):
        cls.client = client()
        cls.sandbox = cls.client.create_sandbox(CreateSandboxRequest(shape=SHAPE, environment_variables={"DECLARED": "1"}))
        cls.processes = cls.sandbox.processes

    @classmethod
    def tearDownClass(cls):
        cls.sandbox.destroy()
        cls.client.close()

    def setUp(self):
        pass

    def start(self, script, **fields):
        return self.processes.create(ManagedProcessCreateRequest("bash", ["-c", script], **fields))

    def output(self, process, after=0):
        data = b""
        with self.processes.connect(process.process_id, ManagedProcessConnectOptions(after_sequence=after)) as stream:
            for event in stream:
                data += event.data
                if event.type == "exit":
                    return data, event
        return data, None

    def test_output_is_replayed(self):
        process = self.start("echo one; sleep 0.2; echo two; exit 7", working_directory="/usr",
                             environment_variables={"DECLARED": "2"})
        self.assertEqual(process.kind, "process")
        data, end = self.output(process)
        self.assertEqual((data, end.exit_code), (b"one\ntwo\n", 7))
        self.assertEqual(self.output(process)[0], b"one\ntwo\n")
        view = self.processes.get(process.process_id)
        self.assertEqual((view.state, view.exit_code, view.working_directory), ("exited", 7, "/usr"))
        self.assertIn(process.process_id, [one.process_id for one in self.processes.list()] or self.listed())

    def listed(self):
        url = f"{SERVICE.url}/v1/sandboxes/{self.sandbox.id}/processes"
        answer = httpx.get(url, headers={"X-Api-Key": SERVICE.key}).json()["data"]["processes"]
        return [one["process_id"] for one in answer]

    def test_input(self):
        process = self.processes.create(ManagedProcessCreateRequest("cat"))
        first = self.processes.input(process.process_id, "a\n")
        second = self.processes.input_bytes(process.process_id, b"\x00\xff")
        self.assertGreater(second, first)
        self.processes.close_standard_input(process.process_id)
        data, end = self.output(process)
        self.assertEqual((data, end.exit_code), (b"a\n\x00\xff", 0))

    def test_terminal(self):
        process = self.processes.create(ManagedProcessCreateRequest(pty=PTYSize(rows=30, cols=100)))
        self.assertEqual(process.kind, "pty")
        self.processes.input(process.process_id, "stty size; exit 0\n")
        data, _ = self.output(process)
        self.assertIn(b"30 100", data)
        other = self.processes.create(ManagedProcessCreateRequest("bash", ["-c", "sleep 1; stty size"], pty=PTYSize()))
        self.processes.resize(other.process_id, PTYSize(rows=11, cols=22))
        self.assertIn(b"11 22", self.output(other)[0])

    def test_signals_and_wait(self):
        process = self.start("trap 'exit 9' USR1; echo ready; while :; do sleep 0.1; done")
        with self.processes.connect(process.process_id) as stream:
            next(stream)
        self.processes.signal(process.process_id, ManagedProcessSignal.USER_DEFINED_1)
        view = self.processes.wait(process.process_id, ManagedProcessWaitOptions(
            scope=ManagedProcessWaitScope.TREE, wait_timeout=10))
        self.assertEqual((view.exit_code, view.leader_exited), (9, True))

    def test_wait_that_times_out(self):
        process = self.start("sleep 60")
        start = time.monotonic()
        view = self.processes.wait(process.process_id, ManagedProcessWaitOptions(wait_timeout=0.5))
        self.assertEqual(view.state, "running")
        self.assertLess(time.monotonic() - start, 5)
        view = self.processes.delete(process.process_id, ManagedProcessDeleteOptions(grace_period=0.2))
        self.assertTrue(view.leader_exited)
        self.assertTrue(view.signal)

    def test_lives_through_a_pause(self):
        process = self.start("sleep 1; echo done")
        self.sandbox.pause()
        self.sandbox.resume()
        self.assertEqual(self.output(process)[0], b"done\n")

    def test_refusals(self):
        self.refuses(404, self.processes.get, "nothing")
        self.refuses(400, self.processes.create, ManagedProcessCreateRequest("true", environment_variables={"NO": "1"}))
        process = self.start("sleep 5")
        url = f"{SERVICE.url}/v1/sandboxes/{self.sandbox.id}/processes/{process.process_id}/input"
        answer = httpx.post(url, headers={"X-Api-Key": SERVICE.key}, json={"data_base64": "not base64!"})
        self.assertEqual(answer.status_code, 400)
        self.processes.delete(process.process_id)


class Tokens(Case):
    def test_delegated_token(self):
        sandbox = self.make()
        self.assertFalse(sandbox.get_access_token().enabled)
        made = sandbox.create_access_token()
        self.assertTrue(made.enabled)
        self.refuses(409, sandbox.create_access_token)
        self.assertTrue(made.token.startswith(sandbox.get_access_token().token_hint))
        delegated = sandbox.with_access_token(made.token)
        self.assertEqual(delegated.shell("echo hi").result.standard_output, "hi\n")
        delegated.files.upload("/tmp/x", b"x")
        self.assertEqual(delegated.processes.list(), [])
        self.refuses(403, delegated.create_access_token)
        self.refuses(403, delegated.rotate_access_token)
        self.refuses(403, delegated.set_egress, ["*"])
        with client(made.token) as other:
            self.refuses(403, other.who_am_i)
            self.refuses(403, other.list_sandboxes)
            self.refuses(404, other.get_sandbox, self.make().id)
        rotated = sandbox.rotate_access_token()
        self.assertIsNotNone(rotated.rotated_at)
        self.refuses(401, delegated.refresh)
        delegated = sandbox.with_access_token(rotated.token)
        delegated.pause().resume()
        self.assertFalse(sandbox.disable_access_token().enabled)
        self.assertFalse(sandbox.disable_access_token().enabled)
        self.refuses(401, delegated.refresh)
        self.refuses(409, sandbox.rotate_access_token)


class Templates(Case):
    def follow(self, template):
        # The client's own follow_logs cannot read its first event.
        lines = []
        with httpx.stream("GET", f"{SERVICE.url}/v1/templates/{template.id}/logs", params={"follow": "true"},
                          headers={"X-Api-Key": SERVICE.key}, timeout=300) as stream:
            for line in filter(None, stream.iter_lines()):
                event = json.loads(line)
                if event.get("final"):
                    return lines, event["status"]
                lines.append(event["line"])
        return lines, None

    def test_refusals(self):
        for dockerfile in ("FROM nowhere", "FROM {base}\nCOPY a b", "FROM {base}\nFROM {base}", ""):
            with self.subTest(dockerfile=dockerfile):
                self.refuses(400, self.client.templates.create, TemplateCreateRequest(
                    unique(), dockerfile.format(base=self.client.list_root_file_systems().default)))
        self.refuses(404, self.client.templates.get, "nothing")
        self.refuses(404, self.client.templates.delete, "nothing")

    def test_build_and_use(self):
        if not SERVICE.is_real:
            self.skipTest("the machines of this service have no snapshots")
        base = self.client.list_root_file_systems().default
        name = unique()
        dockerfile = f"FROM {base}\nENV GREETING=hello\nRUN echo said to the log; echo \"$GREETING\" > /etc/greeting\nWORKDIR /work\n"
        template = self.client.templates.create(TemplateCreateRequest(name, dockerfile))
        self.addCleanup(lambda: self.client.templates.delete(template.id))
        self.assertIn(template.status, ("pending", "building"))
        self.refuses(409, self.client.templates.create, TemplateCreateRequest(name, dockerfile))
        lines, status = self.follow(template)
        self.assertEqual(status, "ready", lines)
        self.assertIn("said to the log", lines)
        self.assertIn("said to the log", self.client.templates.logs(template.id))
        self.assertEqual(self.client.templates.get(template.id, GetTemplateOptions(include=TemplateInclude.DOCKERFILE)).dockerfile,
                         dockerfile)
        self.assertIn(name, [one.name for one in self.client.templates.list()])
        sandbox = self.make(rootfs=name)
        result = sandbox.run_command(RunCommandRequest("sh", ["-c", "cat /etc/greeting; echo $GREETING; pwd"])).result
        self.assertEqual(result.standard_output, "hello\nhello\n/work\n")

    def test_a_step_that_fails(self):
        if not SERVICE.is_real:
            self.skipTest("the machines of this service have no snapshots")
        base = self.client.list_root_file_systems().default
        template = self.client.templates.create(TemplateCreateRequest(unique(), f"FROM {base}\nRUN echo last words; exit 3\n"))
        self.addCleanup(lambda: self.client.templates.delete(template.id))
        lines, status = self.follow(template)
        self.assertEqual(status, "failed")
        self.assertIn("last words", lines)
        self.assertEqual([line for line in lines if line.startswith("line 2: ")], ["line 2: the command ended with exit code 3"])
        self.refuses(400, self.client.create_sandbox, CreateSandboxRequest(shape=SHAPE, rootfs=template.name))


if __name__ == "__main__":
    unittest.main(verbosity=2)
