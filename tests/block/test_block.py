# SPDX-License-Identifier: Apache-2.0
"""The harness: names, done and debug, tables, errors with their place, exits, and the corpus of scripts."""

import contextlib
import importlib.util
import io
import json
import marshal
import math
import os
import pathlib
import sys
import threading
import unittest

from in_memory import block, run

CORPUS = pathlib.Path(os.environ.get("CAISSON_CORPORA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpora"))


def quietly(source, **inputs):
    """(channel, stdout, stderr)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        channel = run(source, **inputs)
    return channel, out.getvalue(), err.getvalue()


class Names(unittest.TestCase):
    def test_are_the_inputs(self):
        channel = run(
            "done([documents, user, artifacts, sources])",
            documents=[{"a": 1}], user={"did": "d"}, artifacts=[{"b": 2}], sources=[{"c": 3}],
        )
        self.assertEqual(channel.settled, [[{"a": 1}], {"did": "d"}, [{"b": 2}], [{"c": 3}]])

    def test_have_defaults(self):
        self.assertEqual(run("done([documents, user, artifacts, sources, table.rows(None)])").settled, [[], {}, [], [], []])

    def test_name_is_not_main(self):
        self.assertEqual(run("done([__name__, __name__ == '__main__'])").settled, ["builtins", False])

    def test_of_the_harness_are_not_seen(self):
        found = run("done(sorted(k for k in dict(globals()) if not k.startswith('__')))").settled
        self.assertEqual(found, ["artifacts", "debug", "documents", "done", "sources", "table", "user"])

    def test_print_is_pythons_own(self):
        channel, out, err = quietly("import sys\nprint('a', 'b', sep='-', end='!')\nprint('x', file=sys.stderr)")
        self.assertEqual((out, err, channel.kinds), ("a-b!", "x\n", ["end"]))

    def test_standard_input_is_at_its_end(self):
        self.assertEqual(run("import sys\ntry:\n    input()\nexcept EOFError:\n    done(sys.stdin.read())").settled, "")

    def test_classes_and_dataclasses_of_a_script_work(self):
        source = "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: 'int' = 1\nimport enum\nclass E(enum.Enum):\n    B = 2\ndone([A(), E.B, A.__module__])"
        self.assertEqual(run(source).settled, [{"x": 1}, 2, "builtins"])

    def test_may_be_awaited_at_the_top_level(self):
        source = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01)\n    return x + 1\ny = await f(1)\ndone([y, [z async for z in g()]])"
        source = "async def g():\n    yield 5\n" + source
        self.assertEqual(run(source).settled, [2, [5]])
        error = run("async def f():\n    1/0\n\nawait f()").error
        self.assertEqual(([frame["line"] for frame in error["frames"]], error["type"]), ([4, 2], "ZeroDivisionError"))

    def test_functions_see_the_globals(self):
        self.assertEqual(run("t = 2\ndef f(x):\n    return x * t\ndone([f(d) for d in documents])", documents=[1, 2]).settled, [2, 4])


class Job(unittest.TestCase):
    def test_is_read_from_bytes(self):
        inputs = {"documents": [{"n": 1.5, "big": 12345678901234567890}], "user": {}, "artifacts": [], "sources": [], "tables": {}}
        job = block.Job.read(b"done(documents)", marshal.dumps(inputs, 3), b'{"geometry": "wkt"}')
        self.assertEqual(job.documents, [{"n": 1.5, "big": 12345678901234567890}])
        self.assertEqual(job.options.geometry, "wkt")

    def test_refuses_what_is_no_json(self):
        for wrong in ("", "  ", "{", "[NaN]", "{} x", "{'a': 1}", '"\n"', "[1,]"):
            with self.subTest(wrong), self.assertRaises(ValueError):
                block.parse_json(wrong)

    def test_reads_json_like_the_json_module(self):
        for text in (' {"a": [1, -2.5e3, "x\\u00e9\\ud83d\\ude00", null, true]} \n', "3", '"x"', "[]"):
            self.assertEqual(block.parse_json(text), json.loads(text))
            self.assertEqual(block.parse_json(text.encode()), json.loads(text))

    def test_source_that_is_no_utf8_is_a_syntax_error(self):
        error = run(b"x = '\xff'").error
        self.assertEqual((error["fault"], error["type"]), ("syntax", "UnicodeDecodeError"))


class Done(unittest.TestCase):
    def test_sends_each_call_in_order(self):
        channel = run("debug(1)\ndone({'a': 1}, final=False)\ndebug('x')\ndone([2], False)\ndone(3)\ndone(4)")
        self.assertEqual(channel.results, [({"a": 1}, False), ([2], False), (3, True), (4, True)])
        self.assertEqual(channel.kinds, ["debug", "done", "debug", "done", "done", "done", "end"])

    def test_delivers_what_is_falsy(self):
        source = "\n".join(f"done({value})" for value in ("None", "False", "0", "''", "[]", "{}", "float('nan')"))
        self.assertEqual([value for value, _ in run(source).results], [None, False, 0, "", [], {}, None])

    def test_takes_its_arguments_by_name_too(self):
        self.assertEqual(run("done(result=1, final=0)\ndebug(result=2)").results, [(1, False)])

    def test_before_an_error_stays(self):
        channel = run("done({'a': 1}, final=False)\n1/0")
        self.assertEqual(channel.kinds, ["done", "error", "end"])

    def test_streams_a_long_list(self):
        channel = run("done([{'id': i, 'text': 'x' * 50} for i in range(20000)])")
        self.assertEqual(channel.settled, [{"id": i, "text": "x" * 50} for i in range(20000)])
        self.assertGreater(channel.kinds.count("part"), 3)

    def test_never_divides_a_debug(self):
        self.assertEqual(run("debug(['x' * 50] * 20000)").kinds, ["debug", "end"])

    def test_warns_before_it_delivers(self):
        channel = run("done({'a': 2**60})")
        self.assertEqual(channel.kinds, ["warning", "done", "end"])
        self.assertEqual((channel.warnings[0]["code"], channel.warnings[0]["path"]), ("big_integer", "$.a"))

    def test_raises_where_the_value_is_no_json(self):
        channel = run("try:\n    done([1, {'z': 1j}])\nexcept TypeError as e:\n    done(str(e))")
        self.assertTrue(channel.settled.startswith("$[1].z: "), channel.settled)
        error = run("x = 1\ndone(object())").error
        self.assertEqual((error["type"], error["line"], error["column"]), ("UnserializableValue", 2, 1))

    def test_obeys_the_options(self):
        self.assertEqual(run("done('\\ud800')", options={"surrogates": "replace"}).settled, "\ufffd")

    def test_of_many_threads_do_not_mix(self):
        source = (
            "import threading\n"
            "def work(n):\n    done([n] * 60000, final=False)\n"
            "ts = [threading.Thread(target=work, args=('t%03d' % n,)) for n in range(8)]\n"
            "[t.start() for t in ts]\n[t.join() for t in ts]\n"
        )
        results = run(source).results
        self.assertEqual([len(value) for value, _ in results], [60000] * 8)
        self.assertEqual(sorted(set(map(str, value)).pop() for value, _ in results), ["t%03d" % n for n in range(8)])

    def test_after_the_channel_has_closed_adds_nothing(self):
        class Closing:
            def __init__(self):
                self.kinds = []

            def send(self, kind, text, final=True):
                self.kinds.append(kind)
                if len(self.kinds) > 1:
                    raise block.ChannelClosed

        channel = Closing()
        block.run(block.Job("done(1)\nfor i in range(3):\n    done(i)\n1/0"), channel)
        self.assertEqual(channel.kinds[0], "done")

    def test_waits_for_threads_that_are_no_daemons(self):
        program = (
            "import sys; sys.path[:0] = sys.argv[1:]; from in_memory import run\n"
            "c = run('''import threading, time, concurrent.futures\n"
            "pool = concurrent.futures.ThreadPoolExecutor(1)\n"
            "pool.submit(lambda: (time.sleep(0.1), done(2, False)))\n"
            "threading.Thread(target=lambda: (time.sleep(0.2), done(1))).start()\n"
            "raise SystemExit(0)''')\n"
            "print(c.kinds, c.results)"
        )
        import subprocess

        here = str(pathlib.Path(__file__).parent)
        found = subprocess.run([sys.executable, "-c", program, here], capture_output=True, text=True, timeout=60)
        self.assertEqual(found.stdout.strip(), "['done', 'done', 'end'] [(2, False), (1, True)]", found.stderr)


class Errors(unittest.TestCase):
    def error(self, source):
        with contextlib.redirect_stderr(io.StringIO()):
            return run(source).error

    def place(self, source):
        error = self.error(source)
        return error["fault"], error["type"], error["line"], error["column"]

    def test_have_their_place(self):
        self.assertEqual(self.place("x = 1\ny = [1, x / 0]\n"), ("raised", "ZeroDivisionError", 2, 9))

    def test_count_columns_in_characters(self):
        self.assertEqual(self.place("é = '日本😀'; [][1]"), ("raised", "IndexError", 1, 12))

    def test_have_the_frames_of_the_script_alone(self):
        error = self.error("import json\ndef f(x):\n    return json.loads(x)\ndef g():\n    f('{')\ng()")
        self.assertEqual([(frame["line"], frame["function"]) for frame in error["frames"]], [(6, "<module>"), (5, "g"), (3, "f")])
        self.assertEqual((error["type"], error["line"]), ("json.decoder.JSONDecodeError", 3))
        self.assertNotIn("decoder.py", error["traceback"])
        self.assertIn('File "script.py", line 3, in f\n    return json.loads(x)\n', error["traceback"])

    def test_of_syntax(self):
        for source, line, column in (("if 1\n    x", 1, 5), ("x = 1\n  y = 2", 2, None), ("def f():\n\treturn 1\n        return 2", 3, None), ("x = (1,\n", 1, 5), ("é = '日本' 3x", 1, None), ("\x00", None, None), ("return 1", 1, 1)):
            with self.subTest(source):
                error = self.error(source)
                self.assertEqual(error["fault"], "syntax")
                self.assertIn(error["type"], ("SyntaxError", "IndentationError", "TabError", "ValueError"))
                self.assertEqual(error["frames"], [])
                if line is not None:
                    self.assertEqual(error["line"], line)
                if column is not None:
                    self.assertEqual(error["column"], column)

    def test_within_text_that_the_script_executes(self):
        self.assertEqual(self.place("a = 1\nexec('b = 2\\n1/0')"), ("raised", "ZeroDivisionError", 2, 1))
        self.assertEqual(self.place("a = 1\neval('(')"), ("raised", "SyntaxError", 2, 1))
        self.assertEqual(self.place("exec(compile('def f(): 1/0', 'other', 'exec'))\n\nf()"), ("raised", "ZeroDivisionError", 3, 1))

    def test_of_a_syntax_error_that_the_script_raises(self):
        self.assertEqual(self.place("def f():\n    raise SyntaxError('mine')\nf()"), ("raised", "SyntaxError", 2, 5))

    def test_tell_causes(self):
        error = self.error("try:\n    1/0\nexcept Exception as e:\n    raise ValueError('x') from e")
        self.assertEqual([(c["relation"], c["type"], c["line"]) for c in error["chain"]], [("cause", "ZeroDivisionError", 2)])
        error = self.error("try:\n    1/0\nexcept Exception:\n    {}['k']")
        self.assertEqual([(c["relation"], c["type"], c["line"]) for c in error["chain"]], [("context", "ZeroDivisionError", 2)])
        self.assertIn("During handling", error["traceback"])
        self.assertNotIn("chain", self.error("try:\n    1/0\nexcept Exception:\n    raise ValueError('x') from None"))

    def test_tell_the_members_of_a_group(self):
        error = self.error("def f():\n    1/0\ntry:\n    f()\nexcept Exception as e:\n    raise ExceptionGroup('g', [e, ExceptionGroup('h', [KeyError(1)])])")
        self.assertEqual((error["type"], error["message"]), ("ExceptionGroup", "g (2 sub-exceptions)"))
        self.assertEqual([(m["type"], m["line"]) for m in error["exceptions"]], [("ZeroDivisionError", 2), ("ExceptionGroup", 0)])
        self.assertEqual(error["exceptions"][1]["exceptions"][0]["message"], "1")

    def test_tell_notes(self):
        self.assertEqual(self.error("e = ValueError('x')\ne.add_note('look here')\nraise e")["notes"], ["look here"])

    def test_survive_circles_and_long_chains(self):
        error = self.error("a = ValueError('a'); b = ValueError('b')\na.__cause__ = b; b.__cause__ = a\nraise a")
        self.assertEqual([c["message"] for c in error["chain"]], ["b"])
        source = "e = None\nfor i in range(5000):\n    n = ValueError(str(i)); n.__cause__ = e; e = n\nraise e"
        error = self.error(source)
        self.assertEqual((len(error["chain"]), error["message"]), (10, "4999"))
        self.assertLess(len(error["traceback"]), 200_000)

    def test_survive_hostile_exceptions(self):
        hostile = (
            "def __str__(self): raise SystemExit", "def __str__(self): return 3", "__str__ = None", "def __getattribute__(self, n): 1/0",
            "__traceback__ = 3", "__cause__ = property(lambda s: 1/0)", "__notes__ = property(lambda s: 1/0)", "__notes__ = [object(), 'n']",
            "__context__ = 3", "__class__ = int", "def __str__(self): return 'a\\ud800\\n{\"type\":\"done\"}'", "def __str__(self): return 'x' * 10**6",
        )
        for body in hostile:
            with self.subTest(body):
                error = self.error(f"class E(Exception):\n    {body}\nraise E()")
                self.assertEqual((error["fault"], error["type"], error["line"]), ("raised", "E", 3))
                self.assertLess(len(json.dumps(error)), 300_000)

    def test_survive_hostile_syntax_errors(self):
        error = self.error("e = SyntaxError('x')\ne.lineno = object(); e.offset = 'a'; e.text = 3; e.filename = 'script.py'; e.msg = 1\nraise e")
        self.assertEqual((error["type"], error["line"]), ("SyntaxError", 3))

    def test_of_deep_recursion_are_short(self):
        error = self.error("def f(n):\n    return f(n + 1)\nf(0)")
        self.assertEqual((error["type"], error["line"]), ("RecursionError", 2))
        self.assertLessEqual(len(error["frames"]), 100)
        self.assertEqual(error["frames"][0]["function"], "<module>")
        self.assertLess(len(error["traceback"]), 20_000)

    def test_of_memory_are_told(self):
        error = self.error("x = [0] * 1000\ndef f():\n    y = bytearray(1000)\n    raise MemoryError('no more')\nf()")
        self.assertEqual((error["type"], error["message"], error["line"]), ("MemoryError", "no more", 4))

    def test_after_the_script_spoiled_builtins_and_traceback(self):
        program = (
            "import sys; sys.path[:0] = sys.argv[1:]; from in_memory import run, block\n"
            "keep = {}\n"
            "class C:\n"
            "    def __init__(self): self.sent = []\n"
            "    def send(self, kind, text, final=True): self.sent += [(kind, text)]\n"
            "c = C()\n"
            "block.run(block.Job('''import builtins, traceback, linecache, json\n"
            "for n in ('isinstance', 'len', 'str', 'type', 'getattr', 'list', 'enumerate', 'max', 'bool', 'int'):\n"
            "    setattr(builtins, n, lambda *a: 0)\n"
            "json.dumps = json.JSONEncoder.encode = lambda *a, **k: 'forged'\n"
            "traceback.TracebackException = linecache.cache = None\n"
            "done({'real': True})\n"
            "1/0'''), c)\n"
            "for kind, text in c.sent: sys.stdout.write(kind + ' ' + text.decode() + chr(10))"
        )
        import subprocess

        here = str(pathlib.Path(__file__).parent)
        found = subprocess.run([sys.executable, "-c", program, here], capture_output=True, text=True, timeout=60)
        lines = found.stdout.splitlines()
        self.assertEqual((lines[0], lines[-1]), ('done {"real":true}', "end {}"), found.stderr)
        error = json.loads(lines[1].removeprefix("error "))
        self.assertEqual((error["type"], error["line"]), ("ZeroDivisionError", 7))


class Sources(unittest.TestCase):
    def test_may_begin_with_a_mark_of_byte_order(self):
        for source in ("\ufeffdone(1)", b"\xef\xbb\xbfdone(1)"):
            self.assertEqual(run(source).results, [(1, True)])


class Exits(unittest.TestCase):
    def test_of_zero_are_a_clean_end(self):
        for source in ("import sys\nsys.exit()", "import sys\nsys.exit(0)", "raise SystemExit", "exit()" if hasattr(__builtins__, "exit") else ""):
            self.assertEqual(run(source).kinds, ["end"])

    def test_tell_their_code(self):
        for code, expected in (("3", 3), ("-1", -1), ("True", 1), ("2**40", 255), ("-300", 255)):
            error = run(f"import sys\nsys.exit({code})").error
            self.assertEqual((error["fault"], error["type"], error["exit_code"], error["line"]), ("exited", "SystemExit", expected, 2))

    def test_with_a_text_print_it(self):
        channel, _, err = quietly("import sys\nsys.exit('bye')")
        self.assertEqual((channel.error["exit_code"], channel.error["message"], err), (1, "bye", "bye\n"))

    def test_of_other_kinds(self):
        error = run("raise KeyboardInterrupt").error
        self.assertEqual((error["fault"], error["type"], error["exit_code"]), ("exited", "KeyboardInterrupt", 130))
        error = run("class B(BaseException): pass\nraise B('x')").error
        self.assertEqual((error["fault"], error["type"], error["exit_code"], error["message"]), ("exited", "B", 1, "x"))

    def test_an_exception_whose_mro_leaves_that_out_is_none(self):
        error = run(
            "class Meta(type):\n    def mro(self):\n        return [self, BaseException, object]\n"
            "class X(Exception, metaclass=Meta):\n    pass\nraise X('x')"
        ).error
        self.assertEqual((error["fault"], error["type"], error["line"]), ("raised", "X", 6))

    def test_a_code_that_claims_to_be_a_number_is_none(self):
        channel, _, _ = quietly("class Code:\n    __class__ = int\nraise SystemExit(Code())")
        self.assertEqual((channel.error["fault"], channel.error["exit_code"]), ("exited", 1))

    def test_within_a_finally(self):
        channel = run("import sys\ntry:\n    sys.exit(4)\nfinally:\n    done(1)")
        self.assertEqual((channel.kinds, channel.error["exit_code"]), (["done", "error", "end"], 4))


class Tables(unittest.TestCase):
    PACK = {"f1": {"columnKeys": ["a", "b"], "rows": [{"a": "1,5", "b": "x"}, {"a": "2", "b": "y"}]}, "f2": {"rows": [{"k": "1", "l": "2"}]}, "f3": {}, "f4": {"rows": "no", "columnKeys": 3}}
    INLINE = {"type": "table", "columnKeys": ["p"], "rows": [{"p": "7"}]}

    def ask(self, expression):
        return run(f"done({expression})", documents=[{"t": {"type": "table", "fileId": "f1"}, "j": '{"type":"table","fileId":"f2"}', "i": self.INLINE}], tables=self.PACK).settled

    def check(self, *pairs):
        for expression, expected in pairs:
            with self.subTest(expression):
                found = self.ask(expression.replace("$t", "documents[0]['t']").replace("$j", "documents[0]['j']").replace("$i", "documents[0]['i']"))
                self.assertEqual((type(found), found), (type(expected), expected))

    def test_normalize(self):
        empty = {"type": "table", "columnKeys": [], "rows": [], "fileId": None}
        self.check(
            ("table.normalize($t)", {"type": "table", **self.PACK["f1"], "fileId": "f1"}),
            ("table.normalize($j)", {"type": "table", "columnKeys": [], "rows": self.PACK["f2"]["rows"], "fileId": "f2"}),
            ("table.normalize($i)", {**self.INLINE, "fileId": None}),
            ("table.normalize(None)", empty), ("table.normalize('{')", empty), ("table.normalize('')", empty), ("table.normalize({})", empty), ("table.normalize(3)", empty),
            ("table.normalize([1])", empty), ("table.normalize('[1]')", empty), ("table.normalize({'type': 'other', 'rows': [1]})", empty),
            ("table.normalize({'type': 'table', 'fileId': 'f1', 'rows': [{'z': 1}]})['rows']", self.PACK["f1"]["rows"]),
            ("table.normalize({'type': 'table', 'fileId': 'none', 'rows': [{'z': '1'}]})", {"type": "table", "columnKeys": [], "rows": [{"z": "1"}], "fileId": "none"}),
            ("table.normalize({'type': 'table', 'fileId': 'f3', 'rows': [{'z': '1'}]})['rows']", [{"z": "1"}]),
            ("table.normalize({'type': 'table', 'fileId': 'f4'})", {"type": "table", "columnKeys": [], "rows": [], "fileId": "f4"}),
            ("table.normalize({'type': 'table', 'fileId': 5, 'rows': {}})", empty),
        )

    def test_keys_rows(self):
        self.check(
            ("table.keys($t)", ["a", "b"]), ("table.keys($j)", ["k", "l"]), ("table.keys($i)", ["p"]), ("table.keys(None)", []), ("table.keys({'type': 'table', 'rows': [3]})", []),
            ("table.rows($t)", self.PACK["f1"]["rows"]), ("table.rows('x')", []),
        )

    def test_cell(self):
        self.check(
            ("table.cell($t, 0, 'a')", "1,5"), ("table.cell($t, 1, 1)", "y"), ("table.cell($j, 0, 1)", "2"), ("table.cell($t, 0, 'none')", None), ("table.cell($t, 0, 9)", None),
            ("table.cell($t, -1, 'a')", None), ("table.cell($t, 2, 'a')", None), ("table.cell($t, 0, -1)", None), ("table.cell(None, 0, 'a')", None), ("table.cell($t, None, 'a')", None),
            ("table.cell({'type': 'table', 'rows': [3]}, 0, 'a')", None), ("table.cell($t, 0, [])", None),
        )

    def test_col(self):
        self.check(
            ("table.col($t, 'a')", ["1,5", "2"]), ("table.col($t, 1)", ["x", "y"]), ("table.col($t, 'none')", [None, None]), ("table.col($t, 7)", [None, None]), ("table.col(None, 'a')", []),
            ("table.col({'type': 'table', 'rows': [{'': 'e'}, {'a': 1}]}, 5)", ["e", None]),
        )

    def test_num(self):
        self.check(
            ("table.num('1,5')", 1.5), ("table.num('1.5')", 1.5), ("table.num(' 2 ')", 2.0), ("table.num('1,000,5')", 0), ("table.num('12abc')", 0), ("table.num('')", 0), ("table.num(None)", 0),
            ("table.num(3)", 3), ("table.num(2.5)", 2.5), ("table.num(True)", True), ("table.num(float('nan'))", 0), ("table.num('nan')", 0), ("table.num([1])", 0), ("table.num(b'1')", 0),
            ("table.num(float('inf')) == float('inf')", True), ("table.num('-inf') == float('-inf')", True), ("table.num('1e3')", 1000.0),
        )

    def test_num_of_other_numbers(self):
        self.check(("table.num(__import__('fractions').Fraction(1, 2))", 0.5), ("table.num(__import__('decimal').Decimal('NaN'))", 0), ("table.num(10**400) == 10**400", True))

    def test_rows_may_be_written_to(self):
        self.assertEqual(self.ask("[r.update(a='9') for r in table.rows(documents[0]['t'])] and table.col(documents[0]['t'], 'a')"), ["9", "9"])


def close(left, right):
    if isinstance(left, bool) or isinstance(right, bool) or not isinstance(right, (int, float)) or not isinstance(left, (int, float)):
        if isinstance(right, dict) and isinstance(left, dict):
            return left.keys() == right.keys() and all(close(left[key], right[key]) for key in right)
        if isinstance(right, list) and isinstance(left, list):
            return len(left) == len(right) and all(map(close, left, right))
        return type(left) is type(right) and left == right
    return math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-9)


class Corpus(unittest.TestCase):
    """The benign scripts; where their folder is not at hand (CAISSON_CORPORA) they are skipped."""

    def test_scripts_deliver_what_they_should(self):
        scripts = sorted((CORPUS / "benign").glob("*.py"))
        if not scripts:
            self.skipTest(f"no corpus in {CORPUS}")
        missing = []
        for script in scripts:
            library = script.read_text().partition("libs: ")[2].partition(" ")[0]
            if library != "stdlib" and importlib.util.find_spec(library) is None:
                missing.append(script.stem)
                continue
            with self.subTest(script.stem):
                case = json.loads(script.with_suffix(".json").read_text())
                channel = run(script.read_text(), documents=case["input"])
                self.assertIsNone(channel.error)
                self.assertEqual(len(channel.results), 1)
                self.assertTrue(close(channel.settled, case["expected"]), f"{channel.settled!r} is not {case['expected']!r}")
        if missing:
            print(f"(skipped for want of a library: {', '.join(missing)})", file=sys.stderr)


class Module(unittest.TestCase):
    def test_uses_no_builtin_that_a_script_could_rebind(self):
        import dis
        import types

        def codes(code):
            yield code
            for constant in code.co_consts:
                if isinstance(constant, types.CodeType):
                    yield from codes(constant)

        unbound = set()
        for code in codes(compile(pathlib.Path(block.__file__).read_text(), "block", "exec")):
            for instruction in dis.get_instructions(code):
                if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval not in vars(block):
                    unbound.add(instruction.argval)
        self.assertEqual(unbound, set())


if __name__ == "__main__":
    unittest.main()
