# SPDX-License-Identifier: Apache-2.0
"""Machines in which an interpreter has started before somebody asks: the pool that the server keeps of them, and the program
that waits in each.

A run is one command of the machine, as without a pool: a shell that names itself to the waiting interpreter, which takes over the
shell's streams, and whose exit code the shell gives. So output, limits and times are those of any command.
"""

import hashlib
import json
import math
import re
import threading
import time

from .server import Api

FOLDER = "/tmp/.caisson-langflow"  # wherever /run is not the machine's own, too
IDLE_SECONDS = 900
READY = "caisson-langflow ready"
REFUSED_SECONDS = 300  # until a server that was busy, or whose quota was used up, is asked for a pool again

# What the program sees is what `python3 file` shows it, but for one more frame below it; modules that it would find loaded are those
# that the interpreter has loaded by itself, and no generator of random numbers is seeded before a machine is copied.
WAITING = r'''
names = dict(globals())
import gc, os, sys
folder, ready = sys.argv[1:3]
gc.collect()
gc.freeze()
os.write(1, f"{ready}\n".encode())
with open(f"{folder}/ask") as ask:
    shell = int(ask.readline())
os.setsid()
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
sys.argv, sys.orig_argv = [path], [sys.orig_argv[0], path]
if not getattr(sys.flags, "safe_path", False):
    sys.path[0] = os.path.dirname(path)
main = sys.modules["__main__"] = type(sys)("__main__")
loader = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
main.__dict__.update(names, __file__=path, __cached__=None, __loader__=loader)
try:
    exec(compile(code.encode(), path, "exec"), main.__dict__)
except SystemExit:
    raise
except BaseException:
    show = getattr(sys, "excepthook", sys.__excepthook__)
    def without_this_file(kind, error, trace):
        error.__traceback__ = trace.tb_next
        show(kind, error, trace.tb_next)
    sys.excepthook = without_this_file
    raise  # so that the interpreter ends as it does, by SIGINT after a KeyboardInterrupt
'''

# $0 the program that waits, $1 the folder, $2 the line that says that it does. A shell tells the exit code, whatever the program does to
# its own process, group and files, and shares no memory with it, which would be copied page by page as the program runs.
START = ('mkdir -p -m 700 "$1" && mkfifo -m 600 "$1/ask" "$1/told" && exec 5<>"$1/told" || exit 1; '
         'python3 -c "$0" "$1" "$2" 5>&-; echo $? >&5')

# $0 the folder. While it says who it is, its own output is the FIFO: what the interpreter takes over has other numbers. The program may
# end the shell that would tell the code; then nobody has the FIFO any more, and there is nothing to wait for.
HAND_OVER = ('exec 3>&1 4<&0 5<"$0/told"; echo $$ >"$0/ask" && read -r code <&5 && exit "$code"; '
             'echo "caisson: the program has ended the process that started it, and its exit code is not known" >&2; exit 1')

# What an interpreter or its libraries read once, when they start.
READ_AT_START = re.compile("(PYTHON|LC_|LD_|MALLOC_|GLIBC_).*|LANG|LANGUAGE|TZ|HOME|PATH")
VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
MOST_VARIABLES, MOST_BYTES, MOST_BYTES_IN_ALL = 64, 4096, 64 << 10  # of a machine: how many, of one value, of all


def fits(code: str, env: dict[str, str]) -> bool:
    """Whether an interpreter that waits does the same with it as one that starts. What the server would refuse of variables does not
    fit either, so that it refuses it in its own words."""
    if "\0" in code or len(env) > MOST_VARIABLES or sum(len(f"{name}{value}".encode()) for name, value in env.items()) > MOST_BYTES_IN_ALL:
        return False
    return all(
        VARIABLE.fullmatch(name) and not READ_AT_START.fullmatch(name) and "\0" not in value and len(value.encode()) <= MOST_BYTES
        for name, value in env.items())


def command(code: str, env: dict[str, str], path: str, seconds: int) -> dict:
    """What is run in a machine of a pool, for what fits()."""
    return {"cmd": "/bin/sh", "args": ["-c", HAND_OVER, FOLDER], "timeout_seconds": seconds,
            "stdin": "\0".join([path, str(len(env)), *(f"{name}={value}" for name, value in env.items()), code])}


class Pools:
    """Which pools the server has for us. Thread-safe."""

    def __init__(self, size: int):
        self._size = size
        self._lock = threading.Lock()
        self._defined: set[str] = set()
        self._refused: dict[str, float] = {}  # when

    def name_of(self, api: Api, sandbox: dict) -> str | None:
        """The pool for machines like this, defined when it is asked for the first time. None: there is none, and each machine is
        made when it is needed."""
        if not self._size:
            return None
        text = json.dumps([sandbox, START, WAITING], sort_keys=True)
        name = "lf-" + hashlib.sha256(text.encode()).hexdigest()[:18]
        with self._lock:
            if time.monotonic() - self._refused.get(name, -math.inf) < REFUSED_SECONDS:
                return None
            if name not in self._defined:
                body = {"sandbox": sandbox, "size": self._size, "idle_seconds": IDLE_SECONDS,
                        "warm": {"command": "/bin/sh", "args": ["-c", START, WAITING, FOLDER, READY], "ready": READY}}
                if api.define_pool(name, body):
                    self._defined.add(name)
                else:
                    self._refused[name] = time.monotonic()
            return name if name in self._defined else None

    def reset_after_fork(self) -> None:
        self._lock = threading.Lock()

    def forget(self, name: str) -> None:
        """It is gone from the server: defined anew when it is asked for."""
        with self._lock:
            self._defined.discard(name)
