# SPDX-License-Identifier: Apache-2.0
"""Our executor in the lfx of tests/clients/langflow.txt: flows of real components in machines of a service.

With machines of a driver CAISSON_EXECUTOR_ROOTFS names an image that has lfx. Over the namespaces of this host the guest has the
lfx of this environment.
"""

import asyncio
import http.server
import json
import logging
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time
import unittest
from contextlib import aclosing

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
os.environ.setdefault("CAISSON_TEST_GUEST_PYTHON", sys.executable)
for name in list(os.environ):  # the environment of who runs this decides nothing
    if name.startswith(("CAISSON_SANDBOX_", "CREATEOS_", "LANGFLOW_")):
        del os.environ[name]

import httpx

from environment import EnvironmentCase
from service_under_test import Service

SERVICE = Service()
os.environ["CAISSON_SANDBOX_BASE_URL"] = SERVICE.url
os.environ["CAISSON_SANDBOX_API_KEY"] = SERVICE.key
os.environ["LANGFLOW_EXECUTOR_KIND"] = "caisson"
SHAPE = "s-2vcpu-4gb"
os.environ.setdefault("CAISSON_EXECUTOR_SHAPE", SHAPE)
if not SERVICE.is_real:
    os.environ["CAISSON_EXECUTOR_ROOTFS"] = "devbox:1"
    os.environ["CAISSON_EXECUTOR_EGRESS"] = "none"
SERVICE.warm({"shape": SHAPE, "rootfs": os.environ.get("CAISSON_EXECUTOR_ROOTFS", "langflow:1")})

import caisson_langflow.executor as ours
from caisson_langflow.executor import CaissonExecutor
from caisson_langflow.executor_machine import Machine
from caisson_langflow.executor_settings import read_executor_settings
from caisson_langflow.flow import Flow, read_flow
from caisson_langflow.inside.codec import decode, encode
from caisson_langflow.settings import read_server
from lfx.events.event_manager import create_default_event_manager
from lfx.execution import get_default_coordinator
from lfx.execution.types import RunComplete, StepResult, Unit
from lfx.graph.graph.base import Graph
from lfx.graph.graph.constants import Finish
from lfx.schema import message as lfx_message
from lfx.schema.image import Image
from lfx.schema.message import Message
from lfx.utils.sandbox.base import SandboxExecutionError, SandboxUnavailableError

import executor_flows as flows

FULL = bool(os.environ.get("CAISSON_TEST_DRIVER"))


def live():
    answer = httpx.get(SERVICE.url + "/v1/sandboxes?limit=500", headers={"X-Api-Key": SERVICE.key}, timeout=60)
    return {view["id"]: view for view in answer.json()["data"]["data"]
            if (view.get("labels") or {}).get("created-by") == "caisson-langflow" and view["status"] not in ("destroyed", "destroying", "failed")}


def of_kind(items, kind):
    return [item.payload for item in items if isinstance(item, StepResult) and isinstance(item.payload, kind)]


def built(items):
    return [payload for payload in (item.payload for item in items if isinstance(item, StepResult)) if hasattr(payload, "vertex")]


def text_of(output):
    message = output["message"]
    return message if isinstance(message, str) else message.get("text")


def texts(outputs):
    """The text of each output of each input."""
    return [[text_of(one) for result in run.outputs for one in result.outputs.values()] for run in outputs]


async def collect(graph, inputs=(), **options):
    return [item async for item in CaissonExecutor().execute(Unit(graph=graph, inputs=list(inputs), runtime_options=options))]


def run(graph, inputs=(), **options):
    return asyncio.run(collect(graph, inputs, **options))


class Case(EnvironmentCase):
    maxDiff = None

    def setUp(self):
        self.before = set(live())

    def tearDown(self):
        deadline = time.monotonic() + 20
        while (left := set(live()) - self.before) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertEqual(left, set())


class Seam(Case):
    """As Langflow's own code calls it."""

    def test_all_inputs_have_their_outputs(self):
        items = run(flows.echo(), [{"input_value": "one"}, {"input_value": "two"}], _use_arun_legacy=True)
        self.assertIsInstance(items[-1], RunComplete)
        self.assertEqual(texts(items[-1].outputs), [["one"], ["two"]])
        self.assertEqual([result.vertex.id for result in built(items)], ["asked", "answered"] * 2)
        self.assertEqual([one.inputs for one in items[-1].outputs], [{"input_value": "one"}, {"input_value": "two"}])

    def test_a_coordinator_streams_what_readers_of_payloads_take(self):
        graph = flows.echo()

        async def stream():
            return [payload async for payload in get_default_coordinator().stream(graph, initial_inputs={"input_value": "over there"})]

        payloads = asyncio.run(stream())
        self.assertIsInstance(payloads[-1], Finish)
        last = payloads[-2]
        self.assertIs(last.vertex, graph.get_vertex("answered"))
        self.assertEqual(last.result_dict.results["message"].text, "over there")
        self.assertTrue(all(payload.valid for payload in payloads[:-1]))

    def test_a_coordinator_runs_to_completion_and_tells_all(self):
        coordinator, graph = get_default_coordinator(), flows.echo("whole")
        outputs = asyncio.run(coordinator.run_to_completion(graph, inputs=[]))
        self.assertEqual(texts(outputs), [["whole"]])

        async def everything():
            return [item async for item in coordinator.run(graph, inputs=[])]

        items = asyncio.run(everything())
        self.assertIsInstance(items[-1], RunComplete)
        self.assertEqual([result.vertex.id for result in built(items)], ["asked", "answered"])

    def test_graph_arun_has_the_outputs_that_are_asked_for(self):
        graph = flows.echo()
        outputs = asyncio.run(graph.arun([{"input_value": "hello"}], outputs=["asked"], session_id="a-session"))
        self.assertEqual([result.component_id for result in outputs[0].outputs], ["asked"])
        self.assertEqual(outputs[0].outputs[0].results["message"].session_id, "a-session")

    def test_a_flow_as_data_runs_too(self):
        outputs = run({"data": flows.echo("as data").dump()["data"]})[-1].outputs
        self.assertEqual(texts(outputs), [["as data"]])

    def test_what_comes_back_is_what_comes_of_a_run_in_this_process(self):
        """Types and values of results, outputs, artifacts and messages, but for times and ids."""
        coordinator = get_default_coordinator()
        self.addCleanup(setattr, coordinator, "_executor_kind", coordinator._executor_kind)
        coordinator._executor_kind = "in-process"  # of a Loop's items

        async def here(graph):
            return [item async for item in graph.async_start() if hasattr(item, "vertex")]

        def shown(results):
            told = [(one.vertex.id, one.valid, {name: (type(value).__name__, getattr(value, "text", value))
                                                for name, value in (one.result_dict.results or {}).items()},
                     one.result_dict.outputs, [message.message for message in one.result_dict.messages]) for one in results]
            return re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+( UTC|Z|\+00:00)?", "TIME", repr(told))

        for make in (lambda: flows.echo("same"), lambda: flows.components()[0], lambda: flows.loop(2)):
            self.assertEqual(shown(built(run(make()))), shown(asyncio.run(here(make()))))

    def test_events_reach_the_event_manager(self):
        events = queue.Queue()
        run(flows.chain("stream"), event_manager=create_default_event_manager(events), session_id="s")
        told = [json.loads(events.get()[1]) for _ in range(events.qsize())]
        kinds = [one["event"] for one in told]
        self.assertEqual(kinds.count("build_start"), 2)
        self.assertEqual(kinds.count("end_vertex"), 2)
        self.assertEqual("".join(one["data"]["chunk"] for one in told if one["event"] == "token"), "live stream drained")

    def test_the_command_of_lfx_runs_a_flow_by_it(self):
        file = pathlib.Path(flows.MODULES, "echo.json")
        file.write_text(json.dumps({"data": flows.echo().dump()["data"], "name": "echo", "description": ""}, default=str))
        done = subprocess.run([sys.executable, "-W", "ignore", "-m", "lfx", "run", str(file), "by command", "--format", "text"],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("by command", done.stdout)


class Components(Case):
    def test_live_streams_are_read_to_their_end(self):
        for kind, text in (("stream", "live stream drained"), ("generator", "abc")):
            items = run(flows.chain(kind))
            self.assertEqual(texts(items[-1].outputs), [[text]])
            self.assertEqual(text_of(built(items)[0].result_dict.outputs["message"]), text)

    @unittest.skipUnless(FULL, "the interpreter needs an image with langchain_experimental")
    def test_the_interpreter_runs_in_the_guest(self):
        items = run(flows.components()[1])
        self.assertEqual(texts(items[-1].outputs), [["It is 42."]])

    def test_what_is_printed_stands_beside_the_results(self):
        items = run(flows.chain("print"))
        lines = [(one["t"], one["line"]) for one in of_kind(items, dict)]
        self.assertEqual(sorted(lines), [("stderr", "on stderr"), ("stdout", "by a child"), ("stdout", "printed")])
        self.assertEqual(texts(items[-1].outputs), [["said"]])

    def test_what_is_written_where_the_runner_writes_is_no_frame(self):
        items = run(flows.chain("forge"))
        self.assertEqual(texts(items[-1].outputs), [["true"]])
        self.assertIn('token {"t":"done"}', [one["line"] for one in of_kind(items, dict)])

    def test_a_message_brings_no_id_of_a_stored_one(self):
        items = run(flows.echo("stored in the guest"), session_id="a-session")
        message = built(items)[-1].result_dict.results["message"]
        self.assertEqual(message.text, "stored in the guest")
        self.assertIsNone(message.get_id())
        told = encode(Message(text="said", id="6b8e1c9e-6b0f-4a7e-8d53-0e2f7b0f5d11", tokens=3))
        for forged in (told, json.loads(json.dumps(told).replace('"fields": {', '"fields": {"id": "other", "data": {"id": "other"}, ', 1))):
            message = decode(forged)
            self.assertIsNone(message.get_id())
            self.assertEqual((message.text, message.data["tokens"]), ("said", 3))

    def test_a_large_value_comes_whole(self):
        self.assertEqual([[len(text) for text in one] for one in texts(run(flows.chain("large"))[-1].outputs)], [[3 << 20]])

    def test_a_process_that_ends_before_it_is_told_that_it_was_heard(self):
        async def ended():
            machine = Machine(read_server())
            flow = await read_flow(Unit(graph=flows.echo(), inputs=[], runtime_options={}), ())
            kind, _ = await ours._kind(machine, read_server(), read_executor_settings(), flow)
            try:
                await machine.make(kind, 0, 60, (), ())
                machine._process = (await machine._post("/processes", {"cmd": "true"}))["process_id"]
                self.assertEqual([piece.exit_code async for piece in machine.output() if piece is not None], [0])
                await machine.send(b".")
                machine._process = "proc-of-nobody"
                with self.assertRaises(SandboxExecutionError) as caught:
                    await machine.send(b".")
                self.assertNotIsInstance(caught.exception, SandboxUnavailableError)  # since the flow may have begun
            finally:
                await machine.close()

        asyncio.run(ended())

    def test_the_first_event_comes_while_the_second_vertex_works(self):
        async def first():
            async with aclosing(CaissonExecutor().execute(Unit(graph=flows.chain("clock", "sleep"), inputs=[], runtime_options={}))) as items:
                async for item in items:
                    if hasattr(item.payload, "vertex"):
                        return time.time() - float(text_of(item.payload.result_dict.outputs["message"]))

        late = asyncio.run(first())
        print(f"the first event came {late * 1e3:.0f} ms after its vertex was built")
        self.assertLess(late, 1)
        # Leaving ended the guest, and did not wait for its second vertex.
        self.assertEqual(set(live()) - self.before, set())


class Walked(Case):
    """As langflow's own walker does it: Graph.from_payload, sort_vertices, build_vertex with an event manager."""

    async def walk(self, graph):
        manager = create_default_event_manager(asyncio.Queue())
        pending, results = list(graph.sort_vertices()), {}
        await graph.initialize_run()
        while pending:
            vertex = pending.pop(0)
            built = await graph.build_vertex(vertex_id=vertex, user_id=flows.USER_ID, inputs_dict={}, files=[], event_manager=manager)
            results[vertex] = built
            pending += await graph.get_next_runnable_vertices(graph.lock, vertex=built.vertex, cache=False)
        return results

    def count(self, executor):
        """Units that come to an executor of kind caisson."""
        units, coordinator = [], get_default_coordinator()
        original = coordinator._registry.get

        class Counting:
            def execute(self, unit):
                units.append(unit)
                return executor.execute(unit)

        coordinator._registry.get = lambda _: Counting()
        self.addCleanup(setattr, coordinator._registry, "get", original)
        return units


class EditorsBuild(Walked):
    def test_a_loop_has_its_full_result(self):
        units = self.count(CaissonExecutor())
        results = asyncio.run(self.walk(flows.loop(2)))
        self.assertEqual(len(units), 2)  # an item each, and none for the walk itself
        self.assertEqual(results["said"].result_dict.outputs["parsed_text"]["message"], "<item 0>\n<item 1>")

    def test_the_walk_itself_calls_no_executor(self):
        units = self.count(CaissonExecutor())
        asyncio.run(self.walk(flows.echo("here")))
        self.assertEqual(units, [])

    def test_with_payloads_of_another_form_a_loop_is_empty_and_valid(self):
        class Dicts:
            async def execute(self, unit):
                yield StepResult(payload={"t": "step", "event": {"vertex_id": "body"}})
                yield RunComplete(outputs=[])

        self.count(Dicts())
        results = asyncio.run(self.walk(flows.loop(2)))
        self.assertTrue(results["said"].valid)
        self.assertEqual(results["said"].result_dict.outputs["parsed_text"]["message"].strip(), "")

    def test_source_of_a_node_runs_when_a_graph_is_made(self):
        file = pathlib.Path(flows.MODULES, "touched")
        data = json.loads(json.dumps(flows.chain("clock").dump()["data"], default=str))
        code = data["nodes"][0]["data"]["node"]["template"]["code"]
        code["value"] = f"import pathlib\nTOUCHED = pathlib.Path({str(file)!r}).write_text('')\n" + code["value"]
        Graph.from_payload(data, flow_id=flows.FLOW_ID, user_id=flows.USER_ID)
        self.assertTrue(file.exists(), "lfx no longer runs a node's module when it makes a graph; the documents say that it does")


    def test_a_flow_as_a_tool_is_a_machine(self):
        from lfx.base.tools.flow_tool import FlowTool
        from lfx.graph.vertex.base import Vertex
        from lfx.helpers import get_flow_inputs
        FlowTool.model_rebuild(_types_namespace={"Graph": Graph, "Vertex": Vertex})  # lfx 1.12 leaves it undefined
        units = self.count(CaissonExecutor())
        graph = flows.from_data(flows.echo("from a tool", "ChatInput-in", "ChatOutput-out"))
        tool = FlowTool(name="inner", description="Says something.", graph=graph, flow_id=flows.FLOW_ID, user_id=flows.USER_ID,
                        session_id="s", inputs=get_flow_inputs(graph))
        said = asyncio.run(tool.ainvoke({"chat_input": "asked"}))
        self.assertEqual(len(units), 1)
        self.assertIn("from a tool", said)


class Faults(Case):
    def test_a_flow_that_fails_says_where(self):
        with self.assertRaisesRegex(SandboxExecutionError, "(?s)failed in the guest.*on purpose"):
            run(flows.chain("fail"))

    def test_a_component_that_ends_the_process_is_told(self):
        with self.assertRaisesRegex(SandboxExecutionError, r"while own-0 was built \(code 5\)"):
            run(flows.chain("exit"))

    def test_a_flow_that_takes_too_long_is_told_so(self):
        self.variable("CAISSON_EXECUTOR_TIMEOUT_SECONDS", "2")
        with self.assertRaisesRegex(SandboxExecutionError, "CAISSON_EXECUTOR_TIMEOUT_SECONDS"):
            run(flows.chain("sleep"))

    def test_a_flood_of_output_is_cut_and_said(self):
        items = run(flows.chain("flood"))
        told = of_kind(items, dict)
        [dropped] = [one for one in told if one["t"] == "dropped"]
        self.assertEqual(dropped["what"], "stdout")
        self.assertGreater(dropped["bytes"], 20 << 20)
        self.assertLess(sum(len(one["line"]) for one in told if one["t"] == "stdout"), (1 << 20) + 1)
        self.assertEqual(texts(items[-1].outputs), [["said"]])

    def test_a_value_larger_than_a_run_may_bring_back_ends_it(self):
        with self.assertRaisesRegex(SandboxExecutionError, "MiB"):
            run(flows.chain("huge"))

    @unittest.skipUnless(FULL, "namespaces have no limit of memory")
    def test_memory_that_is_not_enough_is_told(self):
        with self.assertRaisesRegex(SandboxExecutionError, "CAISSON_EXECUTOR_SHAPE"):
            run(flows.chain("memory"))

    @unittest.skipUnless(FULL, "all guests of namespaces have this environment's lfx")
    def test_an_image_without_lfx_is_told(self):
        self.variable("CAISSON_EXECUTOR_ROOTFS", "devbox:1")
        with self.assertRaisesRegex(SandboxUnavailableError, "devbox:1 has no lfx.*langflow:1"):
            run(flows.echo())

    def test_a_module_that_is_missing_is_named_before_the_run(self):
        data = json.loads(json.dumps(flows.chain("print").dump()["data"], default=str))
        code = data["nodes"][0]["data"]["node"]["template"]["code"]
        code["value"] = "import no_such_module_here.inner\n" + code["value"]
        with self.assertRaisesRegex(SandboxUnavailableError, r"nothing has run: no_such_module_here \(for own-0\)"):
            run(data)

    def test_a_wrong_key_and_a_server_that_is_down(self):
        self.variable("CAISSON_SANDBOX_API_KEY", "csk_wrong")
        with self.assertRaisesRegex(SandboxUnavailableError, "401.*CAISSON_SANDBOX_API_KEY"):
            run(flows.echo())
        self.variable("CAISSON_SANDBOX_BASE_URL", "http://127.0.0.1:9")
        with self.assertRaisesRegex(SandboxUnavailableError, "cannot be reached"):
            run(flows.echo())

    def test_what_is_no_caisson_server_is_told(self):
        class Another(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"<html>hello</html>")

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Another) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.variable("CAISSON_SANDBOX_BASE_URL", f"http://127.0.0.1:{server.server_port}")
            with self.assertRaisesRegex(SandboxUnavailableError, "is no Caisson server; check CAISSON_SANDBOX_BASE_URL"):
                run(flows.echo())
            server.shutdown()

    def test_settings_that_cannot_be_read_name_their_variable(self):
        for name, text in (("PIP", "'a b"), ("POOL", "9" * 5000), ("TIMEOUT_SECONDS", "0")):
            with self.subTest(name):
                self.variable(f"CAISSON_EXECUTOR_{name}", text)
                with self.assertRaisesRegex(SandboxUnavailableError, f"CAISSON_EXECUTOR_{name} "):
                    read_executor_settings()
                del os.environ[f"CAISSON_EXECUTOR_{name}"]

    def test_who_is_cancelled_in_mid_run_leaves_no_guest(self):
        async def cancelled():
            task = asyncio.ensure_future(collect(flows.chain("sleep")))
            while not task.done() and not set(live()) - self.before:
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            self.assertFalse(task.done())
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        self.assertEqual(set(live()) - self.before, set())

    def test_a_worker_that_is_killed_leaves_what_the_server_deletes_in_time(self):
        program = ("import asyncio, sys; sys.path.insert(0, sys.argv[1])\nimport executor_flows as flows\n"
                   "from caisson_langflow.executor import CaissonExecutor\nfrom lfx.execution.types import Unit\n"
                   "async def run():\n    async for _ in CaissonExecutor().execute(Unit(graph=flows.chain('sleep'))): pass\n"
                   "asyncio.run(run())")
        worker = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, str(pathlib.Path(__file__).parent)])
        while not (mine := set(live()) - self.before):
            self.assertIsNone(worker.poll())
            time.sleep(0.2)
        worker.kill()
        worker.wait()
        [sandbox] = mine
        view = httpx.get(f"{SERVICE.url}/v1/sandboxes/{sandbox}", headers={"X-Api-Key": SERVICE.key}).json()["data"]
        self.assertTrue(view.get("delete_at") or view.get("delete_after_seconds"), view)
        httpx.delete(f"{SERVICE.url}/v1/sandboxes/{sandbox}", headers={"X-Api-Key": SERVICE.key}, timeout=60)


class Hostile(unittest.TestCase):
    """A guest that says what no runner says."""

    def read(self, *told):
        """What a reader makes of these frames."""
        self.reader = ours._Reader(Flow(None, {"vertices": ["one"]}, [{"id": "one"}]), "token", None)
        lines = [ours.READY, *(b"token " + (one if isinstance(one, bytes) else json.dumps(one).encode()) for one in told)]
        return list(self.reader.take(b"\n".join(lines) + b"\n"))

    def result(self, value, texts=()):
        return {"t": "outputs", "at": 0, "texts": list(texts), "outputs": [{"results": value}]}

    def message(self, **fields):
        return {"$": "message", "value": {"fields": fields, "text": "said", "data": {}}}

    def refused(self, *told):
        with self.assertRaises(SandboxExecutionError) as caught:
            self.read(*told)
            ours._settle(self.reader, [])
        self.assertNotIsInstance(caught.exception, SandboxUnavailableError)
        return str(caught.exception)

    def test_no_file_of_the_host_is_opened_for_a_message(self):
        opened = []
        self.addCleanup(setattr, lfx_message, "is_image_file", lfx_message.is_image_file)
        lfx_message.is_image_file = opened.append
        self.read(self.result({"message": self.message(files=["/dev/stdin", {"path": "a/b.png", "url": None}])}))
        [result] = self.reader.outputs[0]
        self.assertEqual(opened, [])
        self.assertEqual(result.results["message"].files, ["/dev/stdin", Image(path="a/b.png")])
        self.assertIn("not well formed", self.refused(self.result({"message": self.message(files=[7])})))

    def test_a_table_has_the_cells_that_came(self):
        def table(columns, rows):
            return self.result({"table": {"$": "table", "value": {"columns": columns, "rows": rows, "text_key": "text",
                                                                  "default_value": ""}}})
        self.read(table(["a", "b"], [[1, 2], [3, 4]]))
        self.assertEqual(self.reader.outputs[0][0].results["table"].to_numpy().tolist(), [[1, 2], [3, 4]])
        for rows in ([[1, 2], [3]], [[]], [[1, 2, 3]], [{"a": 1, "b": 2}], ["ab"]):
            self.assertIn("not well formed", self.refused(table(["a", "b"], rows)))
        self.assertIn("not well formed", self.refused(table("ab", [[1, 2]])))

    def test_a_text_that_is_referred_to_without_end(self):
        told = self.result([{"$": "text", "value": 0}] * 1000, ["x" * (1 << 20)])
        self.assertIn("256 MiB", self.refused(told))
        self.read(self.result([{"$": "text", "value": 0}] * 10, ["x" * (1 << 20)]))

    def test_numbers_and_forms_that_are_none(self):
        for told in ({"t": "outputs", "at": float("inf"), "texts": [], "outputs": []}, {"t": "dropped", "what": "", "bytes": float("inf")},
                     {"t": "outputs", "at": 0, "texts": {}, "outputs": [{"$": "text", "value": 0}]}, self.result(7) | {"outputs": [7]},
                     {"t": "step", "id": ["one"], "texts": []}, {"t": "outputs"}, [], None, 7, b"\xff", b"{", b"[" * 100000,
                     b'{"t":"outputs","at":1e999,"texts":[],"outputs":[]}', {"t": "fatal", "errors": 7}, {"t": "missing", "modules": {"a": 7}},
                     {"t": "outputs", "at": 0, "texts": [], "outputs": [{"outputs": None, "artifacts": {"a": {"type": "b"}}}]}):
            with self.subTest(told=str(told)[:80]):
                self.assertIn("not well formed", self.refused(told))
        self.assertIn("unknown", self.refused({"t": "fatal", "errors": []}))
        # "Nothing has run" is believed as long as nothing was seen to run.
        self.assertIn("not well formed", self.refused({"t": "start", "id": "one"}, {"t": "missing", "modules": {}}))

    def test_a_long_line_in_small_pieces_takes_no_longer(self):
        self.read()
        piece, begin = b"x" * 64, time.process_time()
        for _ in range(40000):
            list(self.reader.take(piece))
        self.assertLess(time.process_time() - begin, 2)
        self.assertEqual(list(self.reader.take(b"\n\ny\n")), [{"t": "stdout", "line": "x" * 2000}, {"t": "stdout", "line": "y"}])


class Secrets(Case):
    def flow(self):
        data = json.loads(json.dumps(flows.chain("print").dump()["data"], default=str))
        field = data["nodes"][0]["data"]["node"]["template"]["input_value"]
        field |= {"load_from_db": True, "value": "THE_VARIABLE"}
        code = data["nodes"][0]["data"]["node"]["template"]["code"]
        code["value"] = code["value"].replace("Message(text='said')", "Message(text=self.input_value[::-1])")
        return Graph.from_payload(data, flow_id=flows.FLOW_ID, user_id=flows.USER_ID)

    def test_a_variable_stays_unless_it_is_allowed_by_name(self):
        self.variable("THE_VARIABLE", "s3cr3t-value")
        with self.assertRaisesRegex(SandboxUnavailableError, r"THE_VARIABLE \(Own, field input_value\).*CAISSON_EXECUTOR_VARIABLES"):
            run(self.flow())
        self.variable("CAISSON_EXECUTOR_VARIABLES", "OTHER, THE_VARIABLE")
        with self.assertLogs(level=logging.DEBUG) as logs:
            logging.getLogger("caisson_langflow").setLevel(logging.DEBUG)
            logging.getLogger("caisson_langflow").debug("one line at least")
            self.assertEqual(texts(run(self.flow())[-1].outputs), [["s3cr3t-value"[::-1]]])
        self.assertNotIn("s3cr3t-value", "\n".join(logs.output))

    def test_a_run_s_own_variables_win(self):
        self.variable("CAISSON_EXECUTOR_VARIABLES", "THE_VARIABLE")
        graph = self.flow()
        graph.context["request_variables"] = {"THE_VARIABLE": "of the run", "UNASKED": "x"}
        self.assertEqual(texts(run(graph)[-1].outputs), [["of the run"[::-1]]])


class Network(unittest.TestCase):
    def rules(self, nodes, **settings):
        from caisson_langflow.executor_settings import read_executor_settings
        from caisson_langflow.machines import Driver
        driver = Driver(**{"name": "x", "isolation": "y", "emulated": False, "deny_all": True, "addresses": True, "host_names": True}
                        | settings)
        return ours._rules(read_executor_settings(), driver, nodes)

    def setUp(self):
        if before := os.environ.pop("CAISSON_EXECUTOR_EGRESS", None):
            self.addCleanup(os.environ.__setitem__, "CAISSON_EXECUTOR_EGRESS", before)

    NODES = [{"id": "m-1", "data": {"type": "OpenAIModel", "node": {}}}, {"id": "c-1", "data": {"type": "ChatInput", "node": {}}},
             {"id": "a-1", "data": {"type": "Agent", "node": {"template": {"model": {"value": [{"provider": "Anthropic"}]}}}}}]

    def test_providers_that_are_named_are_opened_and_no_more(self):
        self.assertEqual(self.rules(self.NODES), (("api.anthropic.com", "api.openai.com"), []))
        self.assertEqual(self.rules([]), (("240.0.0.0/4",), []))

    def test_an_unknown_component_gets_nothing_and_is_named(self):
        self.assertEqual(self.rules([{"id": "z-9", "data": {"type": "Zebra", "node": {}}}]), (("240.0.0.0/4",), ["Zebra (z-9)"]))

    def test_a_driver_that_cannot_keep_it_runs_nothing(self):
        with self.assertRaisesRegex(SandboxUnavailableError, "does not enforce rules by name"):
            self.rules(self.NODES, host_names=False)
        with self.assertRaisesRegex(SandboxUnavailableError, "cannot deny all"):
            self.rules([], deny_all=False)

    def test_what_the_operator_says_wins(self):
        for said, rules in (("*", ("*",)), (",", ("240.0.0.0/4",)), ("10.0.0.0/8, a.example.com", ("10.0.0.0/8", "a.example.com"))):
            os.environ["CAISSON_EXECUTOR_EGRESS"] = said
            try:
                self.assertEqual(self.rules(self.NODES), (rules, []))
            finally:
                del os.environ["CAISSON_EXECUTOR_EGRESS"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
