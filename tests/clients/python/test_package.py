# SPDX-License-Identifier: Apache-2.0
"""The package `caisson` without Orcheo: its own classes, runs, events, asyncio, threads, forks, the end of the process; and its wheel,
built by pip and used from an empty environment. usage: test_package.py BUILD"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = ROOT / "clients" / "python"
os.environ["CAISSON_LIBRARY"] = str(BUILD / "lib" / "libcaisson.so")
os.environ["CAISSON_WORKERS"] = "2"
sys.path.insert(0, str(SOURCE / "src"))
sys.dont_write_bytecode = True

import caisson

EXAMPLE = ROOT / "examples" / "grade"
INPUTS = json.loads((EXAMPLE / "input.json").read_text())
EXPECTED = json.loads((EXAMPLE / "expected.json").read_text())["node_results"]
ENDLESS = "while True:\n    pass\nreturn {}"
EMPTY = {"state": {}, "config": {}, "configurable": {}}


def example():
    return caisson.compile_workflow_to_ir((EXAMPLE / "workflow.py").read_text())


def endless_ir():
    node = {"kind": "code", "id": "c", "config": {}, "injected": [], "body": ENDLESS}
    return {"schema_version": 1, "entrypoint": "c", "nodes": [node], "edges": [{"source": "__start__", "target": "c"}]}


SLOW = {"limits": {"fuel": 0, "wall_clock_ms": 20_000}}


def in_child(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SOURCE / "src")} | environment,
                          capture_output=True, text=True, timeout=120)


class Compiling(unittest.TestCase):
    def test_an_ir_and_what_it_dumps(self):
        ir = example()
        self.assertEqual(ir.entrypoint, "grade")
        self.assertEqual(caisson.check_ir(ir).ir, ir.model_dump())
        self.assertEqual(caisson.check_ir(json.dumps(ir.model_dump())).content_id,
                         caisson.compile_source((EXAMPLE / "workflow.py").read_bytes()).content_id)
        with self.assertRaises(AttributeError):
            ir.entrypoint = "other"

    def test_errors_have_orcheos_form(self):
        with self.assertRaises(caisson.WorkflowValidationError) as caught:
            caisson.compile_workflow_to_ir("from orcheo import x\nimport os\n")
        error = caught.exception
        self.assertIsInstance(error, caisson.IRError)
        self.assertIsInstance(error, ValueError)
        self.assertEqual((error.lineno, str(error)), (2, f"line 2: {error.raw_message}"))
        self.assertEqual(error.code, "workflow.import_not_allowed")
        with self.assertRaises(caisson.IRValidationError) as caught:
            caisson.compile_workflow_to_ir("def orcheo_workflow():\n    g = StateGraph(State)\n    g.add_node('a', NoOpTaskNode())\n"
                                           "    g.add_edge('a', 'nowhere')\n    g.set_entry_point('a')\n    return g\n")
        self.assertTrue(caught.exception.code.startswith("ir."))
        with self.assertRaises(caisson.CaissonError) as caught:
            caisson.compile_source("", strictness=1)
        self.assertEqual(caught.exception.code, "library.options")

    def test_text_that_is_no_unicode(self):
        for source in ("x = '\ud800'", "\0", b"\xff"):
            with self.assertRaises(caisson.WorkflowValidationError):
                caisson.compile_workflow_to_ir(source)


class Running(unittest.TestCase):
    def test_a_run_and_its_events(self):
        heard = []
        told = caisson.run_ir(example(), INPUTS, on_event=heard.append)
        self.assertTrue(told.ok)
        self.assertEqual(told.state["node_results"], EXPECTED)
        self.assertEqual(heard[-1]["event"], "run_finished")
        with caisson.shared_engine().events(example(), INPUTS) as events:
            names = [event["event"] for event in events]
        self.assertEqual(names, [event["event"] for event in heard])
        self.assertEqual(events.result.state["node_results"], EXPECTED)

    def test_an_event_loop_that_is_left_early_ends_its_run(self):
        begun = time.monotonic()
        with caisson.shared_engine().events(endless_ir(), **SLOW) as events:
            next(events)
        self.assertEqual(events.result.status, "cancelled")
        forgotten = caisson.shared_engine().events(endless_ir(), **SLOW)
        next(forgotten)
        del forgotten
        self.assertLess(time.monotonic() - begun, 15)

    def test_what_a_listener_raises_comes_out(self):
        def refuse(event):
            raise KeyError(event["event"])

        with self.assertRaisesRegex(KeyError, "run_started"):
            caisson.run_ir(example(), INPUTS, on_event=refuse)

    def test_what_is_refused_is_raised(self):
        with self.assertRaises(caisson.CaissonError) as caught:
            caisson.run_ir({"schema_version": 1}, {})
        self.assertEqual(caught.exception.code, "ir.malformed")
        self.assertTrue(caught.exception.diagnostics)
        with self.assertRaises(caisson.CaissonError):
            list(caisson.shared_engine().events({}, {}))

    def test_asyncio(self):
        async def all_of_it():
            told = await asyncio.gather(*(caisson.arun_ir(example(), INPUTS) for _ in range(4)))
            engine = caisson.shared_engine()
            async with engine.aevents(example(), INPUTS) as events:
                count = len([event async for event in events])
            task = asyncio.create_task(engine.arun(endless_ir(), **SLOW))
            await asyncio.sleep(0.3)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return [each.status for each in told], count, events.result.status

        self.assertEqual(asyncio.run(all_of_it()), (["succeeded"] * 4, 8, "succeeded"))

    def test_a_cancel_handle(self):
        cancel = caisson.Cancel()
        threading.Timer(0.2, cancel.request).start()
        self.assertEqual(caisson.shared_engine().run(endless_ir(), cancel=cancel, **SLOW).status, "cancelled")

    def test_a_recorded_run(self):
        ask = {"schema_version": 1, "entrypoint": "ask", "edges": [{"source": "__start__", "target": "ask"}],
               "nodes": [{"kind": "builtin", "id": "ask", "type": "HumanInputNode", "config": {"prompt": "Well?"}}]}
        with tempfile.TemporaryDirectory() as folder, caisson.Engine(store=f"{folder}/runs.db") as engine:
            asked = engine.run(ask)
            self.assertEqual((asked.status, asked.questions[0]["node_path"]), ("interrupted", "ask"))
            self.assertTrue(engine.resume(asked.run_id, {"ask": "yes"}).ok)

    def test_a_closed_engine(self):
        engine = caisson.Engine()
        engine.close()
        engine.close()
        with self.assertRaisesRegex(caisson.CaissonError, "closed"):
            engine.describe()

    def test_a_runner_by_itself(self):
        runner = caisson.MicroPythonSandboxRunner()
        self.assertEqual(runner.run("return {'a': self.x}", EMPTY | {"configurable": {"x": 2}}), {"update": {"a": 2}})
        self.assertEqual(runner.describe()["package"], "caisson")
        with self.assertRaisesRegex(caisson.SandboxLimitError, "CodeNode 'n': execution exceeded"):
            caisson.MicroPythonSandboxRunner(fuel=1_000_000).run(ENDLESS, EMPTY, node_id="n")
        larger = caisson.MicroPythonSandboxRunner(memory_bytes=512 << 20)
        self.assertEqual(larger.run("return {}", EMPTY), {"update": {}})


class Processes(unittest.TestCase):
    def test_a_forked_child_gets_an_engine_of_its_own(self):
        ended = in_child(
            "import caisson, os\n"
            "r = caisson.MicroPythonSandboxRunner()\n"
            f"e = {EMPTY!r}\n"
            "assert r.run('return {}', e) == {'update': {}}\n"
            "engine = caisson.Engine()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    assert r.run('return {}', e) == {'update': {}}\n"
            "    try:\n"
            "        engine.describe()\n"
            "    except caisson.CaissonError as error:\n"
            "        os._exit(7 if 'process' in str(error) else 1)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
            "assert r.run('return {}', e) == {'update': {}}\n"
            "engine.close()\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_the_process_ends_while_runs_and_events_are_open(self):
        ended = in_child(
            "import caisson, threading, time\n"
            f"ir = {endless_ir()!r}\n"
            f"events = caisson.shared_engine().events(ir, **{SLOW!r})\n"
            "next(events)\n")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_an_interrupt_ends_a_run(self):
        ended = in_child(
            "import caisson, os, signal, threading\n"
            "threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()\n"
            "try:\n"
            f"    caisson.run_ir({endless_ir()!r}, **{SLOW!r})\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n")
        self.assertEqual((ended.returncode, ended.stdout), (0, "interrupted\n"), ended.stderr)

    def test_a_library_that_is_not_there(self):
        ended = in_child("import caisson\n"
                         "try:\n    caisson.version()\n"
                         "except caisson.CaissonError as error:\n    print(error.code, 'CAISSON_LIBRARY' in str(error))\n",
                         CAISSON_LIBRARY="/no/such/libcaisson.so")
        self.assertEqual(ended.stdout, "library.missing True\n", ended.stderr)

    def test_orcheo_that_is_not_there(self):
        ended = in_child("import caisson.orcheo\n"
                         "try:\n    caisson.orcheo.install()\nexcept ImportError:\n    print('none')\n")
        self.assertEqual(ended.stdout, "none\n", ended.stderr)


class Wheel(unittest.TestCase):
    def build(self, folder, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CAISSON_")}
        return subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--wheel-dir", folder, str(SOURCE)],
                              env=clean | environment, capture_output=True, text=True, timeout=300)

    def test_it_works_in_an_empty_environment(self):
        with tempfile.TemporaryDirectory(prefix="caisson-wheel-") as folder:
            built = self.build(folder, CAISSON_BUILD=str(BUILD))
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            [wheel] = pathlib.Path(folder).glob("caisson-*.whl")
            self.assertRegex(wheel.name, r"^caisson-[\d.]+-py3-none-linux_\w+\.whl$")
            with zipfile.ZipFile(wheel) as archive:
                self.assertTrue({"caisson/_native/lib/libcaisson.so", "caisson/_native/bin/caisson-isolate", "caisson/py.typed"}
                                <= set(archive.namelist()))
                # What was built where is nobody's business.
                library = archive.read("caisson/_native/lib/libcaisson.so") + archive.read("caisson/_native/bin/caisson-isolate")
            print(f"wheel of {wheel.stat().st_size >> 10} KiB", flush=True)
            self.assertNotIn(b"/wasmtime/lib:", library)
            environment = pathlib.Path(folder, "venv")
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            python = environment / "bin" / "python"
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
            code = (f"import caisson, json\nir = caisson.compile_workflow_to_ir(open({str(EXAMPLE / 'workflow.py')!r}).read())\n"
                    f"print(json.dumps(caisson.run_ir(ir, {INPUTS!r}).state['node_results']))\n"
                    "import caisson.library; assert '_native' in caisson.library.library_path()\n")
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("CAISSON_", "PYTHON"))}
            ran = subprocess.run([python, "-c", code], cwd=folder, env=clean, capture_output=True, text=True, timeout=120)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual(json.loads(ran.stdout), EXPECTED)

    def test_without_a_build_directory_it_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            for environment in ({}, {"CAISSON_BUILD": folder}):
                built = self.build(folder, **environment)
                self.assertNotEqual(built.returncode, 0)
                self.assertIn("./dev build release", built.stdout + built.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
