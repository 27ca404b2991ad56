# SPDX-License-Identifier: Apache-2.0
"""Runs inside the isolate, in front of author code.

Executed once, when the snapshot is made; the last line never returns. From then on the host calls
`load` and `call` directly in copies of the memory image, passes arguments as objects that it built
and reads the result from the object that comes back:

    (0, value)                            it went well
    (kind, type name, message, traceback) it did not; kinds below
    (5,)                                  not even a report could be made

Author code runs with globals of its own and never sees a name of this file.
"""

import builtins
import gc
import host
import io
import sys

RAISED = 1  # an Exception
EXITED = 2  # SystemExit or another BaseException
SYNTAX = 3  # the source does not compile
SHAPE = 4  # the source defines no `run`
LOST = (5,)
MEMORY = 6  # the builtin MemoryError; the host knows whether an allocation failed

FILE = "workflow"

# Kept under names of our own, since author code loses the builtins.
compile_source = compile
execute = exec
set_attribute = setattr
print_exception = sys.print_exception
collect = gc.collect
memory_error = MemoryError


class CodeNode:
    """What a body sees as `self`: one attribute per injected field."""


def report(kind, error):
    if type(error) is memory_error:
        kind = MEMORY
    text = io.StringIO()
    message = ""
    # Both run the author's own __str__, which may raise anything.
    try:
        message = str(error)
    except BaseException:
        pass
    try:
        print_exception(error, text)
    except BaseException:
        pass
    return kind, type(error).__name__, message, text.getvalue()


def guarded(action, *args):
    try:
        try:
            return action(*args)
        except Exception as error:
            return report(RAISED, error)
        except BaseException as error:
            return report(EXITED, error)
    except BaseException:
        return LOST


async def _coroutine():
    pass


ASYNC = type(_coroutine)
run = None


def load_unguarded(source):
    global run
    try:
        code = compile_source(source, FILE, "exec")
    except (SyntaxError, RuntimeError) as error:  # RuntimeError: too deep, or too long a block
        return report(SYNTAX, error)
    scope = {"__name__": FILE}
    execute(code, scope)
    run = scope.get("run")
    if not callable(run):
        return SHAPE, "", "the source defines no function 'run'", ""
    code = scope = None
    # What the compiler left behind would be copied into every call.
    collect()
    return 0, None


def finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("run awaited something; nothing here can complete it")


def call_unguarded(fields, state, config):
    self = CodeNode()
    for name in fields:
        set_attribute(self, name, fields[name])
    value = run(self, state, config)
    if type(run) is ASYNC:
        value = finish(value)
    return 0, value


def prove(n):
    """How many frames of a recursion still hold what they held before the collections below them."""
    a = [n]
    b = str(n)
    c = {n: b}
    d = (n, b)
    e = n * 0.5
    f = "x" + b
    g = [a, b]
    h = [c, d]
    i = (e, f)
    below = 0
    if n:
        below = prove(n - 1)
    else:
        collect()
    if n % 7 == 0:
        collect()
    held = a == [n] and b == str(n) and c[n] == b and d[1] == b and e == n * 0.5
    held = held and f == "x" + b and g[0][0] == n and h[0][n] == b and i[1] == f
    return below + (1 if held else 0)


def prove_collector(n):
    return 0, prove(n)


def load(source):
    return guarded(load_unguarded, source)


def call(fields, state, config):
    return guarded(call_unguarded, fields, state, config)


# Run with globals of its own, so that not even this function leads back to the harness.
IMPORT_HOOK = """
def refuse_import(name, *_):
    raise ImportError("no module named '%s': code bodies cannot import" % name)
"""


def check(n):
    return guarded(prove_collector, n)


def probe(snippet):
    """For the probes of the artifact: runs a snippet, prints what it raises after a '!'."""
    try:
        exec(snippet, {"__name__": "__main__"})
    except BaseException as error:
        print("!%s: %s" % (type(error).__name__, error))


if host.call("mode", "") == "restricted":
    scope = {}
    exec(IMPORT_HOOK, scope)
    builtins.__import__ = scope["refuse_import"]
    del scope
else:
    builtins.probe = probe
gc.collect()
host.call("ready", "%d %d %d %d" % (id(load), id(call), id(check), id(builtins)))
