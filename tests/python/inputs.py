# SPDX-License-Identifier: Apache-2.0
"""Inputs taken from the CPython that runs this: its files, the snippets in its tests, mutations."""

import ast
import doctest
import os
import random
import re
import sysconfig
import warnings

# Tests of CPython whose string literals are sources, good and bad.
SNIPPET_TESTS = """
    annotationlib ast asyncgen augassign bytes class cmd_line_script code_module codeop compile complex
    contextlib coroutines decorators dictcomps dis doctest eof exception_variations exceptions
    except_star flufl float fstring funcattrs future future_stmt generator_stop generators genexps
    global grammar inspect int int_literal keywordonlyarg lambda listcomps long named_expressions
    nonlocal opcodes parser patma peepholer pep646_syntax positional_only_arg print raise repl scope
    setcomps source_encoding string_literals strtod subclassinit super symtable syntax
    sys_settrace tabnanny tokenize trace traceback try_stmt tuple type_aliases type_annotations
    type_comments type_params typechecks typing unicode_identifiers unpack unpack_ex unparse
    utf8source with yield_from
""".split()

_TOKEN = re.compile(
    r"\n[ \t]*|[ \t\f]+|#[^\n]*|[rRbBuUfF]{0,2}(?:'''|\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|\d[\w.]*|\w+|\*\*=|//=|>>=|<<=|\.\.\.|[-+*/%@&|^=<>!:]=|->|\*\*|//|<<|>>|.",
    re.DOTALL,
)

_EXTRA_TOKENS = """
    ( ) [ ] { } , : . ; = := == != + - * ** / // % @ & | ^ ~ < > -> += ... ! \\ $ ? ' " ''' f" f' {x} {x!r}
    if else elif for in while def class lambda return yield from import as with try except finally
    raise not and or is None True False await async global nonlocal del pass break match case type _
    0 1 0x 1_ 0777 1.5j 1e b'a' u'a' f'{x}' f'{x!z}' rb'' *a **a x y print
""".split() + ["\n", "\n    ", "\n  ", "\t", " ", "\\\n", "\x0c", "\u00e9", "\u20ac", "\r"]


def standard_library():
    """Every Python file below the standard library, sorted, third-party packages left out."""
    root = sysconfig.get_path("stdlib")
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(d for d in subfolders if d not in ("site-packages", "__pycache__"))
        found += [os.path.join(folder, f) for f in files if f.endswith((".py", ".pyw"))]
    return sorted(found)


def test_files():
    root = os.path.join(sysconfig.get_path("stdlib"), "test")
    for folder, _, files in os.walk(root):
        for name in sorted(files):
            if name.startswith("test_") and name[5:-3] in SNIPPET_TESTS:
                yield os.path.join(folder, name)


def _snippets_of(text):
    yield text
    yield text.strip() + "\n"
    if ">>>" in text:
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            return
        yield from (example.source for example in examples)


def snippets(path):
    """The string literals of a test file, as they are, stripped, and the examples within them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open(path, "rb") as file:
            try:
                tree = ast.parse(file.read())
            except SyntaxError:
                return
    seen = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        for text in _snippets_of(node.value):
            if text not in seen and len(text) < 20000 and _is_encodable(text):
                seen.add(text)
                yield text


def _is_encodable(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def statements(source):
    """The statements of a source that are short enough to be worth mutating, as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    lines = source.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.end_lineno - node.lineno < 12:
            part = lines[node.lineno - 1 : node.end_lineno]
            indent = part[0][: node.col_offset]
            if indent.strip():
                continue
            yield "\n".join(l.removeprefix(indent) for l in part) + "\n"


def tokens(source):
    return _TOKEN.findall(source)


def mutate(source, chance):
    """One to three small edits of the tokens."""
    parts = tokens(source)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if len(parts) < 2:
            break
        at = chance.randrange(len(parts) - 1)
        action = chance.randrange(6)
        if action == 0:
            del parts[at]
        elif action == 1:
            parts.insert(at, parts[at])
        elif action == 2:
            parts[at], parts[at + 1] = parts[at + 1], parts[at]
        elif action == 3:
            parts.insert(at, chance.choice(_EXTRA_TOKENS))
        elif action == 4:
            parts[at] = chance.choice(_EXTRA_TOKENS)
        else:
            other = chance.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
    return "".join(parts)


def random_mutations(path, count, seed):
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read()
    except (UnicodeDecodeError, OSError):
        return
    chance = random.Random(f"{os.path.basename(path)}:{seed}")
    pool = list(statements(source))
    if not pool:
        return
    for _ in range(count):
        yield mutate(chance.choice(pool), chance)


def minimise(source, still_fails):
    """Drops lines, then tokens, while the failure stays."""
    for split in (lambda text: text.splitlines(keepends=True), tokens, list):
        parts = split(source)
        size = max(1, len(parts) // 2)
        while size and parts and len(parts) < 5000:
            at = 0
            while at < len(parts):
                shorter = parts[:at] + parts[at + size :]
                if still_fails("".join(shorter)):
                    parts = shorter
                else:
                    at += size
            size //= 2
        source = "".join(parts)
    return source
