# SPDX-License-Identifier: Apache-2.0
"""Runs the script of a logic block inside an interpreter of its own and says what came of it.

The runtime supplies a Channel (below) and calls

    run(job, channel)

once. The harness gives the script its names (documents, user, artifacts, sources, table, done, debug;
print is Python's own), runs it under the file name "script.py", and sends what it produces as it is
produced. It only sends: what counts, how a run settles, and which limit was hit is the supervisor's
word, and a script that finds the channel can but call its own `done` by another way.

kind       text (JSON, UTF-8)                                   when
done       the result; `final` as the script said               done(result, final=True)
part       an array: items of a list, whose last piece comes    a list longer than `piece_bytes`
           with the next done
debug      the value                                            debug(value)
warning    {"code","message","path"}                            before the done or debug that it is about
error      see below                                            the script raised, does not compile, or exited
end        {}                                                   always last, once

error: {"fault","type","message","line","column","frames","traceback","exit_code","notes","chain","exceptions"}
fault       "raised"; "syntax": the script is no Python; "exited": SystemExit with a code other than 0, or
            another exception that is no Exception (KeyboardInterrupt)
type        the class, "KeyError", with its module when it has one that says something
line        in the script, from 1: where the exception left the script's own code, also when it was raised in a
            library or in text that the script gave to exec; of a syntax error in the script its place; 0: none
column      from 1, in characters; 0: not known
frames      [{"line","column","function"}] of the script alone, outermost first, at most 100
traceback   as Python prints it, of these frames
exit_code   of "exited": 3 of sys.exit(3), 1 of sys.exit("text"), 130 of KeyboardInterrupt
notes       add_note(...) texts
chain       [{"relation": "cause" or "context", "type","message","line","column"}], the nearest first
exceptions  of a group: its members, [{"type","message","line","column","exceptions"}]

A script may await at its top level. sys.exit(0), sys.exit() and the end of the text end a run without an error. Threads that the script has
started and that are no daemons are waited for, as Python does, before `end`.
"""

import gc
import io
import marshal
import sys
from _json import make_scanner
from _thread import RLock
from builtins import (  # a script that rebinds them changes nothing in here
    AttributeError,
    BaseException,
    BaseExceptionGroup,
    bool,
    bytearray,
    bytes,
    classmethod,
    compile,
    dict,
    enumerate,
    eval,
    Exception,
    float,
    getattr,
    id,
    int,
    isinstance,
    issubclass,
    KeyboardInterrupt,
    len,
    list,
    max,
    MemoryError,
    memoryview,
    min,
    NotImplementedError,
    object,
    print,
    property,
    RecursionError,
    RuntimeError,
    staticmethod,
    StopIteration,
    str,
    SyntaxError,
    SystemExit,
    type,
    UnicodeDecodeError,
    ValueError,
)

import caisson_serializer as serializer

SCRIPT = "script.py"
FRAMES_SHOWN = 100
CHAIN_SHOWN = 10
GROUP_SHOWN = 20
MESSAGE_SHOWN = 20_000  # characters
TRACEBACK_SHOWN = 100_000


class ChannelClosed(Exception):
    """The host has closed the channel: the run has settled, or its reader has gone."""


class Channel:
    """What a runtime supplies. This class only documents it; it need not be inherited from."""

    def send(self, kind: str, text: bytes, final: bool = True) -> None:
        """Hands one message to the host, in order, and may block while the host is not ready for it.
        `final` is only meant for kind "done". Raises ChannelClosed when nobody listens any more.
        May be called by any thread of the script, one at a time."""
        raise NotImplementedError


# --- Inputs ---------------------------------------------------------------------------------------


class _ScannerContext:
    """What the C scanner asks the json module's decoder for."""

    strict = True
    object_hook = None
    array_hook = None  # since Python 3.15
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo = {}

    @staticmethod
    def parse_constant(name):
        raise ValueError(f"{name} is no JSON")


def parse_json(text):
    """Strict JSON, without loading the json package: a script that needs no more should not pay."""
    if isinstance(text, (bytes, bytearray, memoryview)):
        text = bytes(text).decode("utf-8")
    blank = " \t\n\r"
    start = len(text) - len(text.lstrip(blank))
    try:
        value, end = make_scanner(_ScannerContext)(text, start)
    except StopIteration as stop:
        raise ValueError(f"no JSON value at character {stop.value}") from None
    if text[end:].strip(blank):
        raise ValueError(f"text after the JSON value, at character {end}")
    return value


def load(inputs):
    """The value of these bytes of marshal. While it grows there is no garbage, and looking for some doubles the time."""
    gc.disable()
    try:
        return marshal.loads(inputs)
    finally:
        gc.enable()


class Job:
    """One run. `options` are the serializer's (geometry, surrogates, max_depth, …)."""

    __slots__ = ("artifacts", "documents", "options", "source", "sources", "tables", "user")

    def __init__(self, source, user=None, documents=None, artifacts=None, sources=None, tables=None, options=None):
        self.source = source
        self.user = {} if user is None else user
        self.documents = [] if documents is None else documents
        self.artifacts = [] if artifacts is None else artifacts
        self.sources = [] if sources is None else sources
        self.tables = {} if tables is None else tables
        self.options = serializer.Options(**(options or {}))

    @classmethod
    def read(cls, source, inputs, options=b"{}"):
        """`inputs`: {"user","documents","artifacts","sources","tables"} in the format of marshal, which is read
        several times as fast as JSON; `options`: JSON; `source`: str or bytes."""
        return cls(source, options=parse_json(options), **load(inputs))


# --- Tables ---------------------------------------------------------------------------------------


class Table:
    """The name `table`: reads table fields, {"type":"table","fileId",…} or a JSON text of one. Rows come
    from the host's pack of tables, or are in the field; cells are text. Nothing here raises: what is
    no table is an empty one, what is not there is None."""

    def __init__(self, pack):
        self._pack = pack

    def normalize(self, value):
        field = _table_field(value)
        file = field.get("fileId")
        file = file if isinstance(file, str) else None
        held = self._pack.get(file) if file is not None else None
        if isinstance(held, dict) and held:
            field = held
        return {"type": "table", "columnKeys": _list_of(field, "columnKeys"), "rows": _list_of(field, "rows"), "fileId": file}

    def keys(self, value):
        table = self.normalize(value)
        if table["columnKeys"]:
            return table["columnKeys"]
        first = table["rows"][0] if table["rows"] else None
        return list(first) if isinstance(first, dict) else []

    def rows(self, value):
        return self.normalize(value)["rows"]

    def cell(self, value, row, key):
        rows = self.rows(value)
        row = _index(row)
        if row is None or not 0 <= row < len(rows):
            return None
        return _member(rows[row], self._key(value, key))

    def col(self, value, key):
        key = self._key(value, key)
        return [_member(row, key) for row in self.rows(value)]

    def num(self, value):
        if isinstance(value, str):
            return _number(value.replace(",", "."))
        if isinstance(value, (int, float)):
            return value if value == value else 0
        if value is None or isinstance(value, (bytes, bytearray)):
            return 0
        index = _index(value)  # a numpy integer stays an integer
        return _number(value) if index is None else index

    def _key(self, value, key):
        index = _index(key)
        if index is None:
            return key
        keys = self.keys(value)
        found = keys[index] if 0 <= index < len(keys) else ""
        return found if isinstance(found, str) else ""


def _table_field(value):
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) and value.get("type") == "table" else {}


def _list_of(field, name):
    value = field.get(name)
    return value if isinstance(value, list) else []


def _index(value):
    try:
        return value.__index__()
    except Exception:
        return None


def _member(row, key):
    try:
        return row.get(key)
    except Exception:  # a row that is no object, a key that cannot be one
        return None


def _number(value):
    try:
        number = float(value)
    except Exception:
        return 0
    return number if number == number else 0


# --- done and debug -------------------------------------------------------------------------------


class _Voice:
    """What the script's `done` and `debug` speak with."""

    __slots__ = ("_channel", "_one_at_a_time", "_options")

    def __init__(self, channel, options):
        self._channel = channel
        self._options = options
        self._one_at_a_time = RLock()  # pieces of two lists must not mix

    def done(self, result, final=True):
        """Deliver a result: a list is one document an item. The first final one settles the run."""
        final = bool(final)
        prepared = serializer.prepare(result, self._options)
        with self._one_at_a_time:
            self._warn(prepared)
            if not prepared.is_list:
                return self._send("done", prepared.text(), final)
            last = None
            for piece in prepared.pieces():
                if last is not None:
                    self._send("part", last)
                last = piece
            self._send("done", last, final)

    def debug(self, result):
        """Show a value in the debug log."""
        prepared = serializer.prepare(result, self._options)
        with self._one_at_a_time:
            self._warn(prepared)
            self._send("debug", prepared.text())

    def _warn(self, prepared):
        for warning in prepared.warnings:
            self._send("warning", serializer.prepare(warning).text())

    def _send(self, kind, text, final=True):
        try:
            self._channel.send(kind, text, final)
        except ChannelClosed:
            pass  # the run has settled: what comes after adds nothing


def _functions(voice):
    # Plain functions, as scripts know them; keyword names are part of the contract.
    def done(result, final=True):
        voice.done(result, final)

    def debug(result):
        voice.debug(result)

    done.__doc__, debug.__doc__ = voice.done.__doc__, voice.debug.__doc__
    return done, debug


# --- What went wrong ------------------------------------------------------------------------------

# An exception of the script may override these; what the interpreter has stored is asked for.
_traceback_of = BaseException.__dict__["__traceback__"].__get__
_cause_of = BaseException.__dict__["__cause__"].__get__
_context_of = BaseException.__dict__["__context__"].__get__
_context_hidden = BaseException.__dict__["__suppress_context__"].__get__
_members_of = BaseExceptionGroup.__dict__["exceptions"].__get__
_syntax = {name: SyntaxError.__dict__[name].__get__ for name in ("filename", "lineno", "msg", "offset")}


_exit_code_of = SystemExit.__dict__["code"].__get__


def _is(error, kind):
    """isinstance would ask a hostile exception for its __class__."""
    return issubclass(type(error), kind)


_bases_of = type.__dict__["__bases__"].__get__


def _is_exception(error):
    """An Exception by what its class was made of; its metaclass may have left that out of the mro."""
    classes = [type(error)]
    while classes:
        kind = classes.pop()
        if kind is Exception:
            return True
        classes.extend(_bases_of(kind))
    return False


def _is_syntax_of_script(error):
    return _is(error, SyntaxError) and _syntax["filename"](error) in (SCRIPT, None)


def _message(error):
    try:
        plain = _is(error, SyntaxError) and type(_syntax["msg"](error)) is str
        text = _syntax["msg"](error) if plain and _is_syntax_of_script(error) else str(error)
    except BaseException as second:
        return f"<its text cannot be read: {serializer.type_words(type(second))}>"
    if type(text) is not str:
        text = str.__str__(text)
    if len(text) > MESSAGE_SHOWN:
        text = text[:MESSAGE_SHOWN] + f"… ({len(text)} characters)"
    return serializer.clean_text(text)


def _script_frames(error):
    """[(line, code, span)] of the script alone, outermost first; of very many the first and the last."""
    entries = []
    entry = _traceback_of(error)
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == SCRIPT:
            if len(entries) >= FRAMES_SHOWN:
                del entries[FRAMES_SHOWN // 2]
            entries.append(entry)
        entry = entry.tb_next
    return [(entry.tb_lineno or 0, entry.tb_frame.f_code, _span(entry.tb_frame.f_code, entry.tb_lasti)) for entry in entries]


def _span(code, at):
    """(line, end_line, column, end_column) in bytes from 0, or None."""
    if at < 0:
        return None
    for number, position in enumerate(code.co_positions()):
        if number == at // 2:
            return position if None not in position else None
    return None


class _Text:
    """The script's lines, for columns and tracebacks."""

    def __init__(self, source):
        self.lines = source.split("\n")

    def line(self, number):
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def column(self, number, offset):
        """A byte offset as a column, in characters from 1."""
        line = self.line(number).encode("utf-8", "surrogatepass")
        return len(line[:offset].decode("utf-8", "replace")) + 1


def _place(frames, text):
    line, _, span = frames[-1]
    return line, text.column(span[0], span[2]) if span is not None and span[0] == line else 0


def _where(error, text):
    """(line, column) in the script, 0 where not known."""
    frames = _script_frames(error)
    if frames:
        return _place(frames, text)
    if _is_syntax_of_script(error):
        line, column = _syntax["lineno"](error), _syntax["offset"](error)
        return line if type(line) is int else 0, max(column, 0) if type(column) is int else 0
    return 0, 0


def _brief(error, text):
    line, column = _where(error, text)
    return {"type": _type_name(error), "message": _message(error), "line": line, "column": column}


def _type_name(error):
    words = serializer.type_words(type(error))
    for hidden in ("builtins.", "__main__."):
        words = words.removeprefix(hidden)
    return words


def _chain(error, text):
    found, seen = [], {id(error)}
    while len(found) < CHAIN_SHOWN:
        relation, error = _before(error)
        if error is None or id(error) in seen:
            break
        seen.add(id(error))
        found.append({"relation": relation, **_brief(error, text)})
    return found


def _before(error):
    if _cause_of(error) is not None:
        return "cause", _cause_of(error)
    if _context_of(error) is not None and not _context_hidden(error):
        return "context", _context_of(error)
    return "", None


def _members(error, text, depth=0):
    if not _is(error, BaseExceptionGroup) or depth >= CHAIN_SHOWN:
        return []
    members = _members_of(error)[:GROUP_SHOWN]
    return [{**_brief(member, text), "exceptions": _members(member, text, depth + 1)} for member in members]


def _notes(error):
    notes = getattr(error, "__notes__", ())
    return [serializer.clean_text(str.__str__(note)) for note in notes[:CHAIN_SHOWN] if isinstance(note, str)] if isinstance(notes, list) else []


def _traceback_text(error, text):
    """As Python prints it, with the frames of the script alone."""
    import linecache
    import traceback

    linecache.cache[SCRIPT] = (1, None, [line + "\n" for line in text.lines], SCRIPT)
    simple = len(_chain(error, text)) < CHAIN_SHOWN and not _deep(error)
    shown = traceback.TracebackException.from_exception(error) if simple else None
    if shown is None:
        shown = traceback.TracebackException(type(error), error, None)
        shown.__cause__ = shown.__context__ = None
        shown.stack = traceback.StackSummary.from_list([(SCRIPT, line, code.co_name, None) for line, code, _ in _script_frames(error)])
    _only_script(shown)
    lines, size = [], 0
    for line in shown.format():
        size += len(line)
        if size > TRACEBACK_SHOWN:
            lines.append("…\n")
            break
        lines.append(line)
    return serializer.clean_text("".join(lines))


def _deep(error, limit=1000):
    entry, depth = _traceback_of(error), 0
    while entry is not None and depth <= limit:
        entry, depth = entry.tb_next, depth + 1
    return depth > limit


def _only_script(shown):
    pending = [shown]
    while pending:
        one = pending.pop()
        one.stack[:] = [frame for frame in one.stack if frame.filename == SCRIPT]
        pending += [other for other in (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())) if other is not None]


def _free_frames(error):
    """Lets go of what the script's frames hold, so that there is memory to report with."""
    entry = _traceback_of(error)
    while entry is not None:
        try:
            entry.tb_frame.clear()
        except RuntimeError:
            pass
        entry = entry.tb_next


def describe(error, source, fault, exit_code=None):
    """The fields of an `error` message."""
    text = _Text(source)
    fields = {"fault": fault, **_brief(error, text)}
    if exit_code is not None:
        fields["exit_code"] = exit_code
    fields["frames"] = [
        {"line": line, "column": _place([(line, code, span)], text)[1], "function": serializer.clean_text(code.co_name)}
        for line, code, span in _script_frames(error)
    ]
    for name, make in (("notes", _notes), ("chain", lambda e: _chain(e, text)), ("exceptions", lambda e: _members(e, text))):
        try:
            found = make(error)
        except Exception:  # an exception that spoils its own reading
            continue
        if found:
            fields[name] = found
    try:
        fields["traceback"] = _traceback_text(error, text)
    except BaseException as second:  # the same, of its printing
        fields["traceback"] = f"{fields['type']}: {fields['message']}\n(no traceback: {serializer.type_words(type(second))})\n"
    return fields


# --- The run --------------------------------------------------------------------------------------


def _source_text(source):
    """The script as str; bytes are UTF-8. A mark of byte order in front is left out, as Python does of files."""
    text = source if isinstance(source, str) else bytes(source).decode("utf-8")
    return text.removeprefix("\ufeff")


def _namespace(job, channel):
    done, debug = _functions(_Voice(channel, job.options))
    return {
        # As in the container that blocks were written for: `if __name__ == "__main__"` is false.
        "__name__": "builtins",
        "__builtins__": __builtins__,
        "documents": job.documents,
        "user": job.user,
        "artifacts": job.artifacts,
        "sources": job.sources,
        "table": Table(job.tables),
        "done": done,
        "debug": debug,
    }


def _exit_code(error):
    """Of a SystemExit: 0, an int of at most 255, or 1 for text, which goes to stderr as Python does."""
    code = _exit_code_of(error)
    if code is None:
        return 0
    if issubclass(type(code), int):  # isinstance would ask a hostile code for its __class__
        code = int.__int__(code)
        return code if -255 <= code <= 255 else 255
    print(_message(error), file=sys.stderr)
    return 1


def _wait_for_threads():
    """Python does so at its end, whatever came before; an error settles the run first."""
    threading = sys.modules.get("threading")
    try:
        if threading is not None and threading.active_count() > 1:
            threading._shutdown()  # joins, and tells the pools of concurrent.futures to stop
    except BaseException:  # the script may have put anything there
        pass


# ast.PyCF_ALLOW_TOP_LEVEL_AWAIT and inspect.CO_COROUTINE, without loading either module
_TOP_LEVEL_AWAIT = 0x2000
_COROUTINE = 0x80


def _finish(pending):
    """The rest of a script that awaits at its top level."""
    import asyncio

    asyncio.run(pending)


def _execute(source, scope):
    """None, or (error, fault, exit code)."""
    try:
        code = compile(source, SCRIPT, "exec", flags=_TOP_LEVEL_AWAIT, dont_inherit=True)
    except Exception as error:  # SyntaxError; ValueError, RecursionError, MemoryError for odd text
        return error, "syntax", None
    try:
        pending = eval(code, scope)
        if code.co_flags & _COROUTINE:
            _finish(pending)
    except SystemExit as error:
        exit_code = _exit_code(error)
        return None if exit_code == 0 else (error, "exited", exit_code)
    except Exception as error:
        return error, "raised", None
    except BaseException as error:
        if _is_exception(error):
            return error, "raised", None
        return error, "exited", 130 if _is(error, KeyboardInterrupt) else 1
    return None


def _send_error(channel, error, source, fault, exit_code):
    if _is(error, MemoryError):
        _free_frames(error)
    try:
        fields = describe(error, source, fault, exit_code)
    except Exception as second:  # nothing that the script can do may silence its error
        fields = {"fault": fault, "type": _type_name(error), "message": f"(no more can be told: {serializer.type_words(type(second))})", "line": 0, "column": 0, "frames": []}
    channel.send("error", serializer.prepare(fields).text())


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the script may have put anything there
            pass


def run(job, channel):
    """Runs the script to its end. Raises nothing that the script could cause."""
    try:
        source = _source_text(job.source)
    except UnicodeDecodeError as error:
        failure = (error, "syntax", None)
        source = ""
    else:
        sys.stdin = io.StringIO()  # at its end, as in the container that blocks were written for
        failure = _execute(source, _namespace(job, channel))
    if failure is None:
        _wait_for_threads()
    _flush()
    try:
        if failure is not None:
            _send_error(channel, failure[0], source, failure[1], failure[2])
        channel.send("end", b"{}")
    except ChannelClosed:
        pass
