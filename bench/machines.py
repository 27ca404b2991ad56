#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `caisson serve` with jails, from outside, over one kept-alive connection where nothing else is said.

usage: bench/machines.py BUILD [PART …] [--machines N] [--bytes N]

Needs root and the image devbox:1 (caisson images build devbox:1). Controls of the same run: bubblewrap with the
same root and command, bare Asio sockets and bare Beast (http_bench control).
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOTFS = "devbox:1"
SMALL, LARGE = "s-1vcpu-256mb", "s-2vcpu-2gb"
COMMAND = ["/bin/echo", "x"]
BLOCK = 256 << 10
STREAM_BYTES = 200_000_000
CLIENTS = 16


def tell(what, value, unit, target=None, ok=None, control=None, control_name=None):
    row = {"what": what, "value": value, "unit": unit}
    if target is not None:
        row |= {"target": target, "ok": bool(ok)}
    if control is not None:
        row |= {"control": control, "control_name": control_name, "ratio": value / control}
    print(json.dumps(row), flush=True)


def took(work):
    """Milliseconds."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def at_99(times):
    return sorted(times)[len(times) * 99 // 100]


class Client:
    """HTTP/1.1 by hand: what the client costs counts as little as can be."""

    def __init__(self, port, key):
        self.key = key
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def send_head(self, method, path, length):
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {self.key}\r\n"
                            f"Content-Length: {length}\r\n\r\n".encode())

    def read_head(self):
        """Status and fields of an answer; what came of its body is kept."""
        while b"\r\n\r\n" not in self.rest:
            self.receive()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        return int(lines[0].split()[1]), {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}

    def receive(self):
        piece = self.socket.recv(BLOCK)
        if not piece:
            raise SystemExit("machines: the service closed a connection")
        self.rest += piece

    def call(self, method, path, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_head(method, path, len(text))
        self.socket.sendall(text)
        return self.answer(f"{method} {path}")

    def answer(self, what):
        status, fields = self.read_head()
        length = int(fields["content-length"])
        while len(self.rest) < length:
            self.receive()
        text, self.rest = self.rest[:length], self.rest[length:]
        if status != 200:
            raise SystemExit(f"machines: {what} answered {status}: {text.decode()}")
        return json.loads(text)["data"]

    def make(self, shape=SMALL):
        return self.call("POST", "/v1/sandboxes", {"shape": shape})["id"]

    def execute(self, sandbox, command=("/bin/true",)):
        answer = self.call("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": command[0], "args": list(command[1:])})
        if answer["result"]["exit_code"] != 0:
            raise SystemExit(f"machines: {command} ended so: {answer}")
        return answer["result"]["stdout"]

    def remove(self, sandbox):
        self.call("DELETE", f"/v1/sandboxes/{sandbox}")


class Service:
    def __init__(self, program):
        self.state = tempfile.mkdtemp(prefix="caisson-bench-", dir="/var/tmp")
        os.chmod(self.state, 0o755)
        self.log = open(f"{self.state}/log", "wb")
        self.process = subprocess.Popen([program, "serve", "--state", self.state, "--listen", "127.0.0.1:0"],
                                        stdout=subprocess.PIPE, stderr=self.log)
        text = b""
        while not text.endswith(b"}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(pathlib.Path(self.state, "log").read_text()[-2000:])
            text += line
        told = json.loads(text)
        self.key, self.port = told["key"], int(told["url"].rsplit(":", 1)[1])
        subprocess.run([program, "tenants", "set", "default", "--state", self.state, "--sandboxes", "unlimited"],
                       check=True, stdout=subprocess.DEVNULL)

    def client(self):
        return Client(self.port, self.key)

    def reset_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_mib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise SystemExit("machines: no VmHWM")

    def processor_ms(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")

    def close(self):
        # Machines outlive the service, and a bench that fails leaves some.
        client = self.client()
        for view in client.call("GET", "/v1/sandboxes?limit=500")["data"]:
            if view["status"] != "destroyed":
                client.remove(view["id"])
        self.process.terminate()
        self.process.wait(timeout=60)
        subprocess.run(f"umount -l {self.state}/network/gateway {self.state}/network/machines/* 2>/dev/null", shell=True)
        shutil.rmtree(self.state, ignore_errors=True)


class Control:
    def __init__(self, program, which):
        self.process = subprocess.Popen([program, "control", which], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def close(self):
        self.process.kill()
        self.process.wait()


def image_root(program):
    listing = subprocess.run([program, "images", "list", "--json"], capture_output=True, text=True).stdout
    for image in json.loads(listing)["images"]:
        if ROOTFS in image["names"]:
            return image["root"]
    return None


def bench_lives(client, root, rounds=60):
    """One machine after the other, with pauses in which the service may prepare the next."""
    bubblewrap = shutil.which("bwrap")
    jail = [bubblewrap, "--unshare-all", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *COMMAND]
    create, first, pause, control = [], [], [], []
    client.remove(client.make())  # so that it knows what is wanted
    time.sleep(2)
    for _ in range(rounds):
        begin = time.perf_counter()
        sandbox = client.make()
        create.append((time.perf_counter() - begin) * 1e3)
        if client.execute(sandbox, COMMAND) != "x\n":
            raise SystemExit("machines: a command said something else")
        first.append((time.perf_counter() - begin) * 1e3)
        client.execute(sandbox)
        begin = time.perf_counter()
        client.call("POST", f"/v1/sandboxes/{sandbox}/pause")
        client.call("POST", f"/v1/sandboxes/{sandbox}/resume")
        pause.append((time.perf_counter() - begin) * 1e3)
        client.remove(sandbox)
        if bubblewrap:
            control.append(took(lambda: subprocess.run(jail, check=True, stdout=subprocess.DEVNULL)))
        time.sleep(0.15)
    sandbox = client.make()
    client.execute(sandbox)
    execute = [took(lambda: client.execute(sandbox)) for _ in range(300)]
    client.remove(sandbox)
    p50 = statistics.median
    against = (p50(control), "bubblewrap, the same command; <= 3 times") if control else (None, None)
    tell("create through HTTP, p50", p50(create), "ms")
    tell(f"create to the output of the first command through HTTP, p50 (p99 {at_99(first):.1f})", p50(first), "ms", "<= 15 ms",
         p50(first) <= 15 and (not control or p50(first) <= 3 * p50(control)), *against)
    tell(f"exec of true, kept-alive connection, p50 (p99 {at_99(execute):.1f})", p50(execute), "ms", "<= 4 ms", p50(execute) <= 4)
    tell(f"pause and resume, p50 (p99 {at_99(pause):.1f})", p50(pause), "ms", "<= 5 ms", p50(pause) <= 5)


def send_all(connection, count):
    block = memoryview(b"x" * BLOCK)
    for left in range(count, 0, -BLOCK):
        connection.sendall(block[:min(left, BLOCK)])


def receive_all(connection, count):
    block = bytearray(BLOCK)
    while count > 0:
        got = connection.recv_into(block, min(count, BLOCK))
        if got == 0:
            raise SystemExit("machines: a download is not whole")
        count -= got


def upload(client, sandbox, path, count):
    client.send_head("PUT", f"/v1/sandboxes/{sandbox}/files?path={path}", count)
    send_all(client.socket, count)
    client.answer("the upload")


def download(client, sandbox, path, count):
    client.send_head("GET", f"/v1/sandboxes/{sandbox}/files?path={path}", 0)
    if client.read_head()[0] != 200:
        raise SystemExit("machines: the download is refused")
    receive_all(client.socket, count - len(client.rest))
    client.rest = b""


def bare_upload(sink):
    """The sink takes exactly 1 GiB and then says a byte."""
    with sink.connect() as connection:
        send_all(connection, 1 << 30)
        connection.recv(1)


def bare_download(source):
    with source.connect() as connection:
        receive_all(connection, 1 << 30)


def bench_transfers(service, client, controls, count):
    mib = count / (1 << 20)
    sandbox = client.make(LARGE)
    sink, source = Control(controls, "sink"), Control(controls, "source")
    best, processor = {}, {}
    service.reset_peak()
    before = service.peak_mib()

    def keep(name, size, work):
        os.sync()  # what an earlier transfer left to be written takes a core for a while
        spent = service.processor_ms()
        best[name] = max(best.get(name, 0), size / (took(work) / 1e3))
        processor[name] = min(processor.get(name, 1e9), service.processor_ms() - spent)

    for _ in range(3):
        keep("bare up", 1024, lambda: bare_upload(sink))
        keep("up", mib, lambda: upload(client, sandbox, "/root/file", count))
        keep("up, memory", mib, lambda: upload(client, sandbox, "/dev/shm/file", count))
        keep("bare down", 1024, lambda: bare_download(source))
        keep("down", mib, lambda: download(client, sandbox, "/root/file", count))
        client.execute(sandbox, ["/bin/rm", "/root/file", "/dev/shm/file"])
    for name, bare, what in (("up", "bare up", "upload to its disk"), ("up, memory", "bare up", "upload to its memory"),
                             ("down", "bare down", "download from its disk")):
        tell(f"{what}, {mib:.0f} MiB through HTTP and agent", best[name], "MiB/s", ">= 0.4 of it", best[name] >= 0.4 * best[bare],
             best[bare], "bare Asio socket")
    for name, what in (("up", "upload"), ("down", "download")):
        tell(f"processor time of the service for such {'an' if name == 'up' else 'a'} {what}", processor[name], "ms")
    tell("memory of the service that this took", service.peak_mib() - before, "MiB", "constant: < 16 MiB",
         service.peak_mib() - before < 16)
    client.remove(sandbox)
    sink.close()
    source.close()


def read_stream(client):
    """Takes a chunked answer up to its end."""
    client.read_head()
    taken, tail = len(client.rest), client.rest[-7:]
    block = bytearray(BLOCK)
    while not tail.endswith(b"\r\n0\r\n\r\n"):
        got = client.socket.recv_into(block)
        if got == 0:
            raise SystemExit("machines: a stream is not whole")
        taken += got
        tail = (tail + bytes(block[:got][-7:]))[-7:]
    client.rest = b""
    return taken


def start_stream(client, sandbox, script):
    body = json.dumps({"cmd": "/bin/bash", "args": ["-c", script], "stream": True}).encode()
    client.send_head("POST", f"/v1/sandboxes/{sandbox}/exec", len(body))
    client.socket.sendall(body)


def bench_stream(service, client):
    sandbox = client.make(LARGE)
    client.execute(sandbox)
    alone = statistics.median(took(lambda: client.execute(sandbox)) for _ in range(200))
    service.reset_peak()
    before = service.peak_mib()
    taken = 0

    def stream():
        nonlocal taken
        start_stream(client, sandbox, f"yes 0123456789abcdef0123456789abcdef | head -c {STREAM_BYTES}")
        taken = read_stream(client)

    spent = took(stream)
    if taken < STREAM_BYTES:
        raise SystemExit(f"machines: of {STREAM_BYTES} bytes {taken} came")
    grown = service.peak_mib() - before
    tell("memory of the service for a stream of 200 MB", grown, "MiB", "constant: < 8 MiB", grown < 8)
    tell("rate of this stream", STREAM_BYTES / 1e6 / (spent / 1e3), "MB/s")
    idle = service.client()
    start_stream(idle, sandbox, "yes")
    idle.read_head()
    time.sleep(1)  # its buffers are full
    beside = statistics.median(took(lambda: client.execute(sandbox)) for _ in range(200))
    tell("exec of true beside a stream that nobody reads, p50", beside, "ms", "<= 4 ms", beside <= 4, alone, "without it")
    idle.socket.close()
    client.remove(sandbox)


def wrk(port, path, seconds, connections, key, script=None):
    """Answers a second, and the 99th percentile in ms."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-H", f"X-Api-Key: {key}",
               *(["-s", script] if script else []), f"http://127.0.0.1:{port}{path}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        raise SystemExit(f"machines: wrk says {text}")
    rate = next(float(line.split()[1]) for line in text.splitlines() if line.startswith("Requests/sec"))
    p99 = next(line.split()[1] for line in text.splitlines() if line.strip().startswith("99%"))
    scale = {"us": 1e-3, "ms": 1}
    return rate, float(p99[:-2]) * scale[p99[-2:]] if p99[-2:] in scale else float(p99[:-1]) * 1e3


def bench_view(service, client, controls):
    if not shutil.which("wrk"):
        print("machines: wrk is not installed; the rate of GET is left out", file=sys.stderr)
        return
    sandbox = client.make()
    path = f"/v1/sandboxes/{sandbox}"
    beast = Control(controls, "beast")
    rate = bare = 0
    for _ in range(3):
        bare = max(bare, wrk(beast.port, "/small", 3, 50, service.key)[0])
        rate = max(rate, wrk(service.port, path, 3, 50, service.key)[0])
    tell("GET /v1/sandboxes/{id}", rate, "/s", ">= 0.3 of it", rate >= 0.3 * bare, bare, "bare Beast")
    # wrk sends as fast as it can; a delay on each connection brings it to about half of that.
    delay_ms = 10
    connections = max(2, round(rate / 2 * delay_ms / 1000))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"function delay() return {delay_ms} end\n")
        script.flush()
        half = [wrk(service.port, path, 5, connections, service.key, script.name) for _ in range(3)]
    reached, p99 = min(half, key=lambda pair: pair[1])
    tell(f"GET /v1/sandboxes/{{id}}, p99 at {100 * reached / rate:.0f} % of its highest rate", p99, "ms", "< 20 ms", p99 < 20)
    beast.close()
    client.remove(sandbox)


def available_mib():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("machines: no MemAvailable")


def bench_many(service, count):
    local = threading.local()

    def client():
        if not hasattr(local, "client"):
            local.client = service.client()
        return local.client

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: client().call("GET", "/v1/sandboxes?limit=1"), range(CLIENTS * 4)))
        time.sleep(2)
        before = available_mib()
        begin = time.perf_counter()
        made = list(pool.map(lambda _: client().make(), range(count)))
        rate = count / (time.perf_counter() - begin)
        time.sleep(5)
        with_them = available_mib()
        tell(f"create through HTTP, {count} machines, {CLIENTS} callers", rate, "/s", ">= 60 /s", rate >= 60)
        begin = time.perf_counter()
        list(pool.map(lambda sandbox: client().remove(sandbox), made))
        tell(f"destroy through HTTP, {count} machines, {CLIENTS} callers", count / (time.perf_counter() - begin), "/s")
        time.sleep(5)
        # What others on the host do moves both; the greater counts.
        each = max(before - with_them, available_mib() - with_them) / count
        tell(f"host memory of an idle machine, {count} live", each, "MiB", "< 3 MiB", each < 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", help="lives, many, view, stream, transfers; default: all")
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    options = parser.parse_args()
    program, controls = options.build / "bin/caisson", options.build / "src/http/http_bench"
    root = image_root(program)
    if os.geteuid() != 0 or root is None:
        print(f"machines: this needs root and the image {ROOTFS} (caisson images build {ROOTFS})", file=sys.stderr)
        return 77
    service = Service(program)
    try:
        client = service.client()
        parts = {"lives": lambda: bench_lives(client, root), "many": lambda: bench_many(service, options.machines),
                 "view": lambda: bench_view(service, client, controls), "stream": lambda: bench_stream(service, client),
                 "transfers": lambda: bench_transfers(service, client, controls, options.bytes)}
        for name in options.parts or parts:
            parts[name]()
    finally:
        service.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
