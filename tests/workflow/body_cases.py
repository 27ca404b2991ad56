# SPDX-License-Identifier: Apache-2.0
"""Code bodies to compare: fixed ones for each rule and each trap of the body's text, and random ones."""

import random

FRAME = '''class C(CodeNode):
    threshold: int = 6
    labels: list = ["low", "high"]

{run}

def orcheo_workflow():
    graph = StateGraph(dict)
    graph.add_node("n", C(name="n", extra=1))
    graph.add_edge(START, "n")
    return graph
'''

# Bodies as lines below `def run(self, state, config):`.
BODIES = [
    "return {}", "return None", "return", "pass", "raise ValueError('x')", "import os\nreturn {}",
    "from os import path\nreturn {}", "x = __import__\nreturn x", "__x = 1\nreturn {}",
    "return state.__class__", "state.__dict__ = 1\nreturn {}", "return await state",
    "async for x in y: pass\nreturn 1", "async with x: pass\nreturn 1",
    "async def f(): pass\nreturn 1", "yield 1", "return (yield)", "yield from x\nreturn 1",
    "def f():\n    yield 1\nreturn f", "f = lambda: (yield)\nreturn 1", "return self.threshold",
    "return self.extra", "return self.missing", "self.other = 1\nreturn {}", "return self.name",
    "def f(self):\n    return self.nope\nreturn f", "def f():\n    return 1", "f = lambda: 1",
    "class A:\n    return 1", "if state:\n    return 1", "for x in state:\n    return x",
    "try:\n    pass\nfinally:\n    return 1", "with state:\n    return 1",
    "match state:\n    case 1:\n        return 1", "print(1)\nreturn 1", "print = 1\nreturn {}",
    "format = 1\nreturn format", "def f(input):\n    return input\nreturn f", "return open",
    "return [getattr(x, 'y') for x in state]", "return ValueError", "return Ellipsis", "return ...",
    "return NotImplemented", "return UnicodeDecodeError", "return IOError", "del eval\nreturn 1",
    "return state.print", "return dict(print=1)", "return 'print'", "return f'{print}'",
    "return f'{self.nope!r:>{print}}'", "x: print = 1\nreturn x", "global print\nreturn 1",
    "class __A: pass\nreturn 1", "def __f(): pass\nreturn 1", "def f(__x): pass\nreturn f(__x=1)",
    "class A:\n    def __init__(self): pass\nreturn 1", "return {'__class__': 1}", "return _x",
    "return [x async for x in y]", "return {**state}", "return [*state]",
    "a = print\nb = self.nope\nimport os", "if a.b.c.d.__e:\n    pass\nimport os\nreturn 1",
    "x = (y.__a, __b)\nreturn 1", "return (lambda: self.nope)", "return self . threshold",
    "# first\nx = 1\n# between\nreturn x\n# last", '"""doc"""\nreturn 1',
    '"""doc\n   more\n"""\nreturn 1', 'x = """a\n  b"""\nreturn x', "x = '''a\n\n   \n'''\nreturn x",
    "x = 1  \n\n   \nreturn x", "x = (1,\n2)\nreturn x", "x = [\n    1,\n\t2,\n]\nreturn x",
    "x = 1; y = 2; return x", "x = 1;\nreturn x;", "x = \\\n  1\nreturn x", "if x: return 1",
    "def f():\n    '''doc\n      of f'''\n    return 1\nreturn f", "@staticmethod\ndef f(): pass\nreturn f",
    "@a\n@b\nclass A: pass\nreturn A", "x = 1\n@a\ndef f(): pass\nreturn f",
    "x = 'a\x0cb'\nreturn x", "# a\u2028b\nx = 1\nreturn x", "x = 'a\u2028b'\nreturn x",
    "x = 'a\x85b'\nreturn x", "x = 'a\x1cb'\nreturn x", "x = 1 # \x0b\nreturn x", "x = 1\n\x0cy = 2\nreturn x",
    "return 1 # after \u2029 it", "x = f'''\n  {state}\n'''\nreturn x", "x = b'''a\n   b'''\nreturn x",
    "x = 'a' 'b'\nreturn x", "x = r'\\n'\nreturn x", "return 'é'", "ünï = 1\nreturn ünï",
    "if state:\n  return 1\nelse:\n    return 2", "if state:\n\treturn 1\nreturn 2",
    "return {'a': 1,\n        'b': 2}", "return '''one\ntwo'''", "x = 1\nreturn x  # why",
    "return self.threshold if self.labels else self.missing", "x = self\nreturn x.anything",
    "type X = int\nreturn 1", "def f[T](x): return x\nreturn f", "def f(a, /): return a\nreturn f",
    "try:\n    pass\nexcept* ValueError:\n    pass\nreturn 1", "return x[*y]", "x, *y = state\nreturn y",
    "return copyright", "return sum(state, start=1)", "nonlocal q\nreturn 1",
    "with open('x') as f: pass\nreturn 1", "return __name__", "return state[__debug__]",
]

# Whole definitions of run, for the texts that depend on the signature.
RUNS = [
    "    def run(self, state, config): return 1",
    "    def run(self, state, config): x = 1; return x",
    "    def run(self, state, config): x = (1,\n  2); return x",
    "    def run(self, state, config): x = '''a\n   \n b'''; return x",
    "    def run(self, state, config): return 1 # c",
    "    def run(self, state, config): \"doc\"; return 1",
    "    def run(self,\n            state, config):\n        return 1",
    "    def run(self,\n            state, config): return 1",
    "    def run(\n        self, state, config\n    ): x = 1; return x",
    "    def run(self, state, config):\n\n\n        return 1",
    "    def run(self, state, config):\n        # only a comment before\n        return 1",
    "    def run(self, state, config): # comment\n        return 1",
    "    def run(self, state, config):\n  # left\n        x = 1\n# far left\n        return x",
    "    def run(self, state, config):\n      return 1",
    "    def run(self, state, config):\n\treturn 1\n",
    "    def run(self, state, config):\n\tx = 1\n\t# c\n\treturn x\n",
    "    def run(self, state, config):\n        x = '''\nleft'''\n        return x",
    "    def run(self, state, config):\n        '''doc\nleft'''\n        return 1",
    "    async def run(self, state, config):\n        return 1",
    "    async def run(self, state, config):\n        return await state",
    "    def run(self, state: print, config):\n        return 1",
    "    def run(self, state, config=open):\n        return 1",
    "    def run(self, state, config) -> __x:\n        return 1",
    "    def run(self, s, c):\n        return s",
    "    def run():\n        return 1",
    "    def run[T](self, state: T):\n        return 1",
    "    def run(self, state, config, *, k=1):\n        return k",
    "    def run(self, state, config):\n        return 1\n    def run(self, state, config):\n        return 2",
    "    @staticmethod\n    def run(self, state, config):\n        return 1",
    "    def run(self, state, config): \\\n        return 1",
    "    def run(self, state, config):\n        \\\n  x = 1\n        return x",
    "    x = '\x0c'\n    def run(self, state, config):\n        return 1",
    "    # \u2028\n    def run(self, state, config):\n        return 1",
]

LINES = ["x = 1", "y = state['a']", "x = self.threshold + 1", "z = [i for i in range(3)]",
         "x = '''one\n  two\n'''", "'''a bare\n   string'''", "# a comment", "", "   ", "x = (1,\n     2)",
         "if x:\n    y = 2\nelse:\n    y = 3", "for i in state:\n    if i: continue\n    x += i",
         "def f(a):\n    '''doc\n    more'''\n    return a", "while x > 1: x -= 1",
         "try:\n    x = 1 / 0\nexcept ZeroDivisionError as e:\n    x = str(e)", "x = f'{x} {y:>3}'",
         "x = 1; y = 2", "class A:\n    k = 1\n    def g(self):\n        return self.k", "x = \\\n    3",
         "x = print", "x = self.nope", "x = y.__class__", "import os", "x = 'a\x0cb'", "x = 'é\u2028'",
         "@f\ndef g(): pass", "del x", "assert x, 'm'", "x = {'a': [1, {'b': 2}]}", "lambda q: q",
         "with x as y:\n    pass", "raise ValueError(x) from None", "x = yes if no else maybe",
         "x = \"\"\"\ttab\n\"\"\"", "return x", "return {'v': x}", "x: int = 2", "global g", "pass"]


def indented(body, indent):
    return "\n".join(indent + line if line.strip() else line for line in body.split("\n"))


def of_body(body, indent="        "):
    return FRAME.replace("{run}", "    def run(self, state, config):\n" + indented(body, indent))


def cases(count, seed):
    for body in BODIES:
        yield body, of_body(body)
    for run in RUNS:
        yield run, FRAME.replace("{run}", run)
    for body in BODIES[:70:7]:
        yield "crlf: " + body, of_body(body).replace("\n", "\r\n")
    rng = random.Random(seed)
    for number in range(count):
        lines = [rng.choice(LINES) for _ in range(rng.choice([1, 2, 3, 3, 5, 8]))]
        if rng.random() < 0.8:
            lines.append("return {'x': 1}")
        source = of_body("\n".join(lines), rng.choice(["        ", "      ", "\t\t", "         "]))
        if rng.random() < 0.1:
            source = source.replace("\n", rng.choice(["\r\n", "\r"]))
        yield f"random {number}", source
