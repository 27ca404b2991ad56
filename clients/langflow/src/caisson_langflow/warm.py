# SPDX-License-Identifier: Apache-2.0
"""Machines in which an interpreter has started before somebody asks: the pool that the server keeps of them, and the program
that waits in each.

A run is one command of the machine, as without a pool: a shell that names itself to the waiting interpreter, which takes over the
shell's streams, and whose exit code the shell gives. So output, limits and times are those of any command.
"""

import hashlib
import json
import threading

from .server import Api

FOLDER = "/tmp/.caisson-langflow"  # wherever /run is not the machine's own, too
IDLE_SECONDS = 900
READY = "caisson-langflow ready"

# What the program sees is what `python3 file` shows it; modules that it would find loaded are those that the interpreter has loaded by
# itself, and no generator of random numbers is seeded before a machine is copied.
WAITING = r'''
import gc, os, sys
folder, ready = sys.argv[1:3]
os.makedirs(folder, 0o700, exist_ok=True)
for name in ("ask", "told"):
    os.mkfifo(f"{folder}/{name}", 0o600)
gc.collect()
gc.freeze()
os.write(1, f"{ready}\n".encode())
with open(f"{folder}/ask") as ask:
    shell = int(ask.readline())
for number, of_shell, way in ((0, 4, os.O_RDONLY), (1, 3, os.O_WRONLY), (2, 2, os.O_WRONLY)):
    stream = os.open(f"/proc/{shell}/fd/{of_shell}", way)
    os.dup2(stream, number)
    os.close(stream)
with open(0, encoding="utf-8", newline="", closefd=False) as asked:
    path, variables, asked = asked.read().split("\0", 2)
*variables, code = asked.split("\0", int(variables))
empty = os.open("/dev/null", os.O_RDONLY)
os.dup2(empty, 0)
os.close(empty)
os.environ.update(one.split("=", 1) for one in variables)
with open(path, "w", encoding="utf-8", newline="") as file:
    file.write(code)
sys.argv = [path]
sys.path[0] = os.path.dirname(path)
main = sys.modules["__main__"] = type(sys)("__main__")
main.__file__, main.__builtins__ = path, __builtins__
try:
    exec(compile(code.encode(), path, "exec"), main.__dict__)
except SystemExit:
    raise
except BaseException as error:
    error.__traceback__ = error.__traceback__.tb_next
    sys.excepthook(type(error), error, error.__traceback__)
    sys.exit(1)
'''

# $0 the program that waits, $1 the folder, $2 the line that says that it does. A shell tells the exit code, whatever the program does to
# its own process, and shares no memory with it, which would be copied page by page as the program runs.
START = 'python3 -c "$0" "$1" "$2"; echo $? >"$1/told"'

# $0 the folder. While it says who it is, its own output is the FIFO: what the interpreter takes over has other numbers.
HAND_OVER = 'exec 3>&1 4<&0; echo $$ >"$0/ask" && read -r code <"$0/told" && exit "$code"; exit 1'


def command(code: str, env: dict[str, str], path: str, seconds: int) -> dict:
    """What is run in a machine of a pool, of which `warm_process` was in the answer. No variable has a NUL."""
    return {"cmd": "/bin/sh", "args": ["-c", HAND_OVER, FOLDER], "timeout_seconds": seconds,
            "stdin": "\0".join([path, str(len(env)), *(f"{name}={value}" for name, value in env.items()), code])}


class Pools:
    """Which pools the server has for us. Thread-safe."""

    def __init__(self, size: int):
        self._size = size
        self._lock = threading.Lock()
        self._defined: set[str] = set()
        self._refused: set[str] = set()

    def name_of(self, api: Api, sandbox: dict) -> str | None:
        """The pool for machines like this, defined when it is asked for the first time. None: there is none, and each machine is
        made when it is needed."""
        if not self._size:
            return None
        text = json.dumps([sandbox, START, WAITING], sort_keys=True)
        name = "lf-" + hashlib.sha256(text.encode()).hexdigest()[:18]
        with self._lock:
            if name in self._refused:
                return None
            if name not in self._defined:
                body = {"sandbox": sandbox, "size": self._size, "idle_seconds": IDLE_SECONDS,
                        "warm": {"command": "/bin/sh", "args": ["-c", START, WAITING, FOLDER, READY], "ready": READY}}
                (self._defined if api.define_pool(name, body) else self._refused).add(name)
            return name if name in self._defined else None

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()

    def forget(self, name: str) -> None:
        """It is gone from the server: defined anew when it is asked for."""
        with self._lock:
            self._defined.discard(name)
