# SPDX-License-Identifier: Apache-2.0
"""Where output goes and what foreign text in it can do: nothing but be read."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.parse

from programs import BIN, ROOT, caisson, code_workflow, environment, main

GRADE = ["run", "examples/grade/workflow.py", "--input", "@examples/grade/input.json", "-q"]
WORKFLOW = "examples/grade/workflow.py"
# Commands that write to standard output.
WRITERS = [GRADE, [*GRADE, "--report"], ["compile", WORKFLOW], ["check", "--format", "json", WORKFLOW],
           ["schema", WORKFLOW], ["graph", WORKFLOW], ["describe"], ["doctor"], ["completions", "bash"], ["--help"],
           ["--version"], ["block", "serve"]]

FORGED = "first\\ncaisson: info: all is well\\x1b[2J\\x9b31m\\u202egnp.exe"


def lines_of_others(text: str) -> list[str]:
    """Lines that begin like one of ours although a guest wrote them."""
    return [line for line in text.splitlines() if line.startswith("caisson: info: all")]


class ForeignText(unittest.TestCase):
    def assert_harmless(self, stderr: str):
        self.assertEqual(lines_of_others(stderr), [], stderr)
        for character in stderr:
            code = ord(character)
            self.assertTrue(character == "\n" or (code >= 0x20 and not 0x7F <= code < 0xA0), repr(stderr))
            self.assertNotIn(code, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])

    def test_an_exception_cannot_pass_for_a_line_of_ours(self):
        result = caisson("run", "-", stdin=code_workflow(f"raise ValueError('{FORGED}')"))
        self.assertEqual(result.code, 4)
        self.assert_harmless(result.stderr)
        self.assertIn("\n  | caisson: info: all is well\\x1b[2J\\u009b31m\\u202egnp.exe", result.stderr)

    def test_nor_can_the_name_of_its_class(self):
        body = f"E = type('{FORGED}', (Exception,), {{}})\nraise E('x')"
        result = caisson("run", "-", stdin=code_workflow(body))
        self.assertEqual(result.code, 4, result.stderr)
        self.assert_harmless(result.stderr)

    def test_nor_what_a_debug_node_says(self):
        source = f"""
def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("say", DebugNode(name="say", message="{FORGED}", tap_path="x"))
    graph.add_edge(START, "say")
    return graph
"""
        result = caisson("run", "-", stdin=source)
        self.assertEqual(result.code, 0, result.stderr)
        self.assert_harmless(result.stderr)
        self.assertIn("DebugNode say: first\n  | caisson: info", result.stderr)

    def test_nor_an_id_a_key_or_a_template(self):
        for source in (f'{{"{FORGED}": 1}}'.replace("\\x1b", "\\u001b").replace("\\x9b", "\\u009b"),
                       f'def orcheo_workflow():\n    g = StateGraph()\n    g.add_node("{FORGED}", Nope())\n'
                       '    return g\n',
                       f'def orcheo_workflow():\n    g = StateGraph()\n    g.add_node("a", SetVariableNode(variables='
                       f'{{"x": "{{{{a.{FORGED}}}}}"}}))\n    g.add_edge(START, "a")\n    return g\n'):
            result = caisson("run", "-", stdin=source)
            self.assert_harmless(result.stderr)
            self.assertIn("\\x1b" if "StateGraph" in source else "error", result.stderr)

    def test_nor_a_comment_beside_a_mistake(self):
        result = caisson("check", "-", stdin="import os  # \x1b[2J\u009b \u202e evil \u2066\n")
        self.assertEqual(result.code, 3)
        self.assert_harmless(result.stderr)
        self.assertIn("\\x1b[2J\\u009b \\u202e evil", result.stderr)

    def test_nor_the_name_of_a_file(self):
        with tempfile.TemporaryDirectory() as directory:
            name = directory.encode() + b"/a\x1b[2J\ncaisson: info: all is well \xff.py"
            pathlib.Path(os.fsdecode(name)).write_text("import os\n")
            for arguments in (["check", name], ["run", name], ["check", name + b".missing"], [name]):
                result = caisson(*(os.fsdecode(word) for word in arguments))
                self.assertNotEqual(result.code, 0)
                self.assert_harmless(result.stderr)
                self.assertIn("\\x1b[2J", result.stderr)

    def test_long_text_is_cut_and_the_rest_counted(self):
        result = caisson("run", "-", "--report", "--output", "1MiB",
                         stdin=code_workflow("raise ValueError('x' * 60000)"))
        self.assertLess(len(result.stderr), 12_000)
        self.assertRegex(result.stderr, r"\[\.\.\. \d+ more bytes\]")
        self.assertEqual(result.json()["error"]["message"].count("x"), 60000, "the report has it whole")

    def test_json_on_standard_error_is_the_same_document_without_controls(self):
        result = caisson("run", "-", "-q", "--events", "--format", "json",
                         stdin=code_workflow("raise ValueError('\\x9b\\u202e\\x7fü')"))
        self.assert_harmless(result.stderr)
        documents = [json.loads(line) for line in result.stderr.splitlines()]
        self.assertTrue(documents[-1]["message"].endswith("\x9b\u202e\x7fü"), documents[-1])

    def test_json_on_standard_output_likewise(self):
        result = caisson("run", "-", "-q", stdin=code_workflow("return {'a': '\\x9b\\u202e\\x7fü'}"))
        self.assert_harmless(result.stdout)
        self.assertEqual(result.json()["node_results"]["work"], {"a": "\x9b\u202e\x7fü"})


class FileNames(unittest.TestCase):
    def test_any_name_gives_valid_json_and_uris(self):
        with tempfile.TemporaryDirectory() as directory:
            names = [b"\xff\xfe.py", b"a b%20#?.py", b"q\"'<>&\\.py", "ümläut 你.py".encode(), b"new\nline\x1b.py"]
            paths = [os.fsdecode(directory.encode() + b"/" + name) for name in names]
            for path in paths:
                pathlib.Path(path).write_text("import os\n")
            listed = caisson("check", "--format", "json", *paths)
            self.assertEqual(listed.code, 3)
            self.assertEqual([len(file["diagnostics"]) > 0 for file in listed.json()], [True] * len(paths))
            sarif = caisson("check", "--format", "sarif", *paths)
            self.assertEqual(sarif.code, 3)
            uris = [run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                    for run in sarif.json()["runs"]]
            for uri, path in zip(uris, paths, strict=True):
                self.assertRegex(uri, r"^file:///[A-Za-z0-9._~/%-]+$")
                self.assertEqual(urllib.parse.unquote_to_bytes(uri.removeprefix("file://")), os.fsencode(path))

    def test_a_relative_name_is_a_relative_reference(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "a:b c.py").write_text("import os\n")
            sarif = caisson("check", "--format", "sarif", "a:b c.py", cwd=directory)
            self.assertIn('"uri": "a%3Ab%20c.py"', sarif.stdout)


class StandardOutput(unittest.TestCase):
    def run_into(self, arguments: list[str], stdout) -> subprocess.CompletedProcess:
        return subprocess.run([str(BIN / "caisson"), *arguments], stdin=subprocess.DEVNULL, stdout=stdout, cwd=ROOT,
                              stderr=subprocess.PIPE, env=environment(), timeout=120, text=True)

    def assert_said(self, done: subprocess.CompletedProcess, why: str):
        self.assertEqual(done.returncode, 8, (done.args, done.stderr))
        self.assertIn("cli.file_unwritable", done.stderr)
        self.assertIn(why, done.stderr)

    def test_a_full_disk_is_an_error(self):
        for arguments in WRITERS:
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                self.assert_said(self.run_into(arguments, full), "No space left on device")

    def test_a_reader_that_has_gone_is_an_error(self):
        for arguments in WRITERS:
            with self.subTest(arguments):
                reader, writer = os.pipe()
                os.close(reader)
                done = self.run_into(arguments, writer)
                os.close(writer)
                self.assert_said(done, "Broken pipe")

    def test_a_closed_standard_output_is_an_error(self):
        for arguments in WRITERS:
            with self.subTest(arguments):
                command = ["bash", "-c", 'exec "$0" "$@" >&-', str(BIN / "caisson"), *arguments]
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT,
                                      env=environment(), timeout=120, text=True)
                self.assert_said(done, "standard output")

    def test_a_reader_that_goes_in_the_middle_of_a_large_result(self):
        process = subprocess.Popen([str(BIN / "caisson"), "run", "-", "-q"], stdin=subprocess.PIPE, cwd=ROOT,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        process.stdin.write(code_workflow("return {'x': ['y' * 1000] * 2000}").encode())
        process.stdin.close()
        self.assertTrue(process.stdout.read(100))
        process.stdout.close()
        error = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(60), 8, error)
        self.assertIn("Broken pipe", error)

    def test_events_that_cannot_be_written_are_an_error(self):
        result = caisson(*GRADE, "--events-file", "/dev/full")
        self.assertEqual(result.code, 8, result.stderr)
        self.assertIn("events cannot be written to /dev/full", result.stderr)
        self.assertTrue(result.json()["node_results"], "the result is printed all the same")

    def test_a_limit_on_the_size_of_files_is_an_error(self):
        with tempfile.TemporaryDirectory() as directory:
            command = f"ulimit -f 0; exec {BIN}/caisson compile {WORKFLOW} -o {directory}/ir.json"
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, env=environment())
            self.assertEqual(done.returncode, 8, done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertEqual(os.listdir(directory), [])

    def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            result = caisson("compile", "examples/grade/workflow.py", "-o", f"{directory}/none/ir.json")
            self.assertEqual((result.code, os.listdir(directory)), (8, []), result.stderr)


class StateLimit(unittest.TestCase):
    # Ten nodes, each with 200 references to one text of a million bytes: 2 GB when written out.
    SOURCE = """
def orcheo_workflow():
    graph = StateGraph(State)
""" + "".join(f"""
    graph.add_node("n{i}", SetVariableNode(name="n{i}", variables={{"x": [{", ".join(['"{{inputs.t}}"'] * 200)}]}}))
    graph.add_edge({f'"n{i - 1}"' if i else "START"}, "n{i}")
""" for i in range(10)) + "    return graph\n"

    def run_it(self, *options: str) -> tuple[int, str, int]:
        """Exit code, standard error, and the greatest resident size in KiB."""
        with tempfile.TemporaryDirectory() as directory:
            source = pathlib.Path(directory) / "w.py"
            source.write_text(self.SOURCE)
            inputs = pathlib.Path(directory) / "i.json"
            inputs.write_text(json.dumps({"t": "x" * 1_000_000}))
            with open(f"{directory}/stderr", "w+") as stderr:
                process = subprocess.Popen([str(BIN / "caisson"), "run", str(source), "-q", "--input", f"@{inputs}",
                                            *options], stdout=subprocess.DEVNULL, stderr=stderr, env=environment())
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                stderr.seek(0)
                return process.returncode, stderr.read(), usage.ru_maxrss

    def test_a_state_that_is_too_large_ends_the_run(self):
        code, said, kib = self.run_it("--durability", "none")
        self.assertEqual(code, 5, said)
        self.assertIn("graph.state_too_large", said)
        self.assertIn("node 'n1', step 2: the run's state would be larger than 268435456 bytes", said)
        self.assertIn("--state", said)
        self.assertLess(kib, 100_000)

    def test_neither_result_nor_events_cost_a_copy_of_it(self):
        code, said, kib = self.run_it("--state", "4GiB", "--events-file", "/dev/null", "--durability", "none")
        self.assertEqual(code, 0, said)
        self.assertLess(kib, 100_000)

    def test_a_record_has_a_limit_of_its_own(self):
        code, said, _ = self.run_it("--state", "4GiB")
        self.assertEqual(code, 5, said)
        self.assertIn("error[store.too_large]", said)
        self.assertIn("the run's end cannot be recorded", said)

    def test_a_larger_limit_and_a_smaller_one(self):
        small = caisson("run", "-", "-q", "--state", "100KiB",
                        stdin=code_workflow("return {'x': ['y' * 1000] * 200}"))
        self.assertEqual(small.code, 5, small.stderr)
        self.assertIn("node 'work', step 1: the run's state would be larger than 102400 bytes", small.stderr)


main()
