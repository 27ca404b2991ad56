# SPDX-License-Identifier: Apache-2.0
"""The serializer against its table of values, tests/golden/block/serializer/*.json.

A case is an expression (after `setup`), and its JSON, or the code and the path of the error. A file
whose library is missing is skipped by name. Runs under any CPython, by unittest or pytest; what
cannot be written as a table stands below.
"""

import importlib.util
import json
import math
import pathlib
import sys
import threading
import tracemalloc
import types
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "block" / "serializer"
sys.path.insert(0, str(HERE.parent.parent / "runtimes" / "python"))

import caisson_serializer as serializer  # noqa: E402


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def no_repeats(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), f"an object has a key twice: {pairs}"
    return found


def parse(text):
    """Strictly: NaN, repeated keys and text that is no UTF-8 fail."""
    return json.loads(text.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=no_repeats)


def outcome(case):
    """("value", JSON, warnings) or ("error", code, path, message)."""
    scope = {"__name__": "case"}
    warnings.simplefilter("ignore")
    exec(case.get("setup", ""), scope)
    value = eval(case["expression"], scope)
    options = serializer.Options(**case.get("options", {}))
    try:
        prepared = serializer.prepare(value, options)
        whole = prepared.text()
        joined = b"".join(prepared.chunks())
    except serializer.ResultError as error:
        return "error", error.code, error.path, str(error)
    finally:
        restore_builtins(scope)
    assert b"\n" not in whole, "a raw line end in the text"
    assert joined == whole, "the chunks are not the text"
    return "value", parse(whole), prepared.warnings


def restore_builtins(scope):
    import builtins

    for name, original in scope.get("saved", {}).items():
        setattr(builtins, name, original)


def same(left, right):
    """Equal in type too: 1 is not 1.0, and -0.0 is not 0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return left == right


def complaint(case, found):
    """What is wrong with the outcome of a case, or None."""
    if "error" in case:
        if found[0] != "error":
            return f"expected the error {case['error']}, got {found[1]!r}"
        _, code, path, message = found
        if code != case["error"] or case["path"] not in (None, path) or case.get("says", "") not in message:
            return f"expected {case['error']} at {case['path']} ({case.get('says')}), got {code}: {message}"
        return None
    if found[0] == "error":
        return f"expected {case['expected']!r}, got the error {found[1]}: {found[3]}"
    if not same(found[1], case["expected"]):
        return f"expected {case['expected']!r}, got {found[1]!r}"
    warned = [[warning["code"], warning["path"]] for warning in found[2]]
    if warned != case.get("warnings", []):
        return f"expected warnings {case.get('warnings', [])}, got {warned}"
    return None


class Table(unittest.TestCase):
    """One test a file is added below."""

    def run_file(self, path):
        table = json.loads(path.read_text())
        for library in table["needs"]:
            if importlib.util.find_spec(library) is None:
                self.skipTest(f"{library} is not installed")
        for case in table["cases"]:
            with self.subTest(case["name"]):
                problem = complaint(case, outcome(case))
                self.assertIsNone(problem, f"{path.name}: {case['name']}: {problem}")


for file in sorted(GOLDEN.glob("*.json")):
    setattr(Table, f"test_{file.stem}", lambda self, path=file: self.run_file(path))


class TheTable(unittest.TestCase):
    def test_is_large_and_has_no_name_twice(self):
        names = [(file.stem, case["name"]) for file in GOLDEN.glob("*.json") for case in json.loads(file.read_text())["cases"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 250)


class Module(unittest.TestCase):
    def test_uses_no_builtin_that_a_script_could_rebind(self):
        def codes(code):
            yield code
            for constant in code.co_consts:
                if isinstance(constant, types.CodeType):
                    yield from codes(constant)

        import dis

        source = pathlib.Path(serializer.__file__).read_text()
        unbound = set()
        for code in codes(compile(source, "serializer", "exec")):
            for instruction in dis.get_instructions(code):
                if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval not in vars(serializer):
                    unbound.add(instruction.argval)
        self.assertEqual(unbound, set())

    def test_imports_no_library_and_little_of_the_standard_one(self):
        import subprocess

        program = (
            "import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]); import caisson_serializer as s; "
            "s.dumps({'a': [1, 2.5, {3}]}); print(*sorted(set(sys.modules) - before))"
        )
        command = [sys.executable, "-I", "-S", "-c", program, str(pathlib.Path(serializer.__file__).parent)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertLessEqual(set(found.stdout.split()), {"_collections", "_json", "caisson_serializer"})

    def test_refuses_options_that_do_not_exist(self):
        for wrong in ({"geometry": "gml"}, {"surrogates": "ignore"}, {"max_depth": 0}, {"max_depth": True}, {"max_bytes": 1.5}, {"indent": 2}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                serializer.Options(**wrong)


class Errors(unittest.TestCase):
    def test_are_what_json_dumps_would_raise_too(self):
        with self.assertRaises(TypeError):
            serializer.dumps(object())
        with self.assertRaises(ValueError):
            serializer.dumps("\ud800")

    def test_shorten_long_paths_and_hostile_keys(self):
        value = object()
        for _ in range(100):
            value = {"k" * 50: value}
        with self.assertRaises(serializer.UnserializableValue) as caught:
            serializer.dumps(value)
        self.assertLess(len(caught.exception.path), 250)
        with self.assertRaises(serializer.UnserializableValue) as caught:
            serializer.dumps({"a\nb\ud800": object()}, serializer.Options(surrogates="replace"))
        str(caught.exception).encode("utf-8")
        self.assertNotIn("\n", str(caught.exception))

    def test_name_types_that_have_hostile_names(self):
        for name in ("x" * 10000, "a\nb", "\u00e9"):
            kind = type(name, (), {"__module__": "m" * 10000})
            with self.subTest(name[:5]), self.assertRaises(serializer.UnserializableValue) as caught:
                serializer.dumps([kind()])
            self.assertLess(len(str(caught.exception)), 1000)

    def test_at_the_end_of_the_stack_are_named(self):
        def down(n):
            return serializer.dumps(value) if n == 0 else down(n - 1)

        value = []
        for _ in range(300):
            value = [value]
        outcomes = set()
        for depth in range(400, sys.getrecursionlimit(), 50):
            try:
                outcomes.add(len(down(depth)))
            except serializer.ValueTooDeep:
                outcomes.add("too deep")
            except RecursionError:
                break  # the stack was full before the serializer was called
        self.assertLessEqual(outcomes, {602, "too deep"})

    def test_keep_what_a_hostile_exit_means(self):
        class Quit(dict):
            pass

        class Value:
            __module__ = "pandas"

            def isoformat(self):
                raise SystemExit(3)

        Value.__name__ = "Timestamp"
        with self.assertRaises(SystemExit):
            serializer.dumps(Quit(a=Value()))


class Pieces(unittest.TestCase):
    def rows(self, count):
        return [{"id": f"row {i}", "v": i * 0.5, "tags": ["a", "b"], "sub": {"x": i}} for i in range(count)]

    def pieces(self, value, **options):
        return list(serializer.prepare(value, serializer.Options(**options)).pieces())

    def test_of_a_list_are_arrays_that_make_it_up(self):
        rows = self.rows(20000)
        pieces = self.pieces(rows)
        self.assertGreater(len(pieces), 4)
        self.assertEqual([item for piece in pieces for item in parse(piece)], rows)
        self.assertLess(max(map(len, pieces)), 2 * (256 << 10))
        self.assertGreater(sorted(map(len, pieces))[len(pieces) // 2], 64 << 10)

    def test_of_everything_else_are_one(self):
        for value in ({"a": [1] * 100000}, "x" * 10**6, None, [], (), 3):
            self.assertEqual([parse(piece) for piece in self.pieces(value)], [list(value) if value == () else value])

    def test_follow_items_that_grow(self):
        value = ["x" * (2**i) for i in range(18)] * 2
        pieces = self.pieces(value, piece_bytes=4096)
        self.assertEqual([item for piece in pieces for item in parse(piece)], value)
        for piece in pieces:
            self.assertTrue(len(piece) < 3 * 4096 or len(parse(piece)) == 1, len(piece))

    def test_of_a_frame_are_made_when_they_are_asked_for(self):
        if importlib.util.find_spec("pandas") is None:
            self.skipTest("pandas is not installed")
        import pandas

        frame = pandas.DataFrame({"a": range(20000), "b": [f"text {i}" for i in range(20000)]})
        pieces = self.pieces(frame, piece_bytes=32 << 10)
        self.assertGreater(len(pieces), 10)
        self.assertEqual([row for piece in pieces for row in parse(piece)], frame.to_dict("records"))

    def test_hold_the_size_in_bounds(self):
        prepared = serializer.prepare(["\x01" * 100] * 1000, serializer.Options(max_bytes=300_000, piece_bytes=1000))
        with self.assertRaises(serializer.ValueTooLarge):
            list(prepared.pieces())

    def test_never_hold_the_text_of_a_long_list(self):
        rows = self.rows(100_000)
        size = len(json.dumps(rows))
        prepared = serializer.prepare(rows)
        tracemalloc.start()
        for piece in prepared.pieces():
            del piece
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(peak, size)

    def test_of_what_was_plain_hold_no_copy(self):
        rows = self.rows(20000)
        tracemalloc.start()
        prepared = serializer.prepare(rows)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertIs(prepared._plain, rows)
        self.assertLess(peak, 1 << 20)


class Sizes(unittest.TestCase):
    def test_are_never_overestimated(self):
        """Whatever has at most max_bytes of text passes: the pass takes off a lower bound."""
        values = [
            [1] * 1000, [1.0] * 1000, ["a"] * 1000, [None] * 1000, [[]] * 1000, [{}] * 1000, [True] * 1000, {str(i): 1 for i in range(1000)},
            {str(i): "" for i in range(1000)}, {str(i): [] for i in range(1000)}, [{"a": {"b": [{"c": ""}]}}] * 100, ["é"] * 1000, {"é": "日本" * 50},
            [(1, 2)] * 500, set(range(1000)), range(1000), b"abc", {1: 2}, [frozenset()], 10**2000, [10**2000] * 3,
        ]
        if importlib.util.find_spec("pandas"):
            import numpy
            import pandas

            values += [numpy.zeros((10, 100), "i4"), numpy.zeros(1000), numpy.ones(1000, "?"), numpy.array(["a"] * 1000), numpy.zeros(1000, "M8[s]")]
            values += [pandas.DataFrame({"a": [1] * 1000, "b": [""] * 1000}), pandas.Series([1] * 1000), pandas.RangeIndex(1000), pandas.DataFrame(index=range(1000))]
        for value in values:
            size = len(serializer.prepare(value).text())
            with self.subTest(type(value)):
                serializer.prepare(value, serializer.Options(max_bytes=size)).text()
                with self.assertRaises(serializer.ValueTooLarge):
                    serializer.prepare(value, serializer.Options(max_bytes=size - 1)).text()


class Threads(unittest.TestCase):
    def test_that_change_a_value_while_it_is_read_leave_json_or_an_error(self):
        shared = {"list": [1] * 50, "dict": {str(i): i for i in range(50)}}
        stop = threading.Event()

        def spoil():
            n = 0
            while not stop.is_set():
                n += 1
                shared["list"].append(1j if n % 2 else 1)
                shared["dict"][n % 70] = object() if n % 3 else n
                if len(shared["list"]) > 100:
                    del shared["list"][50:]
                shared["dict"].pop(n % 70, None)

        thread = threading.Thread(target=spoil)
        thread.start()
        try:
            for _ in range(300):
                try:
                    parse(serializer.prepare(shared).text())
                except serializer.ResultError:
                    pass
        finally:
            stop.set()
            thread.join()


class LibrariesThatLie(unittest.TestCase):
    def test_in_sys_modules_change_nothing_that_is_not_theirs(self):
        class Fake:
            def __getattr__(self, name):
                return lambda *a, **k: "forged"

        saved = {name: sys.modules.get(name) for name in ("numpy", "pandas", "datetime", "decimal", "enum")}
        import datetime

        day, plain = datetime.date(2024, 1, 2), {"a": [1, None]}
        try:
            for name in saved:
                sys.modules[name] = Fake()
            found = []
            for value in (day, plain, [day]):
                try:
                    found.append(parse(serializer.prepare(value).text()))
                except serializer.ResultError as error:
                    found.append(error.code)
            self.assertEqual(found[1], plain)
        finally:
            for name, module in saved.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module


class LowDigitLimit(unittest.TestCase):
    def test_of_the_script_does_not_reach_the_result(self):
        before = sys.get_int_max_str_digits()
        try:
            sys.set_int_max_str_digits(640)
            value = {"n": [10**700, -(10**4000)], 10**800: 1}
            text = serializer.prepare(value).text()
            self.assertEqual(sys.get_int_max_str_digits(), 640)
        finally:
            sys.set_int_max_str_digits(before)
        self.assertEqual(parse(text), {"n": [10**700, -(10**4000)], str(10**800): 1})


class PlainValues(unittest.TestCase):
    def test_give_the_text_of_json_dumps(self):
        values = [
            {"a": [1, 2.5, "x", None, True, {"b": []}], "c": "\x00\"\\\u2028"}, [0.1, 1e-7, 1e16, -0.0], [{}, [], ""], {"é": "日本"},
            [[i, str(i), i / 3] for i in range(200)],
        ]
        for value in values:
            expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            self.assertEqual(serializer.dumps(value), expected)


if __name__ == "__main__":
    unittest.main()
