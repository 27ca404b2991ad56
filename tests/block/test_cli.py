# SPDX-License-Identifier: Apache-2.0
"""`caisson block` as a whole: run, serve, check and libraries, in the runtime that PYTHON_SANDBOX_MODE names.

The folder of the programs is the first argument. What needs the runtime is skipped, with the reason, where
`caisson block run` cannot have it.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from programs import BIN, ROOT, caisson, environment, main  # noqa: E402
from service import FIRST_RUN, WAIT, Service  # noqa: E402

EXAMPLE = ROOT / "examples/block/wetland"
CAISSON = str(BIN / "caisson")


def block(*arguments: str, **options):
    return caisson("block", *arguments, **options)


def why_no_runtime(name: str) -> str:
    """Empty when scripts can be run in the runtime of that name."""
    result = block("run", "-", "--runtime", name, stdin="done(1)", timeout=FIRST_RUN)
    return "" if result.code == 0 else result.stderr.strip()


RUNTIME = os.environ.get("PYTHON_SANDBOX_MODE", "cpython")
NO_RUNTIME = why_no_runtime(RUNTIME)


def run(script: str, *arguments: str, **options):
    return block("run", "-", *arguments, stdin=script, **options)


class Libraries(unittest.TestCase):
    def test_are_those_of_the_list(self):
        listing = tomllib.loads((ROOT / "runtimes/python-packages.toml").read_text())
        found = {entry["module"]: entry for entry in block("libraries", "--json").json()["libraries"]}
        expected = {module: library for library in listing["library"] for module in library["imports"]}
        self.assertEqual(set(found), set(expected))
        for module, library in expected.items():
            self.assertEqual(found[module]["name"], library["name"])
            for runtime, owner in (("cpython", "cpython"), ("native", "native"), ("oci", "native")):
                self.assertEqual(found[module]["versions"][runtime], library[owner].get("version"), module)

    def test_are_a_table_for_people(self):
        lines = block("libraries").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["library", "import", "cpython", "native", "oci"])
        self.assertIn("scikit-learn", "".join(lines))


class Refusals(unittest.TestCase):
    def check(self, code: int, text: str, *arguments: str, script: str = "done(1)", env: dict | None = None):
        result = block("run", "-", *arguments, stdin=script, env=env)
        self.assertEqual(result.code, code, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_of_runtimes_that_are_not_there(self):
        self.check(6, "block.runtime_unavailable", "--runtime", "oci", "--container-runtime", "docker", env={"PATH": "/nonexistent"})
        self.check(6, "the runtime native is not available", "--runtime", "native", "--root", "/nowhere")

    def test_of_inputs(self):
        self.check(3, "$.documents[1]: each item of documents must be an object", "--documents", "[{}, 1]")
        self.check(3, "$.user", "--user", "[]")
        self.check(3, "$.tables.f.rows", "--tables", '{"f": {"rows": 1}}')
        self.check(3, "$.options.geometry", "--options", '{"geometry": "gml"}')
        self.check(3, "json.syntax", "--documents", "[{]")
        self.check(8, "nowhere.json", "--documents", "nowhere.json")
        self.check(2, "standard input", "--documents", "-")

    def test_of_variables(self):
        self.check(2, "PYTHON_SANDBOX_TIMEOUT_MS is not configured (must be a positive integer)",
                   env={"PYTHON_SANDBOX_TIMEOUT_MS": "0"})
        self.check(2, "Invalid PYTHON_SANDBOX_MEMORY value: much", env={"PYTHON_SANDBOX_MEMORY": "much"})
        self.check(6, "the runtime oci", env={"PYTHON_SANDBOX_MODE": "docker", "PATH": "/nonexistent"})

    def test_of_values_out_of_range(self):
        for arguments in (("--timeout", "0"), ("--memory", "1KiB"), ("--output", "1TiB"), ("--pids", "2M"),
                          ("--runtime", "jvm"), ("--format", "xml"), ("--workers", "65")):
            self.check(2, arguments[0], *arguments)

    def test_of_a_policy_that_contradicts_itself(self):
        result = block("serve", "--timeout", "60s", "--max-timeout", "30s")
        self.assertEqual(result.code, 3)
        self.assertIn("block.limit_too_high", result.stderr)


@unittest.skipIf(NO_RUNTIME, NO_RUNTIME)
class Run(unittest.TestCase):
    def test_gives_what_the_example_must(self):
        result = block("run", str(EXAMPLE / "script.py"), "--documents", str(EXAMPLE / "documents.json"), "--sources",
                       str(EXAMPLE / "sources.json"), "--user", str(EXAMPLE / "user.json"), "--format", "report")
        self.assertEqual(result.code, 0, result.stderr)
        report, expected = result.json(), json.loads((EXAMPLE / "expected.json").read_text())
        self.assertEqual(report["results"], expected["results"])
        self.assertEqual(report["debug"], expected["debug"])
        self.assertEqual(report["stdout"], "calculated for did:example:user\n")
        self.assertEqual(report["end"]["settled_by"], "final_done")
        self.assertFalse(report["end"]["no_result"])

    def test_prints_results_and_says_the_rest(self):
        result = run("print('heard')\ndebug({'a': 1})\ndone([1, 2], final=False)\ndone(None)\n", "--debug")
        self.assertEqual(result.stdout, "[1,2]\nnull\n")
        self.assertEqual(result.stderr, 'heard\ndebug: {"a":1}\n')
        self.assertEqual(run("debug(1)\ndone(1)").stderr, "")

    def test_passes_inputs(self):
        script = "done([documents, sources, artifacts, user, table.rows({'type': 'table', 'fileId': 'f'})])"
        result = run(script, "--documents", '{"n": 12345678901234567890}', "--sources", "[{}]", "--artifacts", "[1]",
                     "--user", '{"did": "x"}', "--tables", '{"f": {"rows": [{"a": "1"}], "columnKeys": ["a"]}}')
        self.assertEqual(result.json(), [[{"n": 12345678901234567890}], [{}], [1], {"did": "x"}, [{"a": "1"}]])

    def test_shows_where_a_script_failed(self):
        result = run("def f(x):\n    return 1 / x\n\ndone(1, final=False)\nf(0)\n")
        self.assertEqual(result.code, 4)
        self.assertEqual(result.stdout, "1\n")
        self.assertIn("<stdin>:2:", result.stderr)
        self.assertIn("ZeroDivisionError: division by zero [block.raised]", result.stderr)
        self.assertIn("    2 |     return 1 / x\n", result.stderr)
        self.assertIn("  <stdin>:5, in <module>\n  <stdin>:2, in f\n", result.stderr)

    def test_shows_syntax_errors(self):
        result = run("x = (1\n")
        self.assertEqual(result.code, 3)
        self.assertIn("[block.syntax]", result.stderr)

    def test_says_when_there_is_no_result(self):
        result = run("x = 1")
        self.assertEqual((result.code, result.stdout), (0, ""))
        self.assertIn("never called done", result.stderr)

    def test_tells_what_came_after_the_final_done(self):
        report = run("done(1)\ndone(2)\ndebug(3)\nraise ValueError('late')", "--format", "report")
        self.assertEqual(report.code, 0)
        told = report.json()
        self.assertEqual(told["results"], [{"final": True, "result": 1}])
        self.assertEqual(told["end"]["settled_by"], "final_done")
        self.assertEqual(told["end"]["dropped"]["done"], 1)
        self.assertEqual(told["end"]["dropped"]["debug"], 1)
        self.assertIn("1 call of done after the final one was ignored", report.stderr)

    def test_takes_exit_codes(self):
        self.assertEqual(run("import sys\ndone(1, final=False)\nsys.exit(0)").code, 0)
        report = run("import sys\nsys.exit(3)", "--format", "report")
        self.assertEqual(report.code, 4)
        self.assertEqual(report.json()["end"]["error"]["code"], "block.exited")
        self.assertEqual(report.json()["end"]["error"]["exit_code"], 3)

    def test_names_the_limit_that_was_hit(self):
        for script, option, value, limit in (
            ("while True: pass", "--timeout", "1s", "wall_ms"),
            ("while True: pass", "--cpu-time", "1s", "cpu_ms"),
            ("while True: debug(1)", "--messages", "100", "messages"),
            ("while True: debug('x' * 10000)", "--output", "100KiB", "output_bytes"),
            ("x = []\nwhile True: x.append(bytearray(1 << 20))", "--memory", "128MiB", "memory_bytes"),
        ):
            with self.subTest(limit):
                report = run("done('kept', final=False)\n" + script, option, value, "--format", "report")
                self.assertEqual(report.code, 5, report.stderr)
                told = report.json()
                self.assertEqual(told["end"]["settled_by"], "limit")
                self.assertEqual(told["end"]["error"]["code"], "block.limit")
                self.assertEqual(told["end"]["error"]["limit"], limit)
                self.assertEqual(told["results"], [{"final": False, "result": "kept"}])

    def test_takes_the_wall_clock_of_the_environment(self):
        result = run("while True: pass", env={"PYTHON_SANDBOX_TIMEOUT_MS": "500"})
        self.assertEqual(result.code, 5)

    def test_frames_are_those_of_the_protocol(self):
        frames = [json.loads(line) for line in run("debug(1)\ndone([2])", "--format", "frames").stdout.splitlines()]
        self.assertEqual([frame["type"] for frame in frames], ["debug", "done", "end"])
        self.assertEqual({frame["id"] for frame in frames}, {"run"})
        self.assertEqual(frames[-1]["usage"]["messages"], 2)

    def test_delivers_a_large_list_in_parts(self):
        script = "done([{'n': i, 'text': 'x' * 100} for i in range(50_000)])"
        result = run(script, "--format", "frames")
        self.assertEqual(result.code, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertLess(max(map(len, lines)), 300_000)
        frames = [json.loads(line) for line in lines]
        done = frames[-2]
        self.assertEqual(done["type"], "done")
        self.assertEqual(done["parts"], len(frames) - 2)
        self.assertGreater(done["parts"], 10)
        items = [item for frame in frames[:-2] for item in frame["items"]] + done["result"]
        self.assertEqual([item["n"] for item in items], list(range(50_000)))
        self.assertEqual(len(run(script).json()), 50_000)

    @unittest.skipIf(RUNTIME != "cpython", "the others lack nothing")
    def test_refuses_imports_before_anything_runs(self):
        result = run("done(1, final=False)\nimport rasterio\n")
        self.assertEqual((result.code, result.stdout), (6, ""))
        self.assertIn("<stdin>:2:1: error: the runtime cpython does not have 'rasterio'", result.stderr)
        self.assertIn("native", result.stderr)

    def test_refuses_what_no_script_may_have(self):
        self.assertEqual(run("done(1, final=False)\nimport js").code, 3)

    def test_leaves_imports_that_may_not_matter_to_the_script(self):
        script = "try:\n    import rasterio\nexcept ImportError as error:\n    done(type(error).__name__)\n"
        self.assertEqual(run(script).code, 0)

    def test_is_cancelled_by_a_signal(self):
        process = subprocess.Popen([CAISSON, "block", "run", "-", "--format", "report"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        process.stdin.write(b"print('running', flush=True)\nwhile True: pass\n")
        process.stdin.close()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        process.wait(WAIT)
        report = json.loads(process.stdout.read())
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.returncode, 4)
        self.assertEqual(report["end"]["settled_by"], "cancel")

    def test_shows_no_control_characters(self):
        result = run("print('\\x1b[31mred')\nraise ValueError('\\x1b]0;title\\x07')")
        self.assertNotIn("\x1b", result.stderr)
        self.assertNotIn("\x1b", run("done('\\u202e')").stdout + run("done('\\x1b')").stdout)


@unittest.skipIf(NO_RUNTIME, NO_RUNTIME)
class Serve(unittest.TestCase):
    def test_says_hello_and_answers(self):
        with Service("--timeout", "30s") as service:
            self.assertEqual(service.hello["protocol"], 1)
            self.assertEqual(service.hello["limits"]["default"]["wall_ms"], 30_000)
            service.run("r", "print('x')\ndone({'n': len(documents)})", documents=[{}, {}])
            frames = service.until_end("r")
            self.assertEqual([frame["type"] for frame in frames], ["accepted", "stdout", "done", "end"])
            self.assertEqual(frames[2]["result"], {"n": 2})
            self.assertEqual(service.close(), 0)

    def test_keeps_runs_apart(self):
        with Service("--runs", "2") as service:
            script = "import builtins\nfound = hasattr(builtins, 'left')\nbuiltins.left = 1\ndone([user['n'], found])"
            for number in range(20):
                service.run(f"r{number}", script, user={"n": number})
            results, ends = {}, 0
            while ends < 20:
                frame = service.next()
                if frame["type"] == "done":
                    results[frame["id"]] = frame["result"]
                ends += frame["type"] == "end"
            self.assertEqual(results, {f"r{number}": [number, False] for number in range(20)})
            self.assertEqual(service.close(), 0)

    def test_goes_on_after_hostile_lines(self):
        with Service("--max-line", "1MiB") as service:
            lines = [b"x" * (10 << 20), b"\x7fELF\x00\xff", b"[" * 100_000, b'{"id":"r","op":"run","script":1}', b"\0" * 100]
            for number, line in enumerate(lines, 1):
                service.write(line + b"\n")
                answer = service.next()
                self.assertEqual((answer["type"], answer["line"]), ("error", number))
            service.run("r", "done(1)")
            self.assertEqual(service.until_end("r")[-1]["settled_by"], "final_done")
            self.assertEqual(service.close(), 0)

    def test_cancels_a_run_and_keeps_what_it_gave(self):
        with Service() as service:
            service.run("r", "done(1, final=False)\nwhile True: pass")
            while service.next()["type"] != "done":
                pass
            service.send(id="r", op="cancel")
            end = service.until_end("r")[-1]
            self.assertEqual((end["settled_by"], end["results"]), ("cancel", 1))
            service.run("r", "done(2)")
            self.assertEqual(service.until_end("r")[-1]["settled_by"], "final_done")

    def test_gives_every_run_its_end_when_the_input_ends(self):
        with Service() as service:
            service.run("slow", "import time\ntime.sleep(1)\ndone(1)")
            service.run("credit", "for i in range(100): done(i, final=False)", credit=1)
            service.process.stdin.close()
            ends = {}
            while (frame := service.next()) is not None:
                if frame["type"] == "end":
                    ends[frame["id"]] = frame
            self.assertEqual(ends["slow"]["settled_by"], "final_done")
            self.assertEqual(ends["credit"]["results"], 100)
            self.assertEqual(service.finish(), 0)

    def test_cancels_all_runs_on_a_signal(self):
        with Service() as service:
            service.run("r", "while True: pass")
            self.assertEqual(service.next()["type"], "accepted")
            service.process.send_signal(signal.SIGTERM)
            self.assertEqual(service.until_end("r")[-1]["settled_by"], "cancel")
            self.assertEqual(service.close(), 0)

    def test_stops_scripts_when_nobody_reads(self):
        with Service() as service:
            service.run("warm", "done(1)")
            service.until_end("warm")
            before = self.memory(service.process.pid)
            service.run("r", "for i in range(2000): done('x' * 100_000, final=False)", limits={"output_bytes": 1 << 30})
            time.sleep(8)
            self.assertLess(self.memory(service.process.pid) - before, 32 << 20)  # of 200 MB
            end = service.until_end("r")[-1]
            self.assertEqual(end["results"], 2000)
            self.assertLess(self.memory(service.process.pid) - before, 32 << 20)

    @staticmethod
    def memory(pid: int) -> int:
        fields = pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()
        return int(fields[0]) << 10

    def test_waits_for_credit(self):
        with Service() as service:
            service.run("r", "for i in range(100): done(i, final=False)", credit=100)
            given = 0
            service.run("other", "done('past it')")
            frames = []
            while not frames or frames[-1]["type"] != "end":
                frame = service.next()
                if frame.get("id") == "other":
                    frames.append(frame)
                given += frame.get("id") == "r" and frame["type"] == "done"
            self.assertLess(given, 5)
            service.send(id="r", op="credit", bytes=1 << 20)
            self.assertEqual(service.until_end("r")[-1]["results"], 100)

    def test_ends_with_its_client(self):
        service = Service()
        service.run("r", "while True: pass", limits={"wall_ms": 600_000})
        service.next()
        service.process.stdin.close()
        service.process.stdout.close()
        self.assertEqual(service.process.wait(WAIT), 8)  # the end of `r` is lost
        service.listener.join()
        self.assertIn(b"cli.file_unwritable", b"".join(service.messages))
        service.process.stderr.close()

    def test_bounds_what_a_request_may_ask_for(self):
        with Service("--max-timeout", "200s", "--max-memory", "1GiB") as service:
            service.run("r", "done(1)", limits={"wall_ms": 200_001})
            self.assertEqual(service.next()["error"]["code"], "block.limit_too_high")
            service.run("r", "done(1)", limits={"memory_bytes": 2 << 30})
            self.assertEqual(service.next()["error"]["path"], "$.limits.memory_bytes")
            service.run("r", "done(1)", runtime="auto")
            self.assertEqual(service.next()["error"]["code"], "block.runtime_unavailable")

    def test_leaves_no_process_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("caisson", "caisson-isolate"):
                shutil.copy2(BIN / name, folder)
            process = subprocess.Popen([f"{folder}/caisson", "block", "serve"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
            process.stdin.write(b'{"id":"r","op":"run","script":"done(1, final=False)\\nwhile True: pass"}\n')
            process.stdin.flush()
            while json.loads(process.stdout.readline())["type"] != "done":
                pass
            process.kill()
            process.wait(WAIT)
            process.stdin.close()
            process.stdout.close()
            end = time.monotonic() + 20
            while self.processes_of(folder) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual(self.processes_of(folder), [])

    @staticmethod
    def processes_of(folder: str) -> list[str]:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "exe").startswith(folder):
                    found.append(entry.name)
            except OSError:
                pass
        return found


@unittest.skipIf(NO_RUNTIME, NO_RUNTIME)
class Socket(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "block.sock"

    def tearDown(self):
        self.folder.cleanup()

    def start(self):
        process = subprocess.Popen([CAISSON, "block", "serve", "--socket", str(self.path)], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=environment())
        process.stderr.readline()  # that it listens
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait(WAIT)
        process.stderr.close()
        return code

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(WAIT)
        client.connect(str(self.path))
        return client, client.makefile("rb")

    def test_serves_several_clients_with_ids_of_their_own(self):
        process = self.start()
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        clients = [self.connect() for _ in range(4)]
        for number, (client, _) in enumerate(clients):
            client.sendall(json.dumps({"id": "same", "op": "run", "script": f"done({number})"}).encode() + b"\n")
        for number, (client, lines) in enumerate(clients):
            frames = [json.loads(lines.readline()) for _ in range(4)]
            self.assertEqual([frame["type"] for frame in frames], ["hello", "accepted", "done", "end"])
            self.assertEqual(frames[2]["result"], number)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(lines.read(), b"")
            client.close()
        self.assertEqual(self.stop(process), 0)
        self.assertFalse(self.path.exists())

    def test_cancels_the_runs_of_a_client_that_goes(self):
        self.start()
        client, lines = self.connect()
        client.sendall(b'{"id":"r","op":"run","script":"while True: pass","limits":{"wall_ms":600000}}\n')
        lines.readline(), lines.readline()
        lines.close()
        client.close()
        # Every thread is free again.
        client, lines = self.connect()
        count = json.loads(lines.readline())["max_runs"]
        for number in range(count):
            client.sendall(json.dumps({"id": f"r{number}", "op": "run", "script": "done(1)"}).encode() + b"\n")
        ends = 0
        while ends < count:
            ends += json.loads(lines.readline())["type"] == "end"
        client.close()

    def test_replaces_a_socket_that_is_left_over_and_nothing_else(self):
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(self.path))
        left.close()
        self.start()
        again = block("serve", "--socket", str(self.path))
        self.assertEqual(again.code, 8)
        self.assertIn("another process listens on it", again.stderr)
        file = pathlib.Path(self.folder.name) / "file"
        file.write_text("precious")
        self.assertEqual(block("serve", "--socket", str(file)).code, 8)
        self.assertEqual(file.read_text(), "precious")
        self.assertEqual(block("serve", "--socket", "/nowhere/at/all").code, 8)
        self.assertEqual(block("serve", "--socket", "x" * 200).code, 8)


main()
