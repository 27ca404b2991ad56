# SPDX-License-Identifier: Apache-2.0
"""Inputs, results and readers that nobody wants, in one runtime: the host answers, names the limit, and serves
the next run at once.

    test_hostile.py BIN RUNTIME [OPTION of block …] [-- ARGUMENT of unittest …]

Exit code 77: the runtime is not available here.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from programs import BIN, caisson, environment  # noqa: E402
from service import FIRST_RUN, SKIP, UNAVAILABLE, Host, Run  # noqa: E402

MIB = 1 << 20
AT_ONCE = 5  # seconds; an interpreter may have to be made anew, on a machine that has other things to do

ARGUMENTS = sys.argv[2:]
SPLIT = ARGUMENTS.index("--") if "--" in ARGUMENTS else len(ARGUMENTS)
RUNTIME = ARGUMENTS[0] if ARGUMENTS else "cpython"
OPTIONS = ["--runtime", RUNTIME, *ARGUMENTS[1:SPLIT]]
UNITTEST = ARGUMENTS[SPLIT + 1:]


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


class Served(unittest.TestCase):
    """Through `block serve`: one service for all tests."""

    host: Host

    @classmethod
    def setUpClass(cls):
        cls.host = Host("--runs", "2", *OPTIONS)
        for run in [cls.host.start("done(1)") for _ in range(2)]:
            cls.host.wait(run, FIRST_RUN)

    @classmethod
    def tearDownClass(cls):
        assert cls.host.close() == 0, cls.host.messages

    def tearDown(self):
        begin = time.monotonic()
        self.assertEqual(self.host.run("done('next')").results, ["next"])
        self.assertLess(time.monotonic() - begin, AT_ONCE)
        self.assertTrue(self.host.alive())

    def ended(self, script: str, code: str, limit: str | None = None, **more) -> Run:
        run = self.host.run(script, **more)
        self.assertEqual((run.end["type"], (run.end["error"] or {}).get("code")), ("end", code), run)
        self.assertEqual(run.end["error"].get("limit"), limit, run)
        self.assertTrue(run.end["error"]["message"], run)
        return run

    def refused(self, line: bytes, code: str):
        """A line of its own id that is answered with an error."""
        run = Run("hostile")
        self.host._runs["hostile"] = run
        self.host.service.write(line + b"\n")
        self.host.wait(run)
        self.assertEqual((run.refusal or {}).get("code"), code, run)

    def test_syntax_errors(self):
        for script in ("x = (1\n", "def f(:\n", "if 1:\nx\n", "'''", "\t\n  x = 1", "return 1", "x = 1 +", "\\",
                       "class", "f'{'", "0777", "print 1", "a b", "\x00", "x = '\x00'", "done(1)\x00", "\x0c(",
                       "(" * 5000, "[" * 100_000, "-" * 100_000 + "1", "lambda: " * 100_000 + "1", "\ufeff(", "é = $"):
            with self.subTest(script[:40]):
                run = self.host.run(script)
                self.assertEqual((run.end["error"] or {}).get("code"), "block.syntax", run)
                self.assertTrue(run.end["error"]["message"])

    def test_text_that_is_odd_and_valid(self):
        for script, result in (("\ufeffdone(1)", 1), ("# coding: latin-1\ndone('é')", "é"), ("done('\U0001f600')", "\U0001f600"),
                               ("done(1)\r\n", 1), ("done(\r1)", 1), ("\u00b5 = 1\ndone(\u03bc)", 1), ("done('\\ud83d\\ude00'.encode('utf-16', 'surrogatepass').decode('utf-16'))", "\U0001f600")):
            with self.subTest(script):
                self.assertEqual(self.host.run(script).results, [result])

    def test_a_line_with_bytes_that_are_no_text(self):
        self.host.service.write(b'{"id":"x","op":"run","script":"done(\'\xe9\xff\')"}\n')
        self.refused(b'{"id":"hostile","op":"run","script":"done(1)","documents":[1]}', "block.request")

    def test_ten_megabytes_of_source(self):
        statements = "x = 1\n" * (10 * MIB // 6) + "done(x)"
        text = "x = '" + "y" * (10 * MIB) + "'\ndone(len(x))"
        comment = "#" + "z" * (10 * MIB) + "\ndone(1)"
        self.assertEqual(self.host.run(text).results, [10 * MIB])
        self.assertEqual(self.host.run(comment).results, [1])
        run = self.host.run(statements, limits={"wall_ms": 30_000})
        if not run.results:
            self.assertIn(run.end["error"].get("limit"), ("wall_ms", "memory_bytes"), run)
        expression = "done(" + "1+" * (5 * MIB) + "1)"
        run = self.host.run(expression, limits={"wall_ms": 30_000})
        self.assertIn((run.end["error"] or {}).get("code"), ("block.syntax", "block.raised", "block.limit"), run)

    def test_a_million_calls_of_done(self):
        run = self.host.run("for i in range(2_000_000): done(i, final=False)", seconds=300,
                            limits={"wall_ms": 300_000, "messages": 1_000_000})
        self.assertEqual(run.end["error"]["limit"], "messages", run.end)
        self.assertEqual(run.end["results"], 1_000_000)

    def test_a_result_of_a_gigabyte(self):
        one = "done('x' * (1 << 30))"
        if RUNTIME == "cpython":
            self.ended(one, "block.limit", "memory_bytes")
        else:  # the host saw nothing of it
            self.assertEqual(self.ended(one, "block.raised").end["error"]["type"], "MemoryError")
        run = self.ended("done('x' * (300 << 20))", "block.raised", limits={"memory_bytes": 2 << 30})
        self.assertIn("268435456 bytes", run.end["error"]["message"])
        many = "done(['x' * (1 << 20)] * 1024)"  # little memory in the script
        self.assertIn("268435456 bytes", self.ended(many, "block.raised").end["error"]["message"])
        self.ended("for _ in range(1024): done('x' * (1 << 20), final=False)", "block.limit", "output_bytes")

    def test_documents_nested_ten_thousand_deep(self):
        line = '{"id":"hostile","op":"run","script":"done(1)","documents":[' + nested(10_000) + "]}"
        self.host.service.write(line.encode() + b"\n")
        run = self.host.run("import json\ndone(json.loads(documents[0]['t'])['a']['a']['a'] is not None)",
                            documents=[{"t": nested(500)}])
        self.assertEqual(run.results, [True])

    def test_results_nested_ten_thousand_deep(self):
        for script in ("x = 1\nfor _ in range(10_000): x = [x]\ndone(x)", "x = {}\nx['x'] = x\ndone(x)",
                       "x = []\nx.append(x)\ndone(x)", "x = 1\nfor _ in range(10_000): x = {'x': x}\ndebug(x)"):
            with self.subTest(script):
                error = self.ended(script, "block.raised").end["error"]
                self.assertRegex(error["message"], "deep|nest|circular|itself|recursion")

    def test_numbers_without_json_form(self):
        for script, wanted in (("done([float('nan'), float('inf'), -float('inf')])", [None, None, None]),):
            run = self.host.run(script)
            if run.results:
                self.assertEqual(run.results, [wanted], run)
            else:
                self.assertRegex(run.end["error"]["message"], "(?i)nan|finite", run)
        self.assertEqual(self.host.run("done(2 ** 70)").results, [2 ** 70])
        self.refused(b'{"id":"hostile","op":"run","script":"done(1)","limits":{"wall_ms":1e300}}', "block.request")

    def test_lone_surrogates(self):
        self.ended("done('a\\ud800b')", "block.raised")
        self.ended("done({'\\udfff': 1})", "block.raised")
        self.assertEqual(self.host.run("done('a\\ud800b')", options={"surrogates": "replace"}).results, ["a\ufffdb"])
        run = self.host.run("print('a\\ud800b')\nimport sys\nprint('\\udcff', file=sys.stderr)\ndone(1)")
        self.assertEqual(run.results, [1])
        self.assertIn("a", run.text("stdout"))

    def test_errors_that_are_hostile_themselves(self):
        for script in ("class E(Exception):\n  def __str__(self): raise E\nraise E", "raise Exception('x' * (50 << 20))",
                       "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E",
                       "e = Exception('\\ud800\\n\\x00\\x1b[31m')\nraise e",
                       "class M(type):\n  __name__ = property(lambda s: 1/0)\nclass E(Exception, metaclass=M): pass\nraise E",
                       "def f(n):\n  try: 1/0\n  except Exception:\n    if n: f(n-1)\n    else: raise\nf(400)",
                       "raise ExceptionGroup('g', [ValueError(i) for i in range(100000)])", "import sys\nsys.exit('x' * (50 << 20))",
                       "import sys\nsys.excepthook = sys.stderr = None\n1/0", "raise KeyboardInterrupt", "raise SystemExit(2**80)"):
            with self.subTest(script[:60]):
                run = self.host.run(script, limits={"wall_ms": 10_000})
                self.assertFalse(run.end["ok"], run)
                self.assertLess(len(run.lines[-1]), MIB)

    def test_a_reader_that_stops_reading(self):
        with subprocess.Popen([str(BIN / "caisson"), "block", "serve", *OPTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=environment()) as service:
            service.stdout.readline()
            flood = {"id": "r", "op": "run", "script": "while True: done('x' * 100_000, final=False)", "limits": {"wall_ms": 2000}}
            service.stdin.write(json.dumps(flood).encode() + b"\n")
            service.stdin.flush()
            time.sleep(4)  # its time is over, and nobody has read
            self.assertIsNone(service.poll())
            service.stdin.write(b'{"id":"n","op":"run","script":"done(\'next\')"}\n')
            service.stdin.close()
            frames = [json.loads(line) for line in service.stdout]
            ends = {frame["id"]: frame for frame in frames if frame["type"] == "end"}
            self.assertEqual(ends["r"]["error"]["limit"], "wall_ms")
            self.assertEqual([frame["result"] for frame in frames if frame["type"] == "done" and frame["id"] == "n"], ["next"])
            self.assertEqual(service.wait(60), 0)


class Run_(unittest.TestCase):
    """Through `block run`, which reads files."""

    def run_bytes(self, script: bytes, *arguments: str):
        return caisson("block", "run", "-", *arguments, *OPTIONS, stdin=script, timeout=300)

    def test_wrong_encodings(self):
        for script in (b"done('\xe9')", b"\xff\xfed\x00o\x00n\x00e\x00(\x001\x00)\x00", b"\x80", b"# coding: latin-1\ndone('\xe9')",
                       b"done('\xed\xa0\x80')"):
            with self.subTest(script):
                result = self.run_bytes(script)
                self.assertEqual(result.code, 3, result)
                self.assertIn("[block.syntax]", result.stderr)
                self.assertNotIn("Traceback", result.stderr)

    def test_scripts_are_utf8_whatever_they_declare(self):
        self.assertEqual(self.run_bytes(b"# coding: latin-1\ndone('\xc3\xa9')").json(), "é")
        self.assertEqual(self.run_bytes(b"\xef\xbb\xbfdone('\xc3\xa9')").json(), "é")

    def test_documents(self):
        for documents, code in ((nested(10_000), "json.too_deep"), ('[{"a": NaN}]', "json.syntax"), ('[{"a": "\\ud800"}]', "json."),
                                ("[{},]", "json.syntax"), ("", "json."), ("[" * 100_000, "json."), ('"text"', "block.request")):
            with self.subTest(documents[:30]), tempfile.NamedTemporaryFile("w") as file:
                file.write(documents)
                file.flush()
                result = caisson("block", "run", "-", "--documents", file.name, *OPTIONS, stdin="done(1)")
                self.assertEqual(result.code, 3, result)
                self.assertIn(f"error[{code}", result.stderr)

    def test_a_reader_that_has_gone(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([str(BIN / "caisson"), "block", "run", "-", *OPTIONS], stdout=writing, stderr=subprocess.PIPE,
                              input=b"for i in range(1000): done('x' * 10000, final=False)", env=environment(), timeout=120)
        os.close(writing)
        self.assertEqual(done.returncode, 8, done.stderr)


def main() -> int:
    probe = caisson("block", "run", "-", *OPTIONS, stdin="done(1)", timeout=FIRST_RUN)
    if probe.code == UNAVAILABLE:
        print(probe.stderr, end="")
        return SKIP
    return 0 if unittest.main(argv=[sys.argv[0], *UNITTEST], verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
