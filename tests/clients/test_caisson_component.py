# SPDX-License-Identifier: Apache-2.0
"""The component "Caisson Sandbox" in graphs of a real lfx, found as Langflow finds it, against our service."""

import asyncio
import base64
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import uuid

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
os.environ.setdefault("CAISSON_TEST_GUEST_PYTHON", sys.executable)
for name in [name for name in os.environ if name.startswith(("CREATEOS_", "LANGFLOW_SANDBOX_", "CAISSON_SANDBOX_", "CAISSON_COMPONENT_"))]:
    del os.environ[name]

import httpx

from environment import EnvironmentCase
from service_under_test import Service

SERVICE = Service()
os.environ["CAISSON_SANDBOX_BASE_URL"] = SERVICE.url
os.environ["CAISSON_SANDBOX_API_KEY"] = SERVICE.key

from caisson_langflow import artifacts, guest, node, pictures
from lfx.components.input_output import ChatOutput
from lfx.components.processing.parser import ParserComponent
from lfx.events.event_manager import create_default_event_manager
from lfx.extension.loader import load_installed_extensions
from lfx.graph.graph.base import Graph
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

SERVICE.warm({"shape": "s-1vcpu-1gb"})
[LOADED] = [one for one in load_installed_extensions() if one.bundle == "caisson"]
Sandbox = LOADED.components[0].klass if not LOADED.errors else None
SHORT = 8 if SERVICE.driver == "microvm" else 1  # seconds in which Python starts, be its processor emulated

COUNT = """
import pathlib
file = pathlib.Path('count')
count = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(count))
print('RUN_COUNT', count)
"""


def call(method, path, **fields):
    answer = httpx.request(method, SERVICE.url + path, headers={"X-Api-Key": SERVICE.key}, timeout=60, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def live():
    return {view["id"]: view for view in call("GET", "/v1/sandboxes?limit=500")["data"]}


def in_guest(sandbox, line):
    return call("POST", f"/v1/sandboxes/{sandbox}/exec", json={"cmd": "/bin/sh", "args": ["-c", line]})["result"]["stdout"]


def build(program, output="run_sandbox", flow=None, manager=None, name="node", **fields):
    """Runs a flow of two nodes, of which the sandbox is the first, as the editor does: from what a canvas would send."""
    sandbox = Sandbox(_id=name, python_code=program, **fields)
    source = getattr(sandbox, output)
    if output == "collected_files":
        shown = ParserComponent(_id="shown", pattern="{path}").set(input_data=source)
    else:
        shown = ChatOutput(_id="shown", should_store_message=False).set(input_value=source)
    payload = json.loads(json.dumps(Graph(sandbox, shown).dump()["data"], default=str))
    graph = Graph.from_payload(payload, flow_id=flow)
    graph.session_id = "session"

    async def run():
        results = {}
        async for step in graph.async_start(event_manager=manager):
            if hasattr(step, "vertex"):
                results[step.vertex.id] = step.vertex
        return results

    vertices = asyncio.run(run())
    return vertices[name].custom_component, vertices["shown"].custom_component


def value(component, output):
    return component._outputs_map[output].value


def results(program, **fields):
    return value(build(program, **fields)[0], "results").data


def files(program, **fields):
    rows = value(build(program, output="collected_files", **fields)[0], "files").to_dict("records")
    return {row["path"]: row for row in rows}


class Case(EnvironmentCase):
    def setUp(self):
        self.before = set(live())

    def tearDown(self):
        for sandbox in set(live()) - self.before:
            call("DELETE", f"/v1/sandboxes/{sandbox}")

    def assert_nothing_is_left(self):
        self.assertEqual(set(live()) - self.before, set())


class Found(unittest.TestCase):
    def test_lfx_finds_the_component(self):
        self.assertEqual(LOADED.errors, [])
        [component] = LOADED.components
        self.assertEqual(component.klass.display_name, "Caisson Sandbox")
        self.assertNotIn("code", [one.name for one in component.klass.inputs])
        for title in (component.klass.__name__, component.klass.name, component.klass.display_name):
            from lfx.utils.flow_validation import is_code_execution_component
            self.assertFalse(is_code_execution_component(title))


class Runs(Case):
    def test_a_program_in_a_graph(self):
        data = results("import sys; print(6 * 7); print('oh', file=sys.stderr)")
        self.assertLessEqual({"result": "42", "stderr": "oh", "exit_code": 0, "reused_guest": False, "artifact_count": 0,
                              "truncated": False}.items(), data.items())
        self.assertNotIn("error", data)
        self.assert_nothing_is_left()

    def test_a_program_runs_as_it_was_written(self):
        self.assertEqual(results(r"print('a\nb' + '\\n', '\t.')")["result"], "a\nb\\n \t.")
        self.assertEqual(results("", command=r"printf 'a\nb'")["result"], "a\nb")

    def test_a_command_and_one_that_fails(self):
        data = results("print('not this')", command="echo $((1 + 1)); echo no >&2; exit 3")
        self.assertEqual((data["result"], data["exit_code"], data["error"]), ("2", 3, "no"))

    def test_files_alone(self):
        rows = files("import os\nfolder = os.environ['CAISSON_ARTIFACTS']\n"
                     "open(folder + '/a.txt', 'w').write('text')\nos.mkdir(folder + '/in')\n"
                     "open('/workspace/artifacts/in/b.bin', 'wb').write(bytes([0, 255]))")
        self.assertEqual(set(rows), {"a.txt", "in/b.bin"})
        self.assertEqual((rows["a.txt"]["text"], rows["a.txt"]["size"], rows["a.txt"]["truncated"]), ("text", 4, ""))
        self.assertEqual(base64.b64decode(rows["in/b.bin"]["base64"]), bytes([0, 255]))
        self.assert_nothing_is_left()

    def test_one_run_for_all_outputs_and_another_for_the_next_build(self):
        sandbox = Sandbox(_id="node", python_code="import uuid; print(uuid.uuid4())")

        async def ask():
            first, text = await sandbox.run_sandbox(), await sandbox.message_with_pictures()
            await sandbox.collected_files()
            again = await sandbox.run_sandbox()
            sandbox.set(python_code="print('another')")
            return first.data["result"], text.text, again.data["result"], (await sandbox.message_with_pictures()).text

        first, text, again, other = asyncio.run(ask())
        self.assertEqual(first, text)
        self.assertNotEqual(first, again)
        self.assertEqual(other, "another")

    def test_a_timeout_keeps_output_and_files(self):
        started = time.monotonic()
        sandbox, _ = build("print('begun', flush=True)\nopen('/workspace/artifacts/half', 'w').write('half')\n"
                           "import time; time.sleep(60)", timeout_seconds=SHORT, collect_artifacts=True)
        data = value(sandbox, "results").data
        self.assertEqual((data["result"], data["exit_code"], data["artifact_count"]), ("begun", 124, 1))
        self.assertEqual(data["error"], f"Timed out after {SHORT}s")
        self.assertLess(time.monotonic() - started, 40)
        self.assert_nothing_is_left()

    def test_output_comes_to_the_log_while_the_program_runs(self):
        seen = []

        class Queue:
            def put_nowait(self, item):
                if item[1] is not None and b"first" in item[1] and b'"log"' in item[1]:
                    seen.append(time.monotonic())

        build("import time\nprint('first', flush=True)\ntime.sleep(2)\nprint('second')", manager=create_default_event_manager(Queue()))
        self.assertTrue(seen)
        self.assertGreater(time.monotonic() - seen[0], 1.5)

    def test_a_flood_is_cut_and_said_so(self):
        sandbox, _ = build(f"import sys\nsys.stdout.write('x' * {guest.OUTPUT_BYTES + 5})")
        data = value(sandbox, "results").data
        self.assertTrue(data["truncated"])
        self.assertIn("stdout was cut", data["left_out"][0])
        self.assertEqual(len(data["result"]), guest.OUTPUT_BYTES)
        logs = [log for entry in sandbox._output_logs.values() for log in entry]
        self.assertLess(sum(len(str(log.message)) for log in logs), (node.LOG_ENTRIES + 2) * (node.LOG_CHARACTERS + 100))

    def test_a_tool_runs_what_the_agent_says(self):
        async def ask():
            sandbox = Sandbox(_id="node", python_code="print('default')")
            [tool] = await sandbox.to_toolkit()
            return [(await tool.ainvoke({"python_code": f"print({number})"}))["result"] for number in (1, 2)]

        self.assertEqual(asyncio.run(ask()), ["1", "2"])

    def test_a_build_that_is_cancelled_leaves_nothing(self):
        sandbox = Sandbox(_id="node", python_code="import time; time.sleep(50)")

        async def cancel():
            task = asyncio.create_task(sandbox.run_sandbox())
            while not set(live()) - self.before:
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.5)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())  # which waits for the run's thread
        self.assert_nothing_is_left()


def png(width, height, color):
    from PIL import Image
    data = io.BytesIO()
    Image.new("RGB", (width, height), color).save(data, "PNG")
    return data.getvalue()


class Pictures(Case):
    def test_a_picture_is_in_the_message_as_langflow_shows_it(self):
        from lfx.services.storage.local import LocalStorageService
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        storage = LocalStorageService(None, types.SimpleNamespace(settings=types.SimpleNamespace(config_dir=folder.name)))
        patch = unittest.mock.patch("lfx.services.deps.get_storage_service", return_value=storage)
        patch.start()
        self.addCleanup(patch.stop)
        flow = str(uuid.uuid4())
        encoded = base64.b64encode(png(8, 8, "red")).decode()
        sandbox, shown = build("import base64\nprint('see')\n"
                               f"open('/workspace/artifacts/plot.png', 'wb').write(base64.b64decode('{encoded}'))\n"
                               "open('/workspace/artifacts/no.png', 'w').write('<svg onload=alert(1)>')",
                               output="message_with_pictures", flow=flow)
        message = value(shown, "message")
        [file] = message.files
        path = file if isinstance(file, str) else file.path
        self.assertEqual(message.text, f"see\n\n![plot.png](/api/v1/files/images/{path})")
        self.assertRegex(path, rf"^{flow}/caisson-[0-9a-f]{{16}}\.png$")
        self.assertEqual(pathlib.Path(folder.name, path).read_bytes(), png(8, 8, "red"))

    def test_a_name_is_no_markdown(self):
        self.assertEqual(pictures.title_of(artifacts.Artifact("a](javascript:x) `<b>\u202e.png", b"")), "a__javascript_x_ __b__.png")

    def test_what_is_no_picture_for_it(self):
        self.assertEqual(pictures.kind_of(png(3, 3, "blue")), "png")
        bomb = bytearray(png(8, 8, "red"))
        bomb[16:24] = (200_000).to_bytes(4, "big") * 2
        import zlib
        bomb[29:33] = zlib.crc32(bomb[12:29]).to_bytes(4, "big")
        for content in (bytes(bomb), b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%!PS-Adobe-3.0 EPSF-3.0", png(8, 8, "red")[:20]):
            self.assertEqual(pictures.kind_of(content), "")


class Reuse(Case):
    def flow(self, program=COUNT, **fields):
        return results(program, flow=self.id, session_mode="flow", **fields)

    def setUp(self):
        super().setUp()
        self.id = str(uuid.uuid4())

    def worker(self, line):
        """Another Langflow worker: a process of its own."""
        return subprocess.Popen([sys.executable, "-W", "ignore", "-c", f"import test_caisson_component as suite\n{line}"],
                                cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, text=True,
                                env=os.environ | {"CAISSON_URL": SERVICE.url, "CAISSON_KEY": SERVICE.key, "CAISSON_OTHER_KEY": SERVICE.other_key})

    def test_counts_on_across_workers_pauses_and_runs(self):
        worker = self.worker(f"print(suite.results(suite.COUNT, flow='{self.id}', session_mode='flow')['result'])")
        self.assertEqual(worker.communicate(timeout=120)[0].strip().splitlines()[-1], "RUN_COUNT 1")
        second = self.flow()
        self.assertEqual((second["result"], second["reused_guest"]), ("RUN_COUNT 2", True))
        view = live()[second["sandbox_id"]]
        self.assertTrue(view["name"].startswith("lf-c-"))
        self.assertEqual(view["labels"]["langflow-flow"], self.id)
        self.assertEqual(view["auto_pause_after_seconds"], guest.AUTO_PAUSE_SECONDS)
        self.assertIn("delete_at", view)
        call("POST", f"/v1/sandboxes/{second['sandbox_id']}/pause")
        third = self.flow()
        self.assertEqual((third["result"], third["sandbox_id"]), ("RUN_COUNT 3", second["sandbox_id"]))
        self.assertGreater(live()[second["sandbox_id"]]["delete_at"], view["delete_at"])
        # Of each run only its own files, and none of their folders stay.
        self.assertEqual(in_guest(third["sandbox_id"], "ls /workspace/runs").strip(), "")

    def test_another_network_shape_flow_or_node_is_another_machine(self):
        first = self.flow()["sandbox_id"]
        others = [self.flow(name="other"), results(COUNT, flow=str(uuid.uuid4()), session_mode="flow")]
        if SERVICE.is_real:
            others += [self.flow(network="open"), self.flow(network="domains", domains="example.com, example.org")]
        self.assertEqual({one["result"] for one in others}, {"RUN_COUNT 1"})
        self.assertEqual(len({first, *[one["sandbox_id"] for one in others]}), 1 + len(others))
        if not SERVICE.is_real:
            return
        views, others = live(), others[2:]
        self.assertEqual(views[first]["egress"], ["240.0.0.0/4"])
        self.assertEqual(views[others[0]["sandbox_id"]]["egress"], ["*"])
        self.assertEqual(views[others[1]["sandbox_id"]]["egress"], ["example.com", "example.org"])
        again = self.flow(network="domains", domains="example.org,example.com")
        self.assertEqual((again["sandbox_id"], again["result"]), (others[1]["sandbox_id"], "RUN_COUNT 2"))

    def test_one_whose_policy_was_changed_from_outside_is_refused(self):
        sandbox = self.flow()["sandbox_id"]
        call("PUT", f"/v1/sandboxes/{sandbox}/egress", json={"egress": ["*"]})
        with self.assertRaisesRegex(Exception, "changed from outside.*Nothing has run; delete that machine"):
            self.flow()
        self.assertEqual(in_guest(sandbox, "cat /workspace/count"), "1")

    def test_a_flow_without_an_id_is_refused(self):
        with self.assertRaisesRegex(Exception, "save the flow"):
            results(COUNT, session_mode="flow")
        self.assert_nothing_is_left()

    def test_two_workers_at_once_share_the_machine_and_not_the_files(self):
        program = ("import os, sys, time, pathlib\nfolder = pathlib.Path(os.environ['CAISSON_ARTIFACTS'])\n"
                   "(folder / '{0}').write_text('{0}')\ntime.sleep(1)\nprint('{0}')")
        outcomes = {}

        def work(name):
            outcomes[name] = build(program.format(name), output="collected_files", flow=self.id, session_mode="flow")[0]

        workers = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
        for name, sandbox in outcomes.items():
            self.assertEqual([row["path"] for row in value(sandbox, "files").to_dict("records")], [name])
        self.assertEqual(len(set(live()) - self.before), 1)

    def test_a_worker_that_is_killed_leaves_a_machine_that_ends_in_time(self):
        line = "suite.results('import time; print(1, flush=True); time.sleep(500)', timeout_seconds=120{})"
        worker = self.worker(line.format(f", session_mode='flow', flow='{self.id}'"))
        lone = self.worker(line.format(""))
        deadline = time.monotonic() + 120
        while len(set(live()) - self.before) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        left = set(live()) - self.before
        self.assertEqual(len(left), 2)
        time.sleep(2)
        for process in (worker, lone):
            process.send_signal(signal.SIGKILL)
            process.communicate()
        views = live()
        from datetime import datetime, timedelta, timezone
        for sandbox in left:
            longest = timedelta(seconds=120 + guest.GRACE_SECONDS + guest.REAP_SECONDS)
            if views[sandbox]["labels"].get("langflow-flow"):
                longest = timedelta(seconds=guest.KEEP_SECONDS)
            end = datetime.fromisoformat(views[sandbox]["delete_at"].replace("Z", "+00:00"))
            self.assertLessEqual(end, datetime.now(timezone.utc) + longest)
        # The program has ended with its worker, and the next one finds the machine as it was.
        again = self.flow("import subprocess\nprint(subprocess.run('for f in /proc/[0-9]*/cmdline; do tr \"\\\\0\" \" \" <$f; echo; done',"
                          " shell=True, capture_output=True, text=True).stdout)")
        self.assertTrue(again["reused_guest"])
        self.assertEqual(again["result"].count("/workspace/runs/"), 1, again["result"])


class Hostile(Case):
    """What a program can leave for its reader."""

    def test_what_is_no_file_is_told_and_not_followed(self):
        rows = files("import os, socket\nos.chdir(os.environ['CAISSON_ARTIFACTS'])\nos.symlink('/etc/passwd', 'link')\n"
                     "os.symlink('/', 'root')\nos.mkfifo('fifo')\nsocket.socket(socket.AF_UNIX).bind('socket')\n"
                     "open(b'a\\nb', 'w').write('x')\nopen(b'\\xff', 'w').write('x')\nopen('back\\\\slash', 'w').write('x')\n"
                     "open('good', 'w').write('good')\nopen('hole', 'w').truncate(1 << 33)\n"
                     "here = '.'\nfor _ in range(20):\n    here += '/d'\n    os.mkdir(here)\nopen(here + '/deep', 'w').write('x')")
        self.assertEqual(set(rows), {"good"})
        told = rows["good"]["truncated"]
        for part in ("link: is no file (link)", "root: is no file (link)", "fifo: is no file (fifo)", "socket: is no file (socket)",
                     "hole: its 8589934592 bytes would be more", "folders are read 16 deep", "characters that are not carried on"):
            self.assertIn(part, told)

    def test_too_many_too_much_and_what_the_operator_allows(self):
        many = {"jail": 100_000, "microvm": 5_000}.get(os.environ.get("CAISSON_TEST_DRIVER"), 2_500)
        began = time.monotonic()
        rows = files(f"import os\nos.chdir(os.environ['CAISSON_ARTIFACTS'])\nfor n in range({many}): open(f'{{n:06}}', 'w').write('x')",
                     timeout_seconds=120)
        self.assertEqual(len(rows), artifacts.MOST_FILES)
        told = next(iter(rows.values()))["truncated"]
        self.assertIn(f"has more than {artifacts.LISTED} names", told)
        self.assertIn("there are 256 files already", told)
        self.assertLess(len(told), 4000)
        self.assertLess(time.monotonic() - began, 100)
        self.variable("CAISSON_COMPONENT_MAX_BYTES", "1000")
        rows = files("import os\nos.chdir(os.environ['CAISSON_ARTIFACTS'])\n"
                     "open('a', 'w').write('a' * 600)\nopen('b', 'w').write('b' * 600)\nopen('c', 'w').write('c' * 400)")
        self.assertEqual({path: row["size"] for path, row in rows.items()}, {"a": 600, "c": 400})
        self.assertIn("b: its 600 bytes would be more than the 1000 bytes in all", rows["a"]["truncated"])
        self.variable("CAISSON_COMPONENT_MAX_FILES", "none")
        with self.assertRaisesRegex(Exception, "CAISSON_COMPONENT_MAX_FILES must be a whole number"):
            files("print(1)")
        self.assert_nothing_is_left()

    def test_nothing_but_what_is_too_large_is_a_row_that_says_so(self):
        self.variable("CAISSON_COMPONENT_MAX_BYTES", "10")
        rows = files("open('/workspace/artifacts/big', 'w').write('x' * 11)")
        self.assertEqual(list(rows), [""])
        self.assertIn("big: its 11 bytes", rows[""]["truncated"])

    def test_a_folder_that_is_gone_or_elsewhere(self):
        rows = files("import os, shutil\nshutil.rmtree(os.environ['CAISSON_ARTIFACTS'])")
        self.assertIn("the artifact folder: cannot be listed", rows[""]["truncated"])
        data = results("import os, shutil\nfolder = os.environ['CAISSON_ARTIFACTS']\nshutil.rmtree(folder)\nos.symlink('/proc', folder)",
                       collect_artifacts=True)
        self.assertTrue(data["truncated"])
        self.assert_nothing_is_left()


class FromAGuestThatLies(unittest.TestCase):
    """An agent in the hands of the program, as the server would pass its answers on."""

    class Api:
        def __init__(self, entries, pieces=()):
            self.entries, self.pieces, self.read = entries, pieces, []

        def list_folder(self, sandbox, path, limit):
            return {"entries": self.entries}

        def read_file(self, sandbox, path, into, most, deadline):
            self.read.append(path)
            for piece in self.pieces:
                if len(into) + len(piece) > most:
                    return False
                into += piece
            return True

    def test_names_that_lead_elsewhere(self):
        names = ["..", ".", "", "../../etc/passwd", "/etc/passwd", "a\0b", "C:\\x", None, 7, ["x"], "\u202egpj.exe", "x" * 256]
        api = self.Api([{"name": name, "type": "file", "size": 1} for name in names] + ["none", 7])
        found = artifacts.collect(api, "sb", "/w", artifacts.Limits())
        self.assertEqual((found.files, api.read, found.left_out_count), ([], [], len(names)))

    def test_a_file_that_grows_while_it_is_read(self):
        api = self.Api([{"name": f"{n:02}", "type": "file", "size": 1} for n in range(50)], [b"x" * 400] * 10)
        found = artifacts.collect(api, "sb", "/w", artifacts.Limits(256, 1000))
        self.assertEqual(found.files, [])
        self.assertIn("it grew to more than the 1000 bytes", found.told())
        self.assertLessEqual(len(api.read), 50)

    def test_folders_without_end(self):
        api = self.Api([{"name": f"{n:04}", "type": "directory"} for n in range(3000)])
        found = artifacts.collect(api, "sb", "/w", artifacts.Limits())
        self.assertGreater(found.left_out_count, 1000)
        self.assertLessEqual(len(found.left_out), artifacts.TOLD)


class Operator(Case):
    """What the operator is told of flows and of the Langflow process."""

    def payload(self, *components):
        return json.dumps({"data": Graph(*components).dump()["data"]}, default=str)

    def check(self, text, *words):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "flow.json").write_text(text)
            ran = subprocess.run([pathlib.Path(sys.executable).with_name("caisson-langflow"), "check", *words, "--json", "flow.json"],
                                 cwd=folder, capture_output=True, text=True)
        return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr

    def test_the_check_knows_what_is_stock_and_what_is_not(self):
        from lfx.components.utilities.python_repl_core import PythonREPLComponent
        sandbox = Sandbox(_id="ours")
        interpreter = PythonREPLComponent(_id="stock").set(python_code=sandbox.message_with_pictures)
        text = self.payload(sandbox, interpreter)
        self.assertEqual(self.check(text)[:2], (0, []))
        flow = json.loads(text)
        for one in flow["data"]["nodes"]:
            one["data"]["node"]["template"]["code"]["value"] += "\nimport numpy\n"
        code, found, _ = self.check(json.dumps(flow))
        self.assertEqual((code, sorted((one["node"], one["kind"]) for one in found)), (1, [("ours", "custom"), ("stock", "custom")]))

    @unittest.skipUnless(SERVICE.is_real, "its guests have this host's packages")
    def test_the_check_asks_the_image_what_it_has(self):
        node = {"id": "n", "data": {"type": "X", "node": {"template": {"code": {"value": "import json, pip, surely_not_there"}}}}}
        code, found, err = self.check(json.dumps({"nodes": [node]}), "--image", "devbox:1")
        self.assertEqual(code, 1, err)
        [missing] = [one for one in found if one["kind"] == "missing"]
        self.assertIn("surely_not_there, which the image devbox:1 does not have", missing["text"])
        self.assert_nothing_is_left()

    def test_one_warning_names_what_still_runs_in_the_process(self):
        program = ("from lfx.extension.loader import load_installed_extensions\nload_installed_extensions()\n"
                   "from lfx.utils.sandbox import known_sandbox_backends\nknown_sandbox_backends()\nimport caisson_langflow.plugin")
        ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                             env=os.environ | {"LANGFLOW_SANDBOX_BACKEND": "caisson"})
        lines = [line for line in ran.stderr.splitlines() if "in the Langflow process" in line]
        self.assertEqual(len(lines), 1, ran.stderr)
        for part in ("custom and edited components", "Smart Transform", "CSVAgent", "PythonFunction", "caisson-langflow check"):
            self.assertIn(part, lines[0])
        self.assertNotIn("PythonREPLComponent", lines[0])


class Refusals(Case):
    def tearDown(self):
        self.assert_nothing_is_left()

    def refused(self, text, **fields):
        with self.assertRaisesRegex(SandboxUnavailableError, text):
            asyncio.run(Sandbox(_id="node", python_code="print(1)", **fields).run_sandbox())

    def test_what_a_node_may_not_ask_for(self):
        self.refused("Network is domains, and Domains names none", network="domains")
        self.refused("set Network to open", network="domains", domains="example.com, *")
        self.refused("must be one of off, domains, open", network="everything")
        self.refused("Timeout must be", timeout_seconds=0)
        self.refused("Timeout must be", timeout_seconds=86401)
        self.refused("Shape is s-9, which the server does not have", shape="s-9")
        self.refused("256 MiB, and 1024 are needed", shape="s-1vcpu-256mb")
        self.refused("Guest Reuse is 'always'", session_mode="always")

    @unittest.skipUnless(SERVICE.is_real, "the driver of this host has no network")
    def test_a_rule_that_is_none(self):
        self.refused("the Caisson server answered 4", network="domains", domains="ex ample..com:99999")

    def test_a_wrong_key(self):
        self.variable("CAISSON_SANDBOX_API_KEY", "csk_wrong")
        self.refused("401.*CAISSON_SANDBOX_API_KEY")


if __name__ == "__main__":
    unittest.main(verbosity=2)
