# SPDX-License-Identifier: Apache-2.0
"""Runs the body of a code node: the source defines `run(self, state, config)`, sync or async, and
the dict that it returns is the result.

The inputs are {"self": {...}, "state": {...}, "config": {...}}. To the channel (caisson_block.Channel)
goes the result as one final `done`; or an `error` in the form of caisson_block, with two faults more,
"memory" and "protocol" (no run, or a result without JSON form); then `end`.

Lines and frames are those of the author's source alone.
"""

import json
import sys
import traceback

FILE = "workflow"
MAX_FRAMES = 100


class CodeNode:
    """What a body sees as `self`: one attribute per injected field."""

    def __init__(self, fields):
        self.__dict__.update(fields)


class NoResult(Exception):
    """The body broke the contract: it defines no run, or returned what has no JSON form."""


def finish(coroutine):
    """A coroutine that awaits nothing but coroutines; nothing here could complete anything else."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("run awaited something; nothing here can complete it")


def call(source, inputs):
    scope = {"__name__": FILE, "__builtins__": __builtins__}
    exec(compile(source, FILE, "exec"), scope)
    run = scope.get("run")
    if not callable(run):
        raise NoResult("the source defines no function 'run'")
    value = run(CodeNode(inputs["self"]), inputs["state"], inputs["config"])
    if hasattr(value, "send") and hasattr(value, "throw"):
        value = finish(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise NoResult(f"the result has no JSON form: {error}") from None


def own_frames(error):
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if frame.filename == FILE]


def text_of(error):
    """A failing __str__ must not hide the error; lone surrogates are no JSON."""
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception:
        return ""


def describe(error):
    """The parts of a report that concern an exception."""
    message = text_of(error)
    report = {"type": type(error).__name__, "message": message}
    frames = own_frames(error)
    if isinstance(error, SyntaxError) and error.filename == FILE:
        report |= {"message": error.msg, "line": error.lineno or 0, "column": error.offset or 0}
    elif frames:
        report |= {"line": frames[-1].lineno or 0, "column": (frames[-1].colno or 0) + 1}
    kept = frames[: MAX_FRAMES // 2] + frames[-(MAX_FRAMES // 2) :] if len(frames) > MAX_FRAMES else frames
    report["frames"] = [{"line": frame.lineno, "function": frame.name} for frame in kept]
    report["traceback"] = "".join(
        f'  File "{FILE}", line {frame.lineno}, in {frame.name}\n' for frame in kept
    ) + f"{report['type']}: {report['message']}\n"
    return report


exit_code_of = SystemExit.__dict__["code"].__get__  # a script's class may override it


def guarded(source, inputs, channel, load):
    """None, or the fields of an error."""
    try:
        channel.send("done", call(source, load(inputs)), True)
        return None
    except NoResult as error:
        return {"fault": "protocol", "message": text_of(error)}
    except SyntaxError as error:
        own = error.filename == FILE and not own_frames(error)
        return {"fault": "syntax" if own else "raised"} | describe(error)
    except MemoryError as error:
        return {"fault": "memory"} | describe(error)
    except Exception as error:
        return {"fault": "raised"} | describe(error)
    except BaseException as error:
        code = exit_code_of(error) if issubclass(type(error), SystemExit) else None
        code = 0 if code is None else code if type(code) is int and abs(code) < 256 else 1
        return {"fault": "exited", "exit_code": code} | describe(error)


def run(source, inputs, channel, load):
    """`load` makes the value of `inputs`."""
    error = guarded(source, inputs, channel, load)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    if error is not None:
        channel.send("error", json.dumps(error, ensure_ascii=True).encode())
    channel.send("end", b"{}")
