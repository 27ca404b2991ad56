# SPDX-License-Identifier: Apache-2.0
"""Things outside of a sandbox that an attack would touch (tests/corpora/attacks/README.md): a file, a process,
a listener for TCP and UDP, an abstract socket, a port that must stay closed, secrets."""

import os
import pathlib
import secrets
import select
import shutil
import socket
import subprocess
import tempfile

NOBODY = 65534
SECRET = "HOST-CANARY-SECRET-9d41e7"  # in the environment of the host
TEXT = "HOST-CANARY-5f2c91"


class Canaries:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-canary-", dir="/var/tmp"))
        self.folder.chmod(0o777)
        self.path = self.folder / "canary"
        self.path.write_text(TEXT)
        self.tcp = self._listen(socket.SOCK_STREAM, 0)
        self.port = self.tcp.getsockname()[1]
        self.udp = self._listen(socket.SOCK_DGRAM, self.port)
        self.abstract = f"caisson-canary-{secrets.token_hex(8)}"  # pids repeat, in namespaces
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind("\0" + self.abstract)
        self.unix.listen()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.bind_port = free.getsockname()[1]
        # Of the user that scripts are outside, where that can be had.
        user = {"user": NOBODY} if os.geteuid() == 0 else {}
        self.sleeper = subprocess.Popen(["sleep", "infinity"], cwd="/", stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)

    @staticmethod
    def _listen(kind: int, port: int) -> socket.socket:
        listener = socket.socket(socket.AF_INET, kind)
        listener.bind(("127.0.0.1", port))
        if kind == socket.SOCK_STREAM:
            listener.listen()
        return listener

    def document(self) -> dict:
        """The first document of an attack."""
        return {"canary_path": str(self.path), "canary_text": TEXT, "canary_port": self.port,
                "canary_abstract": self.abstract, "canary_pid": self.sleeper.pid, "bind_port": self.bind_port,
                "artifacts": "/tmp"}

    def touched(self) -> list[str]:
        """What has happened to them; empty when nothing has."""
        found = []
        if self.path.read_text() != TEXT:
            found.append("the file was changed")
        if beside := sorted({entry.name for entry in self.folder.iterdir()} - {"canary"}):
            found.append(f"beside the file there is now {beside}")
        if self.sleeper.poll() is not None:
            found.append("the process has ended")
        elif not self._untraced():
            found.append("the process is traced")
        for name, listener in (("TCP", self.tcp), ("UDP", self.udp), ("the abstract socket", self.unix)):
            if select.select([listener], [], [], 0)[0]:
                found.append(f"{name} was reached")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.bind_port)) == 0:
                found.append("a port was opened")
        return found

    def _untraced(self) -> bool:
        status = pathlib.Path(f"/proc/{self.sleeper.pid}/status").read_text()
        return "TracerPid:\t0\n" in status

    def close(self):
        self.sleeper.kill()
        self.sleeper.wait()
        for each in (self.tcp, self.udp, self.unix):
            each.close()
        shutil.rmtree(self.folder)
