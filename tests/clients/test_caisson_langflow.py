# SPDX-License-Identifier: Apache-2.0
"""caisson-langflow's backend in a real lfx, against our service; and against a server that fails as ours should not."""

import concurrent.futures
import dataclasses
import http.server
import json
import os
import re
import socket
import sys
import threading
import unittest

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
os.environ.setdefault("CAISSON_TEST_GUEST_PYTHON", sys.executable)
for name in [name for name in os.environ if name.startswith(("CREATEOS_", "LANGFLOW_SANDBOX_", "CAISSON_SANDBOX_"))]:
    del os.environ[name]

import httpx

from environment import EnvironmentCase
from service_under_test import Service

SERVICE = Service()
os.environ["CAISSON_SANDBOX_BASE_URL"] = SERVICE.url
os.environ["CAISSON_SANDBOX_API_KEY"] = SERVICE.key
os.environ["LANGFLOW_SANDBOX_BACKEND"] = "caisson"
os.environ["LANGFLOW_SANDBOX_BACKEND_PLUGINS"] = "caisson"

from caisson_langflow import backend as ours
from caisson_langflow import settings as our_settings
from caisson_langflow import warm
from lfx.components.utilities.python_repl_core import PythonREPLComponent
from lfx.services.deps import get_settings_service
from lfx.utils.sandbox import known_sandbox_backends, run_code_in_sandbox
from lfx.utils.sandbox.base import SandboxBackend, SandboxExecutionError, SandboxUnavailableError
from lfx.utils.sandbox.registry import resolve_sandbox_backend

SERVICE.warm({"shape": "s-1vcpu-1gb"})


def call(method, path, **fields):
    answer = httpx.request(method, SERVICE.url + path, headers={"X-Api-Key": SERVICE.key}, timeout=60, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def live():
    return {view["id"] for view in call("GET", "/v1/sandboxes?limit=500")["data"]}


class Case(EnvironmentCase):
    def setUp(self):
        self.before = live()

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

    def assert_nothing_is_left(self):
        self.assertEqual(live() - self.before, set())


class Run(Case):
    """The backend itself, which any driver's machines serve."""

    def tearDown(self):
        self.assert_nothing_is_left()

    def test_runs_code_with_variables(self):
        backend = self.backend()
        self.assertIsInstance(backend, SandboxBackend)
        result = backend.run("import os, sys\nprint(os.environ['WHO'], sys.stdin.read() == '')\nprint('oh', file=sys.stderr)",
                             env={"WHO": "é"})
        self.assertEqual((result.stdout, result.stderr, result.exit_code, result.truncated), ("é True\n", "oh\n", 0, False))
        self.assertGreater(result.execution_time_ms, 0)

    def test_a_program_that_fails_shows_its_line(self):
        result = self.backend().run("print('before')\nraise ValueError('oh')")
        self.assertEqual((result.stdout, result.exit_code), ("before\n", 1))
        self.assertIn("raise ValueError('oh')", result.stderr)
        self.assertEqual(self.backend().run("import os; os._exit(7)").exit_code, 7)
        for code in (124, 127):  # its own, and neither a timeout nor an image without Python
            self.assertEqual(self.backend().run(f"import os; os._exit({code})").exit_code, code)
        self.assertEqual(self.backend().run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").exit_code, 137)

    def test_a_timeout_keeps_what_was_written(self):
        self.policy(timeout_seconds=1)
        result = self.backend().run("import time\nprint('begun', flush=True)\ntime.sleep(60)")
        self.assertEqual((result.stdout, result.exit_code), ("begun\n", -1))
        self.assertIn("LANGFLOW_SANDBOX_TIMEOUT_SECONDS", result.error_message())

    def test_a_flood_is_cut_and_said_so(self):
        result = self.backend().run(f"import sys\nsys.stdout.write('x' * {ours.OUTPUT_BYTES + 5})\nprint('end', file=sys.stderr)")
        self.assertTrue(result.truncated)
        self.assertEqual((len(result.stdout), result.exit_code), (ours.OUTPUT_BYTES, 0))
        self.assertIn("end\n", result.stderr)
        self.assertIn("stdout was cut", result.stderr)
        self.assertIn("5 more", result.stderr)

    def test_characters_that_are_no_text(self):
        self.assertIn("SyntaxError", self.backend().run("print('\ud800')").stderr)
        with self.assertRaisesRegex(SandboxUnavailableError, "no text"):
            self.backend().run("print(1)", env={"A": "\ud800"})

    def test_many_at_once_each_in_its_own_machine(self):
        backend = self.backend()
        code = "import pathlib\nfile = pathlib.Path('/var/seen')\nprint(file.exists())\nfile.write_text('1')"
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: backend.run(code).stdout, range(8)))
        self.assertEqual(results, ["False\n"] * 8)

    def test_after_a_fork_and_a_shutdown_it_works(self):
        backend = self.backend()
        backend.run("print(1)")
        child = os.fork()
        if child == 0:
            try:
                backend.reset_after_fork()
                os._exit(0 if backend.run("print(2)").stdout == "2\n" else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(backend.run("print(3)").stdout, "3\n")
        backend.shutdown()
        backend.shutdown()
        self.assertEqual(backend.run("print(4)").stdout, "4\n")


class Waiting(Case):
    """An interpreter that has waited runs a program as one that starts does."""

    def tearDown(self):
        self.assert_nothing_is_left()

    def both(self, code, env=None, stays_cold=False):
        """The result, when both ways have it. What differs by design is replaced."""
        found = []
        for size in ("2", "0"):
            self.variable("CAISSON_SANDBOX_POOL_SIZE", size)
            backend, ways = self.backend(), []
            make = backend._make
            backend._make = lambda *words: ways.append(make(*words)) or ways[-1]
            result = backend.run(code, env=env)
            found.append((result.stdout, re.sub("main_[0-9a-f]+", "main", result.stderr), result.exit_code))
            self.assertEqual(ways[0][1], size == "2" and not stays_cold)
        self.assertEqual(*found)
        return found[0]

    def test_a_program_that_ends_its_own_group(self):
        for signal, code in ((15, 143), (9, 137)):
            self.assertEqual(self.both(f"import os\nprint('begun', flush=True)\nos.kill(0, {signal})"), ("begun\n", "", code))
        self.both("import os\nprint(os.getpid() == os.getpgrp() == os.getsid(0))")

    def test_a_program_that_ends_what_started_it_does_not_last_until_its_time_ends(self):
        self.policy(timeout_seconds=20)
        result = self.backend().run("import os\nprint('begun', flush=True)\nos.kill(os.getppid(), 9)")
        self.assertNotEqual(result.exit_code, -1)
        self.assertEqual(result.stdout, "begun\n")

    def test_a_program_that_empties_the_folder_for_temporary_files(self):
        code = ("import os, shutil\nfor name in os.listdir('/tmp'):\n    shutil.rmtree('/tmp/' + name, ignore_errors=True)\n"
                "raise SystemExit(3)")
        self.assertEqual(self.both(code), ("", "", 3))

    def test_what_ends_it(self):
        for code in ("import atexit\natexit.register(print, 'end')\nraise KeyboardInterrupt", "import os\nos.kill(os.getpid(), 2)",
                     "import sys\nsys.exit('é')", "import sys\nsys.exit(-1)", "x = (", "raise ExceptionGroup('g', [ValueError()])"
                     if sys.version_info >= (3, 11) else "1/0",
                     "def f():\n    raise ValueError('x')\ntry:\n    f()\nexcept ValueError as e:\n    raise KeyError('y') from e",
                     "import sys\nsys.excepthook = lambda *told: print(told[0], told[2].tb_lineno, told[1].__traceback__ is told[2])\n1/0",
                     "import sys\nsys.excepthook = lambda *told: sys.exit(5)\n1/0"):
            with self.subTest(code):
                self.both(code)
        self.assertEqual(self.both("raise KeyboardInterrupt")[2], 130)

    def test_what_it_sees_of_itself(self):
        self.both("print(sorted(dir()), __annotations__, type(__loader__).__name__, __loader__.name, __cached__, __spec__)")
        self.both("import os, sys\nif 'AGAIN' not in os.environ:\n    os.environ['AGAIN'] = '1'\n"
                  "    os.execv(sys.executable, sys.orig_argv)\nprint(len(sys.argv), sys.path[0])")
        self.both("import multiprocessing\ndef double(x): return 2 * x\nif __name__ == '__main__':\n"
                  "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [1, 2]))")

    def test_what_an_interpreter_reads_when_it_starts(self):
        for name, value, told in (("PYTHONPATH", "/x", "'/x' in sys.path"), ("PYTHONHASHSEED", "0", "hash('a')"),
                                  ("TZ", "XXX-5", "time.tzname"), ("PYTHONIOENCODING", "latin-1", "sys.stdout.encoding"), ("HOME", "/x", "site.USER_SITE")):
            with self.subTest(name):
                self.both(f"import site, sys, time\nprint({told})", {name: value}, stays_cold=True)
        self.both("# \0\nprint(1)", stays_cold=True)

    def test_a_pool_that_was_refused_is_asked_for_again_later(self):
        class Server:
            answers = [False, True]

            def define_pool(self, name, body):
                return self.answers.pop(0)

        pools, server = warm.Pools(1), Server()
        self.assertIsNone(pools.name_of(server, {}))
        self.assertIsNone(pools.name_of(server, {}))
        self.assertEqual(server.answers, [True])
        self.addCleanup(setattr, warm, "REFUSED_SECONDS", warm.REFUSED_SECONDS)
        warm.REFUSED_SECONDS = 0
        self.assertTrue(pools.name_of(server, {}))

    def test_variables_that_no_machine_may_have_are_refused(self):
        for env in ({f"A{at}": "" for at in range(65)}, {"A": "x" * 4097}, {"A-B": ""}, {f"A{at}": "x" * 4000 for at in range(20)}):
            with self.subTest(len(env)), self.assertRaisesRegex(SandboxUnavailableError, "400: envs"):
                self.backend().run("print(1)", env=env)


class Refusals(Case):
    """Each before there is a machine."""

    def tearDown(self):
        self.assert_nothing_is_left()

    def test_a_server_that_does_not_answer(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.variable("CAISSON_SANDBOX_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
        with self.assertRaisesRegex(SandboxUnavailableError, "cannot be reached.*CAISSON_SANDBOX_BASE_URL"):
            ours.make_backend()

    def test_keys(self):
        self.variable("CAISSON_SANDBOX_API_KEY", "csk_wrong-key")
        with self.assertRaisesRegex(SandboxUnavailableError, "401.*CAISSON_SANDBOX_API_KEY") as caught:
            ours.make_backend()
        self.assertNotIn("csk_wrong-key", str(caught.exception))
        self.variable("CAISSON_SANDBOX_API_KEY", None)
        with self.assertRaisesRegex(SandboxUnavailableError, "is not set.*caisson keys create"):
            ours.make_backend()
        self.variable("CREATEOS_SANDBOX_API_KEY", SERVICE.key)
        self.assertEqual(self.backend().run("print(1)").stdout, "1\n")
        self.assertNotIn(SERVICE.key, repr(our_settings.read_server()))

    def test_addresses_that_are_none(self):
        for url in ("ftp://example.com", "http://user@example.com", "http://example.com/?a=b", "example.com", "http://[::1",
                    "http://example.com:abc", "http://example.com:99999", "http://:pw@example.com"):
            self.variable("CAISSON_SANDBOX_BASE_URL", url)
            with self.assertRaisesRegex(SandboxUnavailableError, "CAISSON_SANDBOX_BASE_URL must be"):
                ours.make_backend()

    def test_numbers_that_are_none(self):
        for text in ("-1", "1.5", "9" * 5000):
            self.variable("CAISSON_SANDBOX_POOL_SIZE", text)
            with self.assertRaisesRegex(SandboxUnavailableError, "CAISSON_SANDBOX_POOL_SIZE must be a whole number"):
                ours.make_backend()

    def test_shapes(self):
        self.variable("CAISSON_SANDBOX_SHAPE", "s-9")
        with self.assertRaisesRegex(SandboxUnavailableError, "s-9, which the server does not have"):
            self.backend().run("print(1)")
        self.variable("CAISSON_SANDBOX_SHAPE", "s-1vcpu-256mb")
        with self.assertRaisesRegex(SandboxUnavailableError, "256 MiB, and 1024 are needed"):
            self.backend().run("print(1)")
        self.variable("CAISSON_SANDBOX_SHAPE", None)
        self.policy(memory_mb=1 << 20)
        with self.assertRaisesRegex(SandboxUnavailableError, "LANGFLOW_SANDBOX_MEMORY_MB"):
            self.backend().run("print(1)")

    def test_the_smallest_shape_that_is_large_enough(self):
        shapes = [{"id": "c", "vcpu": 4, "mem_mib": 4096}, {"id": "b", "vcpu": 2, "mem_mib": 4096}, {"id": "a", "vcpu": 1, "mem_mib": 1024}]
        self.assertEqual(ours.choose_shape(shapes, "", 1024), "a")
        self.assertEqual(ours.choose_shape(shapes, "", 1025), "b")
        self.assertEqual(ours.choose_shape(shapes, "c", 4096), "c")

    def test_images_and_drivers_that_are_not_there(self):
        self.variable("CAISSON_SANDBOX_ROOTFS", "nothing:1")
        with self.assertRaisesRegex(SandboxUnavailableError, "nothing:1"):
            self.backend().run("print(1)")
        self.variable("CAISSON_SANDBOX_DRIVER", "teapot")
        with self.assertRaisesRegex(SandboxUnavailableError, "CAISSON_SANDBOX_DRIVER is teapot"):
            ours.make_backend()

    def test_policies_that_the_driver_cannot_keep(self):
        self.policy(allow_network=True, allowed_domains=["example.com"])
        backend = self.backend()
        backend._driver = dataclasses.replace(backend._driver, host_names=False)
        with self.assertRaisesRegex(SandboxUnavailableError, "LANGFLOW_SANDBOX_ALLOWED_DOMAINS"):
            backend.run("print(1)")
        self.policy(allowed_domains=[])
        backend._driver = dataclasses.replace(backend._driver, addresses=False)
        with self.assertRaisesRegex(SandboxUnavailableError, "LANGFLOW_SANDBOX_ALLOW_NETWORK"):
            backend.run("print(1)")

    def test_a_machine_that_is_not_what_was_said(self):
        backend = self.backend()
        backend._driver = dataclasses.replace(backend._driver, isolation="moon")
        with self.assertRaisesRegex(SandboxUnavailableError, "another isolation"):
            backend.run("print(1)")


class Gate(Case):
    """lfx decides by what the server said of the driver."""

    def test_it_is_found_by_its_name(self):
        self.assertIn("caisson", known_sandbox_backends())

    def test_what_is_no_virtual_machine_is_refused(self):
        if SERVICE.driver == "microvm":
            self.skipTest("its machines are virtual")
        with self.assertRaisesRegex(SandboxUnavailableError, "isolation, not a hardware-virtualized boundary"):
            run_code_in_sandbox("open('/tmp/ran-in-langflow', 'w')")
        # In the component, too: the program does not run in this process instead.
        with self.assertRaises(SandboxUnavailableError):
            node = PythonREPLComponent(_id="node", global_imports="math", python_code="import sys; sys.ran_here = True")
            outcome = node.run_python_repl().data
            if "hardware-virtualized" in str(outcome.get("error")):
                raise SandboxUnavailableError(outcome["error"])
        self.assertFalse(hasattr(sys, "ran_here"))
        self.assert_nothing_is_left()

    def test_emulation_is_a_virtual_machine_only_while_the_operator_says_so(self):
        backend = resolve_sandbox_backend("caisson")
        driver = backend._driver
        self.addCleanup(setattr, backend, "_driver", driver)
        backend._driver = dataclasses.replace(driver, isolation=ours.VIRTUAL, emulated=True)
        self.assertEqual(backend.capabilities().isolation, "software-emulated")
        with self.assertRaisesRegex(SandboxUnavailableError, "'software-emulated' isolation"):
            run_code_in_sandbox("print(1)")
        self.policy(allow_software_emulation=True)
        self.assertEqual(backend.capabilities().isolation, ours.VIRTUAL)
        self.policy(allow_software_emulation=False)
        backend._driver = dataclasses.replace(driver, isolation=ours.VIRTUAL, emulated=False)
        self.assertEqual(backend.capabilities().isolation, ours.VIRTUAL)

    @unittest.skipIf(SERVICE.driver != "microvm", "needs virtual machines: CAISSON_TEST_DRIVER=microvm")
    def test_the_interpreter_runs_in_a_virtual_machine(self):
        if resolve_sandbox_backend("caisson")._driver.emulated:
            with self.assertRaisesRegex(SandboxUnavailableError, "'software-emulated' isolation"):
                run_code_in_sandbox("print(1)")
        self.policy(allow_software_emulation=True)
        node = PythonREPLComponent(_id="node", global_imports="math,socket,os",
                                   python_code="```python\nprint(math.factorial(5), socket.gethostname(), os.uname().release)\n```")
        number, host, kernel = node.run_python_repl().data["result"].split()
        self.assertEqual(number, "120")
        self.assertNotEqual(host, os.uname().nodename)
        self.assertNotEqual(kernel, os.uname().release)
        self.assert_nothing_is_left()


class Faulty(http.server.BaseHTTPRequestHandler):
    """A server that says 503 once, and ends in mid-run."""

    protocol_version = "HTTP/1.1"
    seen = []

    def answer(self, status, data, **headers):
        body = json.dumps({"status": "success", "data": data}).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/v1/shapes"):
            return self.answer(200, {"data": [{"id": "small", "vcpu": 1, "mem_mib": 1024}]})
        egress = {"deny_all": True, "addresses": True, "host_names": True}
        self.answer(200, {"default": "x", "drivers": [{"driver": "x", "isolation": ours.VIRTUAL, "emulated": False, "egress": egress}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "exec" not in self.path:
            self.seen.append(("create", self.headers["Idempotency-Key"]))
            if len(self.seen) == 1:
                return self.answer(503, "preparing", Retry_After="0")
            return self.answer(200, {"id": "sb-1", "driver": "x", "isolation": ours.VIRTUAL, "emulated": False, "egress": body["egress"]})
        self.seen.append(("exec", None))
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b'{"stdout": "half"}\n')
        self.close_connection = True

    def do_DELETE(self):
        self.seen.append(("delete", None))
        self.answer(200, {"id": "sb-1", "status": "destroyed"})

    def log_message(self, *_):
        pass


class Faults(Case):
    def test_a_server_that_ends_in_mid_run(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.variable("CAISSON_SANDBOX_BASE_URL", f"http://127.0.0.1:{server.server_port}")
            with self.assertRaisesRegex(SandboxExecutionError, "how the program ended is not known") as caught:
                self.backend().run("print(1)")
            server.shutdown()
        self.assertNotIsInstance(caught.exception, SandboxUnavailableError)
        kinds = [kind for kind, _ in Faulty.seen]
        self.assertEqual(kinds, ["create", "create", "exec", "delete"])
        self.assertEqual(Faulty.seen[0][1], Faulty.seen[1][1])  # so that there can be no second machine


if __name__ == "__main__":
    unittest.main(verbosity=2)
