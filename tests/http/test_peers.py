#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that others wrote, against the server: curl, httpx, nghttp and h2load, openssl, Python's http.client."""

import concurrent.futures
import http.client
import os
import re
import ssl
import subprocess
import sys
import unittest

import httpx
from server import Server

SERVER = Server()


def run(*command: str, stdin: bytes = b"", timeout: float = 60) -> subprocess.CompletedProcess:
    return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout)


def curl(*arguments: str, stdin: bytes = b"") -> bytes:
    done = run("curl", "--silent", "--show-error", "--fail", "--max-time", "30", *arguments, stdin=stdin)
    if done.returncode:
        raise AssertionError(f"curl: {done.returncode} {done.stderr.decode()}")
    return done.stdout


class Curl(unittest.TestCase):
    MODES = (["--http1.1"], ["--http1.0"], ["--http2-prior-knowledge"])

    def test_gets_and_posts(self) -> None:
        for mode in self.MODES:
            with self.subTest(mode):
                self.assertEqual(curl(*mode, SERVER.url + "/small"), b"small\n")
                self.assertEqual(curl(*mode, "-d", "hello", SERVER.url + "/echo"), b"hello")
                self.assertEqual(curl(*mode, SERVER.url + "/items/a%2Fb"), b"a/b\n")

    def test_keeps_its_connection(self) -> None:
        # Not by HTTP/2: curl 7.88 fails on the second request to any server.
        self.assertEqual(curl(SERVER.url + "/small", SERVER.url + "/pooled", SERVER.url + "/small"), b"small\npooled\nsmall\n")

    def test_uploads_large_bodies(self) -> None:
        body = os.urandom(8 << 20)
        counted = f"{len(body)}\n".encode()
        for mode in self.MODES:
            for extra in ([], ["-H", "Expect: 100-continue"]):
                with self.subTest(mode + extra):
                    self.assertEqual(curl(*mode, *extra, "-X", "PUT", "--data-binary", "@-", SERVER.url + "/count",
                                          stdin=body), counted)
        self.assertEqual(curl("-T", "-", SERVER.url + "/count", stdin=body), counted)  # chunked

    def test_downloads_large_answers(self) -> None:
        for mode in self.MODES:
            for path in ("/stream?bytes=20000000", "/stream?bytes=20000000&sized=1"):
                with self.subTest(mode + [path]):
                    self.assertEqual(len(curl(*mode, SERVER.url + path)), 20_000_000)

    def test_tells_an_answer_that_is_not_whole(self) -> None:
        for mode, codes in ((["--http1.1"], (18, 56)), (["--http2-prior-knowledge"], (92, 18, 56))):
            for path in ("/cut", "/short"):
                with self.subTest(mode + [path]):
                    self.assertIn(run("curl", "-s", *mode, SERVER.url + path).returncode, codes)

    def test_refusal_of_a_large_upload_arrives(self) -> None:
        body = os.urandom(30 << 20)
        for mode in (["--http1.1"], ["--http1.1", "-H", "Expect:"], ["--http2-prior-knowledge"]):
            with self.subTest(mode):
                done = run("curl", "-s", *mode, "-o", "/dev/null", "-w", "%{http_code}", "-T", "-", SERVER.url + "/absent",
                           stdin=body)
                self.assertEqual(done.stdout, b"404")

    def test_unix_socket(self) -> None:
        self.assertEqual(curl("--unix-socket", str(SERVER.unix), "http://localhost/small"), b"small\n")

    def test_tls(self) -> None:
        trusted = ["--cacert", str(SERVER.certificate)]
        self.assertEqual(curl(*trusted, SERVER.tls_url + "/small"), b"small\n")
        version = run("curl", "-s", *trusted, "--http2", "-o", "/dev/null", "-w", "%{http_version}", SERVER.tls_url + "/small")
        self.assertEqual(version.stdout, b"1.1")
        self.assertEqual(len(curl(*trusted, SERVER.tls_url + "/stream?bytes=20000000")), 20_000_000)
        self.assertEqual(run("curl", "-s", SERVER.tls_url + "/small").returncode, 60)


class Httpx(unittest.TestCase):
    def test_keeps_connections(self) -> None:
        with httpx.Client(base_url=SERVER.url) as client:
            for _ in range(20):
                self.assertEqual(client.get("/small").text, "small\n")
                self.assertEqual(client.post("/echo", content=b"hello").content, b"hello")
                self.assertEqual(client.post("/absent", json={"a": 1}).status_code, 404)

    def test_streams(self) -> None:
        with httpx.Client(base_url=SERVER.url) as client:
            sent = client.put("/count", content=(b"x" * 65536 for _ in range(100)))
            self.assertEqual(sent.text, f"{100 * 65536}\n")
            with client.stream("GET", "/drip") as answer:
                lines = answer.iter_lines()
                self.assertEqual([next(lines) for _ in range(3)], ["drip"] * 3)
            self.assertEqual(client.get("/small").text, "small\n")

    def test_decodes_queries_as_they_are_sent(self) -> None:
        with httpx.Client(base_url=SERVER.url) as client:
            self.assertEqual(len(client.get("/stream", params={"bytes": "5", "other": "ä +/%"}).content), 5)

    def test_tls(self) -> None:
        with httpx.Client(base_url=SERVER.tls_url, verify=ssl.create_default_context(cafile=str(SERVER.certificate))) as client:
            self.assertEqual(client.get("/pooled").text, "pooled\n")
            self.assertEqual(client.get("/pooled").http_version, "HTTP/1.1")

    def test_many_at_once(self) -> None:
        with httpx.Client(base_url=SERVER.url) as client, concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda n: client.get(f"/items/{n}").text, range(400)))
        self.assertEqual(answers, [f"{n}\n" for n in range(400)])


class Others(unittest.TestCase):
    def test_python_http_client(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", SERVER.port, timeout=20)
        for _ in range(3):
            connection.request("POST", "/inline", body=iter([b"a", b"bc"]), headers={"Transfer-Encoding": "chunked"},
                               encode_chunked=True)
            self.assertEqual(connection.getresponse().read(), b"abc")
        connection.close()

    def test_nghttp(self) -> None:
        done = run("nghttp", "--no-dep", "-n", "-s", *[f"{SERVER.url}/items/{n}" for n in range(50)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall(rb" 200 ", done.stdout)), 50, done.stdout.decode())

    def test_h2load(self) -> None:
        done = run("h2load", "-n", "20000", "-c", "20", "-m", "50", SERVER.url + "/small", timeout=120)
        self.assertIn(b"20000 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)
        done = run("h2load", "-n", "2000", "-c", "4", "-m", "10", SERVER.url + "/pooled", timeout=120)
        self.assertIn(b"2000 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)

    def test_openssl(self) -> None:
        address = f"127.0.0.1:{SERVER.tls_port}"
        request = b"GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        for version in ("-tls1_2", "-tls1_3"):
            done = run("openssl", "s_client", "-connect", address, version, "-alpn", "h2,http/1.1", "-ign_eof", stdin=request)
            self.assertIn(b"ALPN protocol: http/1.1", done.stdout)
            self.assertIn(b"small\n", done.stdout)
        self.assertNotEqual(run("openssl", "s_client", "-connect", address, "-alpn", "h2").returncode, 0)
        self.assertNotEqual(run("openssl", "s_client", "-connect", address, "-tls1_1").returncode, 0)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    stopped = SERVER.stop()
    if stopped:
        print(f"the server ended with {stopped}")
    sys.exit(not result.wasSuccessful() or stopped)
