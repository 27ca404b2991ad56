# SPDX-License-Identifier: Apache-2.0
"""The same bodies on Orcheo's runner and on ours: values, errors of the guest, and the class of each kind of failure."""

import json
import unittest

from orcheo.sandbox import exceptions
from orcheo.sandbox.runner import MicroPythonSandboxRunner as Theirs

import caisson
from caisson import MicroPythonSandboxRunner as Ours
from ending import run_tests

EMPTY = {"state": {}, "config": {"configurable": {}}, "configurable": {}}
FULL = {
    "state": {"inputs": {"n": 3, "big": 1 << 90, "f": 1.5, "list": [1, None, True, "é\n\"x"]}, "node_results": {"a": {"b": {"c": [1, 2]}}}},
    "config": {"configurable": {"thread_id": "t"}},
    "configurable": {"threshold": 6, "labels": ["low", "high"], "nested": {"k": [1, {"m": "n"}]}},
}

# Both give the same envelope.
SAME = {
    "empty": "return {}",
    "fields": "return {'t': self.threshold, 'l': self.labels[1], 'n': self.nested}",
    "state": "return {'i': state['inputs'], 'c': config, 'deep': state['node_results']['a']['b']['c'][1]}",
    "tuple": "return {'a': (1, (2,), ())}",
    "integers": "return {'a': 2 ** 100, 'b': -(2 ** 64), 'c': 10 ** 30 % 7}",
    "floats": "return {'a': 0.1 + 0.2, 'b': 1e16, 'c': -0.0, 'd': 5e-324, 'e': 100000000.0}",
    "strings": "return {'a': 'x\\n\\t\\x01', 'b': 'ä€', 'c': ''}",
    "loop": "total = 0\nfor i in range(1000):\n    total += i\nreturn {'t': total}",
    "function": "def twice(x):\n    return x * 2\nreturn {'v': [twice(x) for x in range(5)]}",
    "class": "class P:\n    def __init__(self, x):\n        self.x = x\nreturn {'v': P(3).x}",
    "conditional": "if state['inputs']['n'] > 2:\n    return {'v': 'big'}\nreturn {'v': 'small'}",
    "early": "for x in state['inputs']['list']:\n    if x is None:\n        return {'v': 'none'}\nreturn {'v': 'all'}",
    "try": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    return {'v': str(e)}\nreturn {}",
    "format": "return {'v': f\"{1.23456:.2f} {'a'!r} {7:03d}\", 'w': '%s-%d' % ('x', 4)}",
    "nesting": "v = 1\nfor _ in range(100):\n    v = [v]\nreturn {'v': v}",
    "null": "return None",
    "no return": "x = 1",
    "raises alone": "raise ValueError('boom')",
    "list": "return [1, 2]",
    "number": "return 7",
    "text": "return 'x'",
    "raises": "raise ValueError('no good')\nreturn {}",
    "raises without text": "raise RuntimeError\nreturn {}",
    "two arguments": "raise ValueError('a', 2)\nreturn {}",
    "own exception": "class Mine(Exception):\n    pass\nraise Mine('x')\nreturn {}",
    "key error": "return {'v': state['missing']}",
    "index error": "return {'v': [1][5]}",
    "zero division": "return {'v': 1 // 0}",
    "type error": "return {'v': 1 + 'a'}",
    "name error": "return {'v': foo}",
    "cycle": "a = []\na.append(a)\nreturn {'v': a}",
}

# Both raise the same class.
FAILURES = {
    "endless loop": ("while True:\n    pass\nreturn {}", {}, "SandboxLimitError"),
    "little fuel": ("return {'v': sum(range(100000))}", {"fuel": 2_000_000}, "SandboxLimitError"),
    "wall clock": ("while True:\n    pass\nreturn {}", {"fuel": 10**15, "wall_timeout_seconds": 0.3}, "SandboxLimitError"),
    "memory": ("a = []\nwhile True:\n    a.append('x' * 100000 + str(len(a)))\nreturn {}", {"fuel": 10**15}, "SandboxLimitError"),
    "one large string": ("return {'v': len('x' * 300000000)}", {"fuel": 10**15}, "SandboxLimitError"),
    "output": ("return {'v': 'x' * 5000}", {"max_output_bytes": 1000}, "SandboxOutputError"),
    "set": ("return {'v': {1, 2}}", {}, "SandboxOutputError"),
    "bytearray": ("return {'v': bytearray(b'a')}", {}, "SandboxOutputError"),
    "function": ("def f():\n    pass\nreturn {'v': f}", {}, "SandboxOutputError"),
    "object": ("return {'v': object()}", {}, "SandboxOutputError"),
    "not a number": ("return {'v': float('nan')}", {}, None),
    "system exit": ("raise SystemExit\nreturn {}", {}, "SandboxOutputError"),
    "system exit 0": ("raise SystemExit(0)\nreturn {}", {}, "SandboxOutputError"),
    "system exit 3": ("raise SystemExit(3)\nreturn {}", {}, "SandboxExecutionError"),
    "system exit text": ("raise SystemExit('bye')\nreturn {}", {}, None),
    "keyboard interrupt": ("raise KeyboardInterrupt\nreturn {}", {}, "SandboxExecutionError"),
    "base exception": ("raise BaseException('x')\nreturn {}", {}, "SandboxExecutionError"),
    "guest syntax": ("match 1:\n    case 1:\n        return {}\nreturn {}", {}, "SandboxExecutionError"),
    "body syntax": ("return {", {}, "SandboxExecutionError"),
}


def outcome(runner, body, inputs, node_id="n"):
    try:
        return runner.run(body, inputs, node_id=node_id)
    except Exception as error:
        return error


class Bodies(unittest.TestCase):
    maxDiff = None

    def test_signature_and_defaults(self):
        import inspect

        theirs, ours = inspect.signature(Theirs), inspect.signature(Ours)
        for name, parameter in theirs.parameters.items():
            self.assertEqual(ours.parameters[name].default, parameter.default, name)
            self.assertEqual(ours.parameters[name].kind, parameter.kind, name)
        self.assertEqual(list(inspect.signature(Theirs.run).parameters), list(inspect.signature(Ours.run).parameters))
        self.assertEqual(set(Theirs().describe()), set(Ours().describe()))

    def test_the_same_envelopes(self):
        theirs, ours = Theirs(), Ours()
        for name, body in SAME.items():
            with self.subTest(name):
                self.assertEqual(outcome(ours, body, FULL), outcome(theirs, body, FULL))
                # 1, 1.0 and True are three values.
                self.assertEqual(json.dumps(outcome(ours, body, FULL), sort_keys=True),
                                 json.dumps(outcome(theirs, body, FULL), sort_keys=True))

    def test_the_same_classes_of_failures(self):
        for name, (body, limits, expected) in FAILURES.items():
            with self.subTest(name):
                theirs, ours = outcome(Theirs(**limits), body, EMPTY), outcome(Ours(**limits), body, EMPTY)
                self.assertIsInstance(theirs, exceptions.SandboxError)
                self.assertIs(type(ours), type(theirs), f"{ours!r} for {theirs!r}")
                self.assertEqual((ours.node_id, str(ours).split(":")[0]), ("n", "CodeNode 'n'"))
                if expected:
                    self.assertEqual(type(ours).__name__, expected)
                if expected in ("SandboxLimitError", "SandboxExecutionError") and "syntax" not in name:
                    self.assertEqual(ours.raw_message, theirs.raw_message)

    def test_limits_that_are_none(self):
        for limit in ("memory_bytes", "fuel", "wall_timeout_seconds", "max_output_bytes"):
            for runner in (Theirs(**{limit: 0}), Ours(**{limit: 0})):
                self.assertIs(type(outcome(runner, "return {}", EMPTY)), ValueError)

    def test_where_ours_is_right(self):
        # Orcheo indents the lines of a string with those of the code.
        body = "text = '''a\nb'''\nreturn {'v': len(text)}"
        self.assertEqual((Ours().run(body, EMPTY), Theirs().run(body, EMPTY)), ({"update": {"v": 3}}, {"update": {"v": 7}}))
        # Less memory than the interpreter starts with is a limit; Orcheo reports the exit of its guest.
        self.assertIs(type(outcome(Ours(memory_bytes=1 << 20), "return {}", EMPTY)), exceptions.SandboxLimitError)
        missing = [runner.run("return {'v': self.missing}", EMPTY)["error"] for runner in (Ours(), Theirs())]
        self.assertEqual([each["type"] for each in missing], ["AttributeError"] * 2)
        self.assertTrue(all(each["message"].endswith("object has no attribute 'missing'") for each in missing))

    def test_inputs_without_json_form(self):
        nan = EMPTY | {"state": {"x": float("nan")}}
        for runner in (Theirs(), Ours()):
            self.assertIsInstance(outcome(runner, "return {}", nan), exceptions.SandboxExecutionError)
            self.assertIsInstance(outcome(runner, "return {}", EMPTY | {"state": {"x": object()}}), TypeError)

    def test_what_orcheo_would_run_and_we_refuse(self):
        for body in ("import os\nreturn {}", "return {'v': ().__class__}", "return {'v': open('/etc/passwd')}"):
            refused = outcome(Ours(), body, EMPTY)
            self.assertIsInstance(refused, exceptions.SandboxExecutionError)
            self.assertIn("the body was refused", str(refused))

    def test_text_beyond_the_basic_plane_survives_ours(self):
        self.assertEqual(Ours().run("return {'v': state['t']}", EMPTY | {"state": {"t": "\U0001f40d"}}), {"update": {"v": "\U0001f40d"}})

    def test_isolates_that_cannot_be_had(self):
        with caisson.Engine(workers=1, data_dir="/nonexistent") as engine:
            raised = outcome(Ours(engine=engine), "return {}", EMPTY)
        self.assertIs(type(raised), exceptions.SandboxRuntimeUnavailableError)


if __name__ == "__main__":
    run_tests()
