# SPDX-License-Identifier: Apache-2.0
"""Starts the test server, whose program is the first argument of a test script."""

import pathlib
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve()


class Server:
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        base = pathlib.Path(self.folder.name)
        self.certificate, self.key, self.unix = base / "cert.pem", base / "key.pem", base / "http.sock"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", str(self.key), "-out", str(self.certificate)], check=True, capture_output=True)
        self.process = subprocess.Popen([PROGRAM, "--unix", str(self.unix), str(self.certificate), str(self.key)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port, self.tls_port = map(int, self.process.stdout.readline().split())
        self.url, self.tls_url = f"http://127.0.0.1:{self.port}", f"https://localhost:{self.tls_port}"

    def memory_kib(self, field: str = "VmRSS") -> int:
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise AssertionError(f"no {field}")

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def wait_until_calm(self) -> None:
        for _ in range(40):
            before = self.cpu_seconds()
            time.sleep(0.5)
            if self.cpu_seconds() - before < 0.05:
                return

    def stop(self) -> int:
        self.process.stdin.close()
        self.process.stdout.close()
        code = self.process.wait(30)
        self.folder.cleanup()
        return code
