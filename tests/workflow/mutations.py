# SPDX-License-Identifier: Apache-2.0
"""Makes many wrong workflows out of right ones: tokens are dropped, doubled, swapped or replaced by
others, lines likewise. Reproducible by seed."""

import io
import random
import tokenize

_REPLACEMENTS = [
    "START", "END", "None", "True", "-True", "-1", "1e999", "1j", "...", "b'x'", "f'x{1}'", "'x'", "''", "'a'",
    "'__start__'", "'[[secret]]'", "'{{state.x}}'", "{}", "[]", "()", "{'k': 1}", "{**{}}", "{1: 2}", "{'k'}",
    "[*[]]", "lambda: 0", "[i for i in ()]", "x[0]", "(yield)", "x._y", "_x", "g", "graph", "StateGraph()",
    "graph.compile()", "graph.compile(1)", "SetVariableNode()", "SetVariableNode(name='q')", "Nope()",
    "PostgresNode()", "a.B()", "WorkflowTool()", "WorkflowTool(name='t', description='d', graph=graph)",
    "orcheo_workflow()", "helper()", "**{}", "*()", "k=1", "name='z'", "variables={}", "1 + 2", "'a' + 'b'",
    "not True", "--1", "'a' 'b'", "(1,)", "0x10", "10**2", "AgentNode", "AgentNode(ai_model='m')", "Query",
]
_LINES = [
    "    pass", "    x = 1", "    return", "    return graph", "    return graph.compile(x=1)", "    for i in (): pass",
    "    graph.add_edge(START, END)", "    graph.add_edge(END, 'a')", "    graph.compile()", "    print(1)", "    'text'",
    "    graph.set_entry_point('a')", "    graph.set_finish_point()", "    graph.add_node('a', graph)",
    "    graph.add_node('n', SetVariableNode(variables={}))", "    graph = StateGraph()", "    x = y = Z()",
    "    graph.add_conditional_edges('a', {'path': 'p', 'mapping': {'k': END}})", "    inner = StateGraph()",
    "import os", "from orcheo.x import *", "from . import a", "x = 1", "class A: pass", "class A(CodeNode): pass",
    "class A(CodeNode):\n    x = 1\n    def run(self): return 1", "def orcheo_workflow(): pass", "'text'", "@d",
    "class Q(BaseModel):\n    a: int", "def helper():\n    h = StateGraph()\n    return h",
]


def _tokens(source):
    try:
        return [
            token
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
            and token.start[0] == token.end[0]
        ]
    except (tokenize.TokenError, SyntaxError):
        return []


def _replace(lines, token, text):
    row, begin, end = token.start[0] - 1, token.start[1], token.end[1]
    lines[row] = lines[row][:begin] + text + lines[row][end:]


def _mutate_token(source, chance):
    tokens = _tokens(source)
    if not tokens:
        return source
    lines = source.splitlines(keepends=True)
    token = chance.choice(tokens)
    kind = chance.randrange(5)
    if kind == 0:
        _replace(lines, token, "")
    elif kind == 1:
        _replace(lines, token, token.string + " " + token.string)
    elif kind == 2:
        _replace(lines, token, chance.choice(tokens).string)
    else:
        candidates = [t for t in tokens if t.type in (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)] or tokens
        _replace(lines, chance.choice(candidates), chance.choice(_REPLACEMENTS))
    return "".join(lines)


def _mutate_line(source, chance):
    lines = source.splitlines(keepends=True) or ["\n"]
    at = chance.randrange(len(lines))
    kind = chance.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[at])
    elif kind == 2:
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines.insert(at, chance.choice(_LINES) + "\n")
    return "".join(lines)


def mutations(sources, count, seed):
    """Yields (name, source), most of them parseable, each with one to three changes."""
    chance = random.Random(seed)
    names = sorted(sources)
    right = [name for name in names if not name.startswith(("bad_", "dev_bad_"))]
    made = 0
    while made < count:
        name = chance.choice(right if chance.random() < 0.7 else names)
        source = sources[name]
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            source = (_mutate_token if chance.random() < 0.7 else _mutate_line)(source, chance)
        try:
            compile(source, "m", "exec", 0x400)  # to an AST only
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            if chance.random() < 0.95:  # syntax errors are the parser's business
                continue
        made += 1
        yield f"{name}~{made}", source
