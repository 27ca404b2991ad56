# SPDX-License-Identifier: Apache-2.0
"""What happens around the process: signals, closed descriptors, workers that die, nothing left behind."""

import fcntl
import glob
import json
import os
import pathlib
import signal
import struct
import subprocess
import termios
import tempfile
import time
import unittest

from programs import ROOT, OwnPrograms, code_workflow, environment, main

ENDLESS = code_workflow("while True:\n    pass")
LONG = ["run", "-", "-q", "--fuel", "0", "--call-timeout", "60s", "--report"]


class Processes(unittest.TestCase):
    def setUp(self):
        self.own = OwnPrograms()

    def tearDown(self):
        self.own.wait_until_gone()
        self.own.close()

    def start(self, *arguments: str, source: str = ENDLESS, cache: str = "", **options) -> subprocess.Popen:
        own_cache = {"CAISSON_CACHE_DIR": cache} if cache else {}
        process = subprocess.Popen([str(self.own.program), *arguments], stdin=subprocess.PIPE, cwd=ROOT,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment() | own_cache, **options)
        process.stdin.write(source.encode())
        process.stdin.close()
        process.stdin = None
        return process

    def start_call(self) -> subprocess.Popen:
        """A run whose worker is at work in the guest."""
        process = self.start(*LONG, "--workers", "1")

        def is_at_work():
            for pid in self.own.processes("caisson-isolate"):
                try:
                    with open(f"/proc/{pid}/stat") as stat:
                        fields = stat.read().rsplit(")", 1)[1].split()
                except OSError:
                    continue
                # Set-up takes less processor time than this only when the module cache is warm, and
                # then the call is all that uses it.
                if int(fields[11]) + int(fields[12]) > 40:
                    return True
            return False

        self.own.wait_for(is_at_work, 60)
        return process

    def test_a_signal_cancels_the_run_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                process = self.start_call()
                began = time.monotonic()
                process.send_signal(number)
                out, err = process.communicate(timeout=30)
                self.assertLess(time.monotonic() - began, 10)
                report = json.loads(out)
                self.assertEqual(report["status"], "cancelled", err)
                self.assertEqual(report["error"]["code"], "graph.cancelled")
                self.assertEqual(process.returncode, 4, err)
                self.own.wait_until_gone()

    def test_a_second_signal_ends_it_at_once(self):
        process = self.start_call()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertIn(process.returncode, (4, 128 + signal.SIGINT, 128 + signal.SIGTERM))

    def test_a_second_signal_ends_a_run_that_cannot_be_cancelled(self):
        # Nobody reads its events, so that it hangs in a write.
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                process = self.start("run", "-", "--events", source=code_workflow("return {'x': 'y' * 400000}"))

                def unread() -> int:
                    return struct.unpack("i", fcntl.ioctl(process.stderr, termios.FIONREAD, bytes(4)))[0]

                self.own.wait_for(lambda: unread() > 40_000, 60)  # the pipe is full
                process.send_signal(number)
                time.sleep(0.5)
                self.assertIsNone(process.poll())
                process.send_signal(number)
                self.assertEqual(process.wait(30), 128 + number)
                process.stdout.close()
                process.stderr.close()
                self.own.wait_until_gone()

    def test_a_worker_killed_in_mid_call_gives_an_error_to_that_call(self):
        process = self.start_call()
        for pid in self.own.processes("caisson-isolate"):
            os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=30)
        report = json.loads(out)
        self.assertEqual(report["error"]["code"], "isolate.worker_lost", err)
        self.assertEqual(process.returncode, 6, err)

    def test_workers_and_their_cgroups_go_with_a_command_that_is_killed(self):
        process = self.start_call()
        groups = f"/sys/fs/cgroup/*/**/caisson.{process.pid}-*"
        if os.path.isdir("/sys/fs/cgroup/memory") and os.access("/sys/fs/cgroup/memory", os.W_OK):
            self.assertNotEqual(glob.glob(groups, recursive=True), [])
        process.kill()
        process.communicate(timeout=30)
        self.own.wait_until_gone()
        self.own.wait_for(lambda: not glob.glob(groups, recursive=True), 30)

    def test_a_signal_ends_a_command_whose_worker_has_not_started_yet(self):
        with tempfile.TemporaryDirectory() as empty:  # the worker must compile for some seconds first
            process = self.start(*LONG, "--workers", "1", cache=empty)
            self.own.wait_for(lambda: self.own.processes("caisson-isolate"), 60)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=30)
        self.assertIn(b"before it began", err)
        self.assertEqual(process.returncode, 4, err)

    def test_doctor_tells_of_cgroups_that_were_left(self):
        parent = "/sys/fs/cgroup/pids"
        if not os.access(parent, os.W_OK) or "pids:/\n" not in pathlib.Path("/proc/self/cgroup").read_text():
            self.skipTest("no pids hierarchy (v1) in which to leave one")
        for _ in range(10):  # another program may sweep at the same time, and be first
            gone = subprocess.Popen(["true"])
            gone.wait()
            stale = f"{parent}/caisson.{gone.pid}-1.0"
            os.mkdir(stale)
            done = subprocess.run([str(self.own.program), "doctor", "--json"], capture_output=True, env=environment(),
                                  timeout=120)
            self.assertFalse(os.path.exists(stale))
            if stale in json.loads(done.stdout)["stale_cgroups"]["removed"]:
                return
        self.fail("doctor never told of one")

    def test_a_reader_that_has_gone_is_an_error(self):
        reading, writing = os.pipe()
        os.close(reading)
        with open(ROOT / "examples/grade/workflow.py") as source:
            done = subprocess.run([str(self.own.program), "compile", "-"], stdin=source, stdout=writing,
                                  stderr=subprocess.PIPE, timeout=30)
        os.close(writing)
        self.assertEqual(done.returncode, 8, done.stderr)

    def test_closed_standard_descriptors(self):
        quoted = f"'{self.own.program}' compile examples/grade/workflow.py"
        for redirection, code in (("<&-", 0), (">&-", 8), ("2>&-", 0), ("<&- 2>&-", 0), ("<&- >&- 2>&-", 8)):
            with self.subTest(redirection):
                done = subprocess.run(["sh", "-c", f"{quoted} {redirection}"], cwd=ROOT, capture_output=True, timeout=30)
                self.assertEqual(done.returncode, code, done.stderr)

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(self.own.program), "compile", "examples/grade/workflow.py"], cwd=ROOT,
                                  stdout=full, stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, 8, done.stderr)

    def test_without_the_isolate_program_a_run_is_refused(self):
        os.remove(self.own.folder / "caisson-isolate")
        process = self.start("run", "-", "-q", source=code_workflow("return {}"))
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 6, err)
        self.assertIn(b"cli.isolate_missing", err)

    def test_without_a_jail_a_run_is_refused_before_it_begins(self):
        no_pids = "echo 0 > /proc/sys/user/max_pid_namespaces || exit 99; exec \"$@\""
        inside = ["unshare", "-Ur", "sh", "-c", no_pids, "sh", str(self.own.program)]
        probe = subprocess.run([*inside[:-1], "true"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no user namespace can be made here")
        source = code_workflow("return {'a': 1}").encode()
        options = {"input": source, "capture_output": True, "timeout": 60, "env": environment()}
        refused = subprocess.run([*inside, "run", "-", "-q", "--events"], **options)
        self.assertEqual(refused.returncode, 7, refused.stderr)
        self.assertEqual(refused.stdout, b"")
        self.assertIn(b"pid_namespace", refused.stderr)
        self.assertNotIn(b"run_started", refused.stderr)
        allowed = subprocess.run([*inside, "run", "-", "-q", "--allow-unjailed"], **options)
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        self.assertEqual(json.loads(allowed.stdout)["node_results"], {"work": {"a": 1}})
        doctor = subprocess.run([*inside, "doctor"], **options)
        self.assertEqual(doctor.returncode, 7, doctor.stderr)
        walls = {wall["wall"]: wall for wall in json.loads(doctor.stdout)["walls"]}
        self.assertFalse(walls["pid_namespace"]["stands"])
        self.assertTrue(walls["pid_namespace"]["reason"])

    def test_describe_names_artifact_engine_and_walls(self):
        done = subprocess.run([str(self.own.program), "describe"], capture_output=True, timeout=60, env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        runtime = json.loads(done.stdout)["runtime"]
        pins = json.loads((ROOT / "runtimes/pins.json").read_text())["micropython"]
        self.assertEqual(runtime["artifact"]["sha256"], pins["sha256"])
        self.assertEqual(runtime["artifact"]["derived_sha256"], pins["derived_sha256"])
        self.assertTrue(any(wall["stands"] for wall in runtime["walls"]))

    def test_events_are_a_stream_of_json_lines(self):
        process = self.start("run", "-", "-q", "--events", source=code_workflow("return {'a': 1}"))
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["node_results"], {"work": {"a": 1}})
        events = [json.loads(line) for line in err.decode().splitlines()]
        self.assertEqual([event["event"] for event in events],
                         ["run_started", "step_started", "node_started", "node_finished", "run_finished"])
        self.assertEqual([event["sequence"] for event in events], [1, 2, 3, 4, 5])

    def test_colours_only_on_a_terminal_and_not_with_no_color(self):
        import pty
        for variables, colored in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            leader, follower = pty.openpty()
            process = subprocess.Popen([str(self.own.program), "check", "-"], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=follower,
                                       env=environment({"TERM": "xterm"} | variables))
            process.communicate(b"import os\n", timeout=30)
            os.close(follower)
            text = b""
            try:
                while chunk := os.read(leader, 4096):
                    text += chunk
            except OSError:
                pass
            os.close(leader)
            self.assertEqual(b"\x1b[" in text, colored, (variables, text))


main()
