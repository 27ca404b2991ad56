# SPDX-License-Identifier: Apache-2.0
"""langflow-sandbox-createos (PyPI), unchanged, called as lfx calls it: its component, its executor, its backend, and the
backend through lfx's own dispatch, which refuses what says that it is no virtual machine.

The guest of the executor needs lfx. Over the namespaces of this host it has that of this environment; with real
machines CREATEOS_EXECUTOR_ROOTFS names a root file system that has it, else the executor's tests skip.
"""

import asyncio
import base64
import concurrent.futures
import os
import sys
import unittest
import uuid

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
# For the service that is started here: what python3 is in its guests.
os.environ.setdefault("CAISSON_TEST_GUEST_PYTHON", sys.executable)

import httpx

from service_under_test import Service

SERVICE = Service()
os.environ["CREATEOS_SANDBOX_BASE_URL"] = SERVICE.url
os.environ["CREATEOS_SANDBOX_API_KEY"] = SERVICE.key
os.environ["LANGFLOW_SANDBOX_CREATEOS_ACCEPT_EGRESS_EXCEPTIONS"] = "true"
os.environ.setdefault("CREATEOS_EXECUTOR_TIMEOUT_SECONDS", "120")
os.environ["CREATEOS_EXECUTOR_EGRESS"] = ","  # deny-all
# As an operator selects it; lfx reads this once.
os.environ["LANGFLOW_SANDBOX_BACKEND"] = "createos"
os.environ["LANGFLOW_SANDBOX_BACKEND_PLUGINS"] = "createos"

from langflow_sandbox_createos import CreateOSBackend
from langflow_sandbox_createos.components.createos.createos_sandbox import CreateOSSandboxComponent
from langflow_sandbox_createos.executor import CreateOSExecutor
from lfx.components.input_output import ChatInput, ChatOutput
from lfx.components.utilities.python_repl_core import PythonREPLComponent
from lfx.execution.types import RunComplete, StepResult, Unit
from lfx.graph.graph.base import Graph
from lfx.services.deps import get_settings_service
from lfx.utils.sandbox import known_sandbox_backends, run_code_in_sandbox
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

EXECUTOR_ROOTFS = os.environ.get("CREATEOS_EXECUTOR_ROOTFS")

COUNT = """
import pathlib
file = pathlib.Path('/root/count')
count = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(count))
print('RUN_COUNT', count)
"""


def call(method, path, **fields):
    answer = httpx.request(method, SERVICE.url + path, headers={"X-Api-Key": SERVICE.key}, timeout=60, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def knows_executor_rootfs():
    return EXECUTOR_ROOTFS in call("GET", "/v1/rootfs")["rootfs"]


SERVICE.warm({"shape": "s-2vcpu-4gb"}, *([{"shape": "s-4vcpu-8gb", "rootfs": EXECUTOR_ROOTFS}] if knows_executor_rootfs() else []))


def live():
    return {view["id"]: view for view in call("GET", "/v1/sandboxes?limit=500")["data"]}


class Case(unittest.TestCase):
    def setUp(self):
        self.before = set(live())

    def tearDown(self):
        for sandbox in set(live()) - self.before:
            call("DELETE", f"/v1/sandboxes/{sandbox}")

    def assert_nothing_is_left(self):
        self.assertEqual(set(live()) - self.before, set())


def component(name="node", **fields):
    return CreateOSSandboxComponent(_id=name, **({"shape": "s-1vcpu-1gb", "timeout_seconds": 30} | fields))


class Component(Case):
    def test_runs_python_in_a_guest_of_its_own(self):
        outcome = component(python_code="import sys; print(6 * 7); print('oh', file=sys.stderr)").run_sandbox().data
        self.assertEqual(outcome["result"].strip(), "42")
        self.assertEqual(outcome["stderr"].strip(), "oh")
        self.assertEqual((outcome["exit_code"], outcome["reused_guest"]), (0, False))
        self.assert_nothing_is_left()

    def test_runs_a_command(self):
        outcome = component(command="echo $((1 + 1)); exit 3").run_sandbox().data
        self.assertEqual((outcome["result"].strip(), outcome["exit_code"]), ("2", 3))
        self.assertIn("error", outcome)

    def test_tells_a_timeout_as_one(self):
        outcome = component(python_code="import time; time.sleep(60)", timeout_seconds=1).run_sandbox().data
        self.assertEqual(outcome["exit_code"], 124)
        self.assertIn("Timed out after 1s", outcome["error"])
        self.assert_nothing_is_left()

    def test_brings_files_back(self):
        node = component(collect_artifacts=True, python_code=(
            "open('/workspace/artifacts/a.txt', 'w').write('text')\n"
            "open('/workspace/artifacts/b.bin', 'wb').write(bytes([0, 255]))"))
        self.assertEqual(node.run_sandbox().data["artifact_count"], 2)
        files = {row["path"]: row for row in node.collected_files().to_dict("records")}
        self.assertEqual(files["a.txt"]["text"], "text")
        self.assertEqual(base64.b64decode(files["b.bin"]["base64"]), bytes([0, 255]))

    def test_takes_the_same_guest_again(self):
        name = f"node-{uuid.uuid4().hex[:8]}"
        seen = []
        for run in (1, 2, 3):
            outcome = component(name, session_mode="flow", python_code=COUNT).run_sandbox().data
            self.assertEqual(outcome["result"].strip(), f"RUN_COUNT {run}")
            seen.append(outcome["sandbox_id"])
            if run == 2:  # as when nobody came for a while
                call("POST", f"/v1/sandboxes/{seen[0]}/pause")
        self.assertEqual(len(set(seen)), 1)

    def test_another_network_is_another_guest(self):
        name = f"node-{uuid.uuid4().hex[:8]}"
        closed = component(name, session_mode="flow", python_code=COUNT).run_sandbox().data
        opened = component(name, session_mode="flow", python_code=COUNT, allow_network=True).run_sandbox().data
        self.assertNotEqual(closed["sandbox_id"], opened["sandbox_id"])
        self.assertEqual(opened["result"].strip(), "RUN_COUNT 1")
        views = live()
        self.assertEqual(views[closed["sandbox_id"]]["egress"], ["240.0.0.0/4"])
        self.assertEqual(views[opened["sandbox_id"]]["egress"], ["*"])

    def test_refuses_a_guest_whose_policy_was_changed(self):
        name = f"node-{uuid.uuid4().hex[:8]}"
        sandbox = component(name, session_mode="flow", python_code=COUNT).run_sandbox().data["sandbox_id"]
        call("PUT", f"/v1/sandboxes/{sandbox}/egress", json={"egress": ["*"]})
        with self.assertRaisesRegex(SandboxUnavailableError, "Refusing to reuse"):
            component(name, session_mode="flow", python_code=COUNT).run_sandbox()

    def test_a_wrong_key_runs_nothing(self):
        os.environ["CREATEOS_SANDBOX_API_KEY"] = "csk_wrong"
        try:
            with self.assertRaisesRegex(SandboxUnavailableError, "401"):
                component(python_code="print(1)").run_sandbox()
        finally:
            os.environ["CREATEOS_SANDBOX_API_KEY"] = SERVICE.key


def echo_flow():
    asked = ChatInput(_id="asked")
    answered = ChatOutput(_id="answered").set(input_value=asked.message_response)
    return Graph(asked, answered)


async def run(unit):
    return [item async for item in CreateOSExecutor().execute(unit)]


@unittest.skipIf(SERVICE.is_real and not knows_executor_rootfs(),
                 "CREATEOS_EXECUTOR_ROOTFS names no root file system of the service that has lfx")
class Executor(Case):
    def test_runs_a_flow_in_a_guest(self):
        unit = Unit(graph=echo_flow(), inputs=[{"input_value": "over there"}], runtime_options={"outputs": ["answered"]})
        items = asyncio.run(run(unit))
        self.assertIsInstance(items[-1], RunComplete)
        steps = [item.payload for item in items[:-1] if isinstance(item, StepResult)]
        built = {step["event"].get("vertex_id") for step in steps if step.get("t") == "step"}
        self.assertLessEqual({"asked", "answered"}, built)
        self.assertIn("over there", str(items[-1].outputs))
        self.assert_nothing_is_left()

    def test_a_flow_that_fails_says_so_and_leaves_nothing(self):
        with self.assertRaisesRegex(SandboxExecutionError, "inside the CreateOS guest"):
            asyncio.run(run(Unit(graph={"nodes": [{"id": "x"}], "edges": []}, inputs=[], runtime_options={})))
        self.assert_nothing_is_left()

    def test_a_stream_that_is_dropped_leaves_nothing(self):
        async def drop():
            stream = CreateOSExecutor().execute(Unit(graph=echo_flow(), inputs=[], runtime_options={}))
            await anext(stream)
            await stream.aclose()

        asyncio.run(drop())
        self.assert_nothing_is_left()


class Backend(Case):
    def setUp(self):
        super().setUp()
        self.backend = CreateOSBackend()
        self.addCleanup(self.backend.shutdown)

    def test_runs_code(self):
        result = self.backend.run("import os; print(os.environ['WHO'])", env={"WHO": "me"})
        self.assertEqual((result.stdout.strip(), result.exit_code), ("me", 0))
        self.assert_nothing_is_left()

    def test_tells_a_timeout_as_one(self):
        os.environ["LANGFLOW_SANDBOX_TIMEOUT_SECONDS"] = "1"
        try:
            self.assertEqual(self.backend.run("import time; time.sleep(60)").exit_code, -1)
        finally:
            del os.environ["LANGFLOW_SANDBOX_TIMEOUT_SECONDS"]


class Dispatch(Case):
    """What Langflow's interpreters call."""

    def set(self, name, value):
        settings = get_settings_service().settings
        before = getattr(settings, name)
        self.addCleanup(setattr, settings, name, before)
        setattr(settings, name, value)

    def test_runs_code_with_imports_and_variables(self):
        self.assertIn("createos", known_sandbox_backends())
        result = run_code_in_sandbox("print(json.dumps([os.environ['WHO'], math.factorial(20)]))",
                                     global_imports="json, math, os", env={"WHO": "me"})
        self.assertEqual((result.stdout.strip(), result.stderr, result.exit_code), ('["me", 2432902008176640000]', "", 0))
        self.assertTrue(result.success)
        self.assert_nothing_is_left()

    def test_a_program_that_fails_is_told(self):
        result = run_code_in_sandbox("import sys\nprint('before', flush=True)\nraise ValueError('oh')")
        self.assertEqual((result.stdout.strip(), result.exit_code), ("before", 1))
        self.assertIn("ValueError: oh", result.error_message())
        self.assertEqual(run_code_in_sandbox("import os; os._exit(7)").exit_code, 7)

    def test_a_program_that_takes_too_long_is_told_so(self):
        self.set("sandbox_timeout_seconds", 1)
        result = run_code_in_sandbox("import time; time.sleep(60)")
        self.assertEqual(result.exit_code, -1)
        self.assertIn("LANGFLOW_SANDBOX_TIMEOUT_SECONDS", result.error_message())
        self.assert_nothing_is_left()

    def test_each_run_is_a_machine_of_its_own(self):
        code = ("import os, pathlib\nfile = pathlib.Path('/root/seen')\nprint(file.exists())\nfile.write_text('1')\n"
                "print(os.uname().release)\n")
        first, second = run_code_in_sandbox(code), run_code_in_sandbox(code)
        self.assertEqual([one.stdout.splitlines()[0] for one in (first, second)], ["False", "False"])
        if SERVICE.driver == "microvm":
            self.assertNotEqual(first.stdout.splitlines()[1], os.uname().release)

    def test_nothing_can_be_reached(self):
        result = run_code_in_sandbox(
            "for host in ('1.1.1.1', '169.254.169.254', '10.0.0.1'):\n"
            "    try: socket.create_connection((host, 80), 2); print('reached', host)\n"
            "    except OSError: pass\n"
            "try: print(socket.getaddrinfo('example.com', 80))\n"
            "except OSError: print('no name')\n", global_imports="socket")
        if SERVICE.is_real:
            self.assertEqual((result.stdout.strip(), result.stderr), ("no name", ""))

    def test_many_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda number: run_code_in_sandbox(f"print({number} ** 2)").stdout.strip(), range(8)))
        self.assertEqual(results, [str(number ** 2) for number in range(8)])
        self.assert_nothing_is_left()

    def test_the_interpreter_component_uses_it(self):
        node = PythonREPLComponent(_id="node", global_imports="math,socket",
                                   python_code="```python\nprint(math.pi, socket.gethostname())\n```")
        result = node.run_python_repl().data
        self.assertNotIn("error", result)
        number, host = result["result"].split()
        self.assertEqual(number, "3.141592653589793")
        self.assertTrue(host.startswith("lf-") if SERVICE.is_real else host)

    def test_a_policy_that_it_cannot_keep_runs_nothing(self):
        self.set("sandbox_allow_network", True)
        self.set("sandbox_allowed_domains", ["example.com"])
        with self.assertRaisesRegex(SandboxUnavailableError, "ALLOWED_DOMAINS"):
            run_code_in_sandbox("print(1)")
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
