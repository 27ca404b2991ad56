# SPDX-License-Identifier: Apache-2.0
"""libcaisson.so by its headers: what it shows, programs in C and C++ that use it, hostile arguments, and that engines leave nothing
behind. usage: test_library.py BUILD CC CXX"""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, CC, CXX = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
LIBRARY = BUILD / "lib" / "libcaisson.so"
EXAMPLE = ROOT / "examples" / "grade"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT}/include"]

library = ctypes.CDLL(str(LIBRARY))
ON_EVENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p
for name, arguments in {
    "compile": [ctypes.c_char_p, SIZE, ctypes.c_char_p],
    "check_ir": [ctypes.c_char_p, SIZE, ctypes.c_char_p],
    "engine_create": [ctypes.c_char_p, ctypes.POINTER(POINTER)],
    "engine_describe": [POINTER],
    "run": [POINTER, ctypes.c_char_p, SIZE, ctypes.c_char_p, SIZE, ctypes.c_char_p, POINTER, ON_EVENT, POINTER],
    "resume": [POINTER, ctypes.c_char_p, ctypes.c_char_p, SIZE, ctypes.c_char_p, POINTER, ON_EVENT, POINTER],
    "call": [POINTER, ctypes.c_char_p, SIZE, ctypes.c_char_p, SIZE, ctypes.c_char_p, POINTER],
    "cancel_create": [],
}.items():
    function = getattr(library, f"caisson_{name}")
    function.argtypes, function.restype = arguments, POINTER
for name in ("free", "engine_destroy", "cancel_request", "cancel_destroy"):
    getattr(library, f"caisson_{name}").argtypes = [POINTER]
    getattr(library, f"caisson_{name}").restype = None


def text_of(pointer):
    text = ctypes.string_at(pointer).decode()
    library.caisson_free(pointer)
    return text


def answer(pointer):
    text = text_of(pointer)
    value = json.loads(text)
    assert text.startswith('{"ok":true' if value["ok"] else '{"ok":false'), text[:20]
    return value


def options(value):
    return None if value is None else json.dumps(value).encode()


def compile_source(source, given=None):
    data = source if isinstance(source, bytes) else source.encode()
    return answer(library.caisson_compile(data, len(data), options(given)))


class Engine:
    def __init__(self, **given):
        self.handle = POINTER()
        self.made = answer(library.caisson_engine_create(options(given), ctypes.byref(self.handle)))

    def __enter__(self):
        assert self.made["ok"], self.made
        return self

    def __exit__(self, *_):
        library.caisson_engine_destroy(self.handle)

    def run(self, ir, inputs, given=None, cancel=None, on_event=None):
        ir, inputs = json.dumps(ir).encode(), json.dumps(inputs).encode()
        return answer(library.caisson_run(self.handle, ir, len(ir), inputs, len(inputs), options(given), cancel,
                                          on_event or ON_EVENT(), None))

    def resume(self, run_id, answers, given=None):
        data = json.dumps(answers).encode()
        return answer(library.caisson_resume(self.handle, run_id.encode(), data, len(data), options(given), None, ON_EVENT(), None))

    def call(self, body, inputs=None, given=None, cancel=None):
        body, inputs = body.encode(), json.dumps(inputs or {}).encode()
        return answer(library.caisson_call(self.handle, body, len(body), inputs, len(inputs), options(given), cancel))


def example():
    compiled = compile_source((EXAMPLE / "workflow.py").read_text())
    return compiled["ir"], json.loads((EXAMPLE / "input.json").read_text())


def code_ir(body):
    node = {"kind": "code", "id": "c", "config": {}, "injected": [], "body": body}
    return {"schema_version": 1, "entrypoint": "c", "nodes": [node], "edges": [{"source": "__start__", "target": "c"}]}


QUESTION = {"schema_version": 1, "entrypoint": "ask", "edges": [{"source": "__start__", "target": "ask"}],
            "nodes": [{"kind": "builtin", "id": "ask", "type": "HumanInputNode", "config": {"prompt": "Well?"}}]}


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def children():
    found = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        found += (task / "children").read_text().split()
    return found


class Headers(unittest.TestCase):
    def test_only_the_functions_of_the_header_are_exported(self):
        header = (ROOT / "include" / "caisson.h").read_text()
        declared = set(re.findall(r"CAISSON_EXPORT [^;(]*?\b(caisson_\w+)\(", header))
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
        self.assertEqual({line.split()[-1] for line in listed.splitlines()}, declared)
        self.assertGreater(len(declared), 10)

    def compiled(self, compiler, standard, source):
        folder = tempfile.TemporaryDirectory(prefix="caisson-library-")
        self.addCleanup(folder.cleanup)
        program = f"{folder.name}/program"
        subprocess.run([compiler, f"-std={standard}", *STRICT, ROOT / "tests/library" / source, f"-L{BUILD}/lib", "-lcaisson",
                        f"-Wl,-rpath,{BUILD}/lib", "-o", program], check=True)
        ended = subprocess.run([program, EXAMPLE / "workflow.py", EXAMPLE / "input.json"], capture_output=True, text=True,
                               timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return json.loads(ended.stdout), ended.stderr

    def test_a_c_program_compiles_and_runs_the_example(self):
        told, events = self.compiled(CC, "c99", "run_example.c")
        self.assertEqual(told["result"]["state"]["node_results"], json.loads((EXAMPLE / "expected.json").read_text())["node_results"])
        names = [json.loads(line)["event"] for line in events.splitlines()]
        self.assertEqual((names[0], names[-1]), ("run_started", "run_finished"))

    def test_a_cpp_program_compiles_and_runs_the_example(self):
        told, _ = self.compiled(CXX, "c++17", "run_example.cc")
        self.assertEqual(told["result"]["status"], "succeeded")


class Arguments(unittest.TestCase):
    def refused(self, told, code, words=""):
        self.assertFalse(told["ok"], told)
        self.assertEqual(told["error"]["code"], code)
        self.assertIn(words, told["error"]["message"])

    def test_diagnostics_of_a_source(self):
        told = compile_source("import os\nimport sys\n")
        self.refused(told, "workflow.import_not_allowed", "'os'")
        self.assertEqual([d["line"] for d in told["diagnostics"][:2]], [1, 2])
        for hostile in (b"", b"\0", b"\xff\xfe", b"(" * 100_000, b"\xed\xa0\x80"):
            self.assertFalse(compile_source(hostile)["ok"])

    def test_null_is_refused_and_never_followed(self):
        self.assertFalse(answer(library.caisson_compile(None, 0, None))["ok"])
        self.refused(answer(library.caisson_engine_describe(None)), "library.options", "NULL")
        self.refused(answer(library.caisson_engine_create(None, None)), "library.options", "NULL")
        self.refused(answer(library.caisson_call(None, None, 0, None, 0, None, None)), "library.options", "NULL")
        for name in ("free", "engine_destroy", "cancel_request", "cancel_destroy"):
            getattr(library, f"caisson_{name}")(None)

    def test_options_that_are_not_known_are_refused(self):
        self.refused(compile_source("", {"strickt": True}), "library.options", "'strickt'")
        self.refused(compile_source("", {"strict": 1}), "library.options", "'strict'")
        self.refused(Engine(limits={"fule": 1}).made, "library.options", "'limits.fule'")
        self.refused(Engine(workers=-1).made, "library.options", "'workers'")
        self.refused(Engine(durability="full").made, "library.options", "'store'")
        self.refused(Engine(isolate="/no/such/program").made, "cli.isolate_missing", "/no/such/program")
        handle = POINTER()
        self.refused(answer(library.caisson_engine_create(b"[", ctypes.byref(handle))), "json.syntax")
        self.assertIsNone(handle.value)

    def test_options_of_runs_and_calls(self):
        ir, inputs = example()
        with Engine(workers=1) as engine:
            self.refused(engine.run(ir, [], None), "library.options", "object")
            self.refused(engine.run(ir, inputs, {"limits": {"memory_bytes": 1 << 40}}), "library.options", "memory_bytes")
            self.refused(engine.run(ir, inputs, {"limits": {"heap_bytes": 4096}}), "library.options", "heap_bytes")
            self.refused(engine.run(ir, inputs, {"allow_endpoints": ["example.com:80"]}), "library.options", "allow_endpoints")
            self.refused(engine.run(ir, inputs, {"node_runtimes": {"grade": "java"}}), "library.options", "node_runtimes.grade")
            self.refused(engine.run({}, inputs), "ir.malformed")
            self.refused(engine.run(code_ir("import os\nreturn {}"), {}), "body.import_not_allowed")
            self.refused(engine.resume("x", {}), "library.options", "'store'")
            self.refused(engine.call("return {}", {"state": 1}), "library.options", "'state'")

    def test_the_artifact_is_looked_for_where_the_option_says(self):
        with tempfile.TemporaryDirectory() as empty, Engine(workers=1, data_dir=empty) as engine:
            self.refused(engine.call("return {}"), "wasm.artifact")


class Running(unittest.TestCase):
    def test_kinds_of_outcomes(self):
        with Engine(workers=1) as engine:
            kinds = {
                "value": ("return {'a': [1, None, 'x'], 'b': self.x, 'c': state['n']}", {}),
                "raised": ("y = 1\nraise ValueError('no')\nreturn y", {}),
                "fuel": ("while True:\n    pass\nreturn {}", {"limits": {"fuel": 10_000_000}}),
                "wall_clock": ("while True:\n    pass\nreturn {}", {"limits": {"fuel": 0, "wall_clock_ms": 200}}),
                "memory": ("a = []\nwhile True:\n    a.append('x' * 10000 + str(len(a)))\nreturn {}", {"limits": {"fuel": 0}}),
                "output": ("return {'a': 'x' * 5000}", {"limits": {"output_bytes": 1000}}),
                "protocol": ("return {'a': {1, 2}}", {}),
                "exited": ("raise SystemExit(3)\nreturn {}", {}),
            }
            for kind, (body, given) in kinds.items():
                told = engine.call(body, {"configurable": {"x": 1 << 70}, "state": {"n": 1.5}}, given)
                self.assertTrue(told["ok"], told)
                self.assertEqual(told["outcome"]["kind"], kind, told)
                if kind == "value":
                    self.assertEqual(told["outcome"]["value"], {"a": [1, None, "x"], "b": 1 << 70, "c": 1.5})
                if kind == "raised":
                    self.assertEqual(told["outcome"]["error_type"], "ValueError")
                    self.assertEqual(told["outcome"]["traceback"][-1]["line"], 2)
            for body in ("x = 1", "  x = 1  # end", "# nothing", "", "if 1:\n\tx = 1"):
                self.assertIsNone(engine.call(body)["outcome"]["value"], body)
            self.assertEqual(engine.call("return [1]")["outcome"]["value"], [1])
            self.assertEqual(engine.call("return self.gone")["outcome"]["error_type"], "AttributeError")

    def test_a_listener_hears_every_event_and_may_cancel(self):
        ir, inputs = example()
        heard = []

        @ON_EVENT
        def hear(_, line, size):
            heard.append(json.loads(line[:size]))
            return 0

        @ON_EVENT
        def refuse(*_):
            return 1

        with Engine(workers=1) as engine:
            told = engine.run(ir, inputs, {"run_id": "mine"}, on_event=hear)
            self.assertEqual((told["result"]["status"], told["result"]["run_id"]), ("succeeded", "mine"))
            self.assertEqual([event["sequence"] for event in heard], list(range(1, len(heard) + 1)))
            self.assertEqual(engine.run(ir, inputs, on_event=refuse)["result"]["status"], "cancelled")

    def test_cancelling_from_another_thread(self):
        endless = "while True:\n    pass\nreturn {}"
        given = {"limits": {"fuel": 0, "wall_clock_ms": 5_000}}
        with Engine(workers=2) as engine:
            self.assertTrue(engine.call("return {}")["ok"])
            for act in (lambda cancel: engine.run(code_ir(endless), {}, given, cancel),
                        lambda cancel: engine.call(endless, {}, given, cancel)):
                cancel = library.caisson_cancel_create()
                timer = threading.Timer(0.2, library.caisson_cancel_request, [cancel])
                timer.start()
                begun = time.monotonic()
                told = act(cancel)
                self.assertLess(time.monotonic() - begun, 3)
                timer.join()
                library.caisson_cancel_destroy(cancel)
                status = told["result"]["status"] if told["ok"] else told["error"]["code"]
                self.assertIn(status, ("cancelled", "isolate.worker_lost"))

    def test_many_threads_share_an_engine(self):
        ir, inputs = example()
        told = []
        with Engine(workers=2) as engine:
            threads = [threading.Thread(target=lambda: told.append(engine.run(ir, inputs))) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual([each["result"]["status"] for each in told], ["succeeded"] * 16)

    def test_a_recorded_run_is_gone_on_with_by_another_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            with Engine(store=f"{folder}/runs.db") as engine:
                asked = engine.run(QUESTION, {})["result"]
                self.assertEqual(asked["status"], "interrupted")
                self.assertEqual(asked["questions"][0]["node_path"], "ask")
            with Engine(store=f"{folder}/runs.db", durability="full") as engine:
                ended = engine.resume(asked["run_id"][:8], {"ask": "yes"})["result"]
                self.assertEqual((ended["status"], ended["run_id"]), ("succeeded", asked["run_id"]))
                self.assertIn("yes", json.dumps(ended["state"]["node_results"]["ask"]))
                self.assertEqual(engine.resume(asked["run_id"], {})["error"]["code"], "runs.ended")

    def test_describe_names_artifact_and_walls(self):
        with Engine(workers=1) as engine:
            told = answer(library.caisson_engine_describe(engine.handle))
            self.assertTrue(told["ok"])
            self.assertIn("micropython", json.dumps(told["runtime"]).lower())

    def test_two_hundred_engines_leave_nothing_behind(self):
        ir, inputs = example()

        def live():
            with Engine(workers=1) as engine:
                self.assertEqual(engine.run(ir, inputs)["result"]["status"], "succeeded")

        for _ in range(20):
            live()
        before = resident_bytes(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        for _ in range(200):
            live()
        after = resident_bytes(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        print(f"resident {before[0] >> 10} -> {after[0] >> 10} KiB, descriptors {before[1]} -> {after[1]}", flush=True)
        self.assertEqual(after[1:], before[1:])
        self.assertLess(after[0] - before[0], 4 << 20)
        deadline = time.monotonic() + 10
        while children() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(children(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
