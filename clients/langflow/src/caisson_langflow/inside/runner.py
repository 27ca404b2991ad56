# SPDX-License-Identifier: Apache-2.0
"""Runs one flow in a machine: waits on standard input for a job, and tells on a descriptor of its own what happens.

Follows codec.py in the same program. Frames are lines `<token> <json>`; the token comes with the job. Descriptors 1 and 2,
which components and their children write to, are pipes whose lines become frames; a line that was not written here has
no token and is nobody's frame.

Input: 8 bytes of length, the job as JSON, then one byte for each CREDIT bytes of frames that the reader has taken, so
that what is written never outruns who reads.
"""

import ast
import asyncio
import contextlib
import fcntl
import importlib.util
import json
import os
import sys
import threading
import time
import traceback

READY = "caisson-lfx-ready"
WITHOUT_LFX = "caisson-lfx-missing"
CREDIT = 128 << 10
WINDOW = 4 * CREDIT
LINE = 2000
MISSING, LATE, FAILED = 3, 124, 1


class Channel:
    """Thread-safe. Takes descriptors 0 and 1 for itself."""

    def __init__(self):
        self.frames = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
        self.jobs = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
        os.dup2(2, 1)  # until there is a job
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self.token = b""
        self.lock = threading.Lock()
        self.room = threading.Condition()
        self.ahead = 0
        self.caps = {}
        self.dropped = {}

    def say(self, text):
        os.write(self.frames, text.encode() + b"\n")

    def take(self):
        def exactly(count):
            data = b""
            while len(data) < count:
                piece = os.read(self.jobs, count - len(data))
                if not piece:
                    os._exit(0)  # nobody wants this machine
                data += piece
            return data

        job = json.loads(exactly(int.from_bytes(exactly(8), "big")))
        self.token = job["token"].encode()
        self.caps = job["caps"]
        threading.Thread(target=self._credits, daemon=True, name="caisson-credits").start()
        for stream, number in (("stdout", 1), ("stderr", 2)):
            reading, writing = os.pipe()
            os.dup2(writing, number)
            os.close(writing)
            with contextlib.suppress(Exception):
                getattr(sys, stream).reconfigure(line_buffering=True)  # prints stand before what they precede
            threading.Thread(target=self._lines, args=(reading, stream), daemon=True, name=f"caisson-{stream}").start()
        return job

    def _credits(self):
        while piece := os.read(self.jobs, 4096):
            with self.room:
                self.ahead -= CREDIT * len(piece)
                self.room.notify_all()

    def results(self, kind, **fields):
        texts = {}
        fields = share(fields, texts)
        self.frame(kind, texts=list(texts), **fields)

    def frame(self, kind, **fields):
        text = json.dumps({"t": kind, **fields}, allow_nan=False, separators=(",", ":"))
        if len(text) > self.caps["line_bytes"]:
            self.end(FAILED, "fatal", errors=[f"one value of the flow is larger than {-(-self.caps['line_bytes'] >> 20)} MiB; keep large values in "
                                              "files or stores"])
        data = self.token + b" " + text.encode() + b"\n"
        with self.lock:
            for at in range(0, len(data), CREDIT):
                self._write(data[at:at + CREDIT])

    def _write(self, data):
        with self.room:
            self.room.wait_for(lambda: self.ahead + len(data) <= WINDOW)
            self.ahead += len(data)
        while data:
            data = data[os.write(self.frames, data):]

    def _lines(self, number, stream):
        left = self.caps["text_bytes"]
        with open(number, "rb", buffering=0) as pipe:
            rest = b""
            while piece := pipe.read(65536):
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    if left < len(line):
                        self.dropped[stream] = self.dropped.get(stream, 0) + len(line) + 1
                        left = 0
                        continue
                    left -= len(line) + 1
                    self.frame(stream, line=line[:LINE].decode(errors="replace"))
            if rest and left >= len(rest):
                self.frame(stream, line=rest[:LINE].decode(errors="replace"))

    def settle(self):
        """What was printed comes before the end."""
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        end = time.monotonic() + 0.5  # a child may hold the pipes
        for thread in threading.enumerate():
            if thread.name in ("caisson-stdout", "caisson-stderr"):
                thread.join(max(0, end - time.monotonic()))
        for stream, count in self.dropped.items():
            self.frame("dropped", what=stream, bytes=count)

    def end(self, code, kind, **fields):
        with contextlib.suppress(BaseException):
            self.settle()
        self.frame(kind, **fields)
        os._exit(code)


def imports_of(code):
    """Top-level modules that a node's source cannot be loaded without."""
    found = set()
    pending = list(ast.parse(code).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.ClassDef):
            pending += node.body
    return found


def missing_modules(nodes):
    """{module: [node id, …]}"""
    missing = {}
    for node in nodes:
        inner = node.get("data", {}).get("node", {})
        flow = inner.get("flow") or {}
        for module, ids in missing_modules((flow.get("data") or {}).get("nodes") or []).items():
            missing.setdefault(module, []).extend(ids)
        field = (inner.get("template") or {}).get("code")
        code = field.get("value") if isinstance(field, dict) else None
        try:
            modules = imports_of(code) if isinstance(code, str) else ()
        except (SyntaxError, ValueError, RecursionError):
            continue  # lfx says it better
        for module in modules:
            if module in sys.modules or module in sys.builtin_module_names:
                continue
            try:
                is_there = importlib.util.find_spec(module) is not None
            except (ImportError, ValueError):
                is_there = False
            if not is_there:
                missing.setdefault(module, []).append(str(node.get("id")))
    return missing


def text_of(chunk):
    for name in ("content", "text"):
        if isinstance(inner := getattr(chunk, name, None), str):
            return inner
    return chunk if isinstance(chunk, str) else str(chunk)


async def drained(stream):
    """A live stream's text, read to its end."""
    parts = []
    if hasattr(stream, "__anext__"):
        async for chunk in stream:
            parts.append(text_of(chunk))
    else:
        nothing = object()
        while (chunk := await asyncio.to_thread(next, stream, nothing)) is not nothing:
            parts.append(text_of(chunk))
    return "".join(parts)


async def settle_value(value):
    """The same value with no live stream in it; a message is changed where it is."""
    if is_stream(value):
        return await drained(value)
    if is_stream(stream := getattr(value, "text_stream", None)) or is_stream(stream := getattr(value, "text", None)):
        value.text = await drained(stream)
    return value


def drain_outputs(is_listened_to):
    """From now on a component's output is no live stream, unless somebody listens for tokens and a later component reads it."""
    from lfx.custom.custom_component.component import Component

    original = Component._get_output_result

    async def settled(self, output):
        result = await original(self, output)
        vertex = getattr(self, "_vertex", None)
        if not (is_listened_to and vertex is not None and vertex.outgoing_edges):
            if (whole := await settle_value(result)) is not result:
                result = output.value = whole
        return result

    Component._get_output_result = settled


class Relay:
    """What an EventManager puts its events into."""

    def __init__(self, channel):
        self.channel = channel
        self.left = channel.caps["events"]

    def put_nowait(self, item):
        self.left -= 1
        if self.left < 0:
            if self.left == -1:
                self.channel.dropped["events"] = 0
            self.channel.dropped["events"] += 1
            return
        told = json.loads(item[1])
        self.channel.frame("event", event=told["event"], data=told["data"])


def result_of(result):
    if result is None:
        return None
    return {name: encode(getattr(result, name)) for name in
            ("results", "artifacts", "outputs", "logs", "messages", "timedelta", "duration", "component_display_name",
             "component_id", "used_frozen_result", "token_usage")}


class Run:
    def __init__(self, channel, job):
        self.channel, self.job = channel, job
        self.manager = None
        if job["listens"]:
            from lfx.events.event_manager import create_default_event_manager
            self.manager = create_default_event_manager(Relay(channel))

    def graph(self):
        from lfx.graph.graph.base import Graph

        job = self.job
        context = decode(job["context"])
        if job["variables"]:
            context["request_variables"] = dict(job["variables"])
        graph = Graph.from_payload(json.loads(json.dumps(job["graph"])), flow_id=job["flow_id"], flow_name=job["flow_name"],
                                   user_id=job["user_id"], context=context)
        graph.session_id = job["session_id"] or ""
        graph.set_run_id(job["run_id"] or None)
        self._watch(graph)
        return graph

    def _watch(self, graph):
        """Each vertex is told when it is built, whichever way the graph is walked."""
        build = graph.build_vertex
        known = set(self.job["vertices"])

        async def told(vertex_id, **options):
            self.channel.frame("start", id=vertex_id)
            built = await build(vertex_id, **options)
            if vertex_id in known:
                self.channel.results("step", id=vertex_id, valid=bool(built.valid), params=str(built.params)[:LINE],
                                   artifacts=encode(built.artifacts), result=result_of(built.result_dict))
            return built

        graph.build_vertex = told

    def _inject(self, graph):
        """What the host has put into vertices beside the payload."""
        for vertex_id, params in self.job["params"].items():
            graph.get_vertex(vertex_id).update_raw_params(decode(params), overwrite=True)
        if self.job["session_id"]:
            for vertex_id in graph.has_session_id_vertices:
                vertex = graph.get_vertex(vertex_id)
                if not vertex.raw_params.get("session_id"):
                    vertex.update_raw_params({"session_id": self.job["session_id"]}, overwrite=True)

    async def legacy(self, at, inputs):
        """As Graph.arun does it for one of its inputs."""
        options = self.job["options"]
        graph = self.graph()
        self._inject(graph)
        pick = {name: [options[name][at]] for name in ("inputs_components", "types")
                if options.get(name) and at < len(options[name])}
        [outputs] = await graph.arun([inputs], outputs=options.get("outputs"), session_id=self.job["session_id"],
                                     stream=bool(options.get("stream")), event_manager=self.manager,
                                     fallback_to_env_vars=bool(options.get("fallback_to_env_vars")), **pick)
        return outputs.outputs

    async def streaming(self, inputs):
        from lfx.schema.schema import InputValueRequest

        options = self.job["options"]
        graph = self.graph()
        graph.prepare()
        self._inject(graph)
        picked = {name: options[name] for name in ("max_iterations", "config", "reset_output_values") if options.get(name) is not None}
        request = InputValueRequest(**inputs) if inputs else None
        async for _ in graph.async_start(inputs=request, event_manager=self.manager,
                                         fallback_to_env_vars=bool(options.get("fallback_to_env_vars")), **picked):
            pass
        wanted = options.get("outputs") or []
        return [vertex.result for vertex in graph.vertices if vertex.built and (
            vertex.is_output if not wanted else vertex.id in wanted or vertex.display_name in wanted)]

    async def whole(self):
        for at, inputs in enumerate(self.job["inputs"]):
            found = await (self.legacy(at, inputs) if self.job["legacy"] else self.streaming(inputs))
            for result in found:
                if result is not None and isinstance(result.results, dict):
                    for name, value in result.results.items():
                        result.results[name] = await settle_value(value)
            self.channel.results("outputs", at=at, outputs=[result_of(result) for result in found])


def import_lfx(is_warm):
    """What every flow needs; with time to spare also what most need, and a first small run."""
    import lfx.graph.graph.base  # noqa: F401
    import lfx.schema.dataframe  # noqa: F401

    if is_warm:
        with contextlib.suppress(Exception):
            from lfx.preload import prewarm_core_imports

            prewarm_core_imports()


def reason_of(why):
    """The first cause in the chain says most, the last one where."""
    texts = []
    while why is not None and len(texts) < 8:
        texts.append(f"{type(why).__name__}: {why}"[:LINE])
        why = why.__cause__ or why.__context__
    return texts


def main():
    channel = Channel()
    for name, value in (("LFX_LOG_LEVEL", "ERROR"), ("LANGFLOW_LOG_LEVEL", "ERROR"), ("DO_NOT_TRACK", "true")):
        os.environ.setdefault(name, value)
    # The machine is the sandbox: nothing of a host's settings holds here.
    for name in ("LANGFLOW_EXECUTOR_KIND", "LANGFLOW_SANDBOX_BACKEND", "LANGFLOW_SANDBOX_BACKEND_PLUGINS"):
        os.environ.pop(name, None)
    if importlib.util.find_spec("lfx") is None:
        channel.say(WITHOUT_LFX)
        os._exit(MISSING)
    import_lfx(sys.argv[1:] == ["warm"])
    channel.say(READY)
    job = channel.take()
    late = threading.Timer(job["seconds"], lambda: (channel.frame("late"), os._exit(LATE)))
    late.daemon = True
    late.start()
    if missing := missing_modules(job["graph"].get("nodes") or []):
        channel.end(MISSING, "missing", modules=missing)
    try:
        drain_outputs(job["listens"])
        asyncio.run(Run(channel, job).whole())
    except BaseException as why:  # noqa: BLE001: also what a component exits with
        channel.end(FAILED, "fatal", errors=reason_of(why), traceback=traceback.format_exc()[-4000:])
    channel.end(0, "done")


if __name__ == "__main__":
    main()
