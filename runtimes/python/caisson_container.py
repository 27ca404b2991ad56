# SPDX-License-Identifier: Apache-2.0
"""The program of a container: sees for itself that the walls stand, puts up the last ones, and runs one
script with a channel of its own.

The harness comes in by standard input, as code that `compile_all` has made with the same interpreter
before, so that an image need hold nothing but Python and no two versions can meet. After it come
HEAD, a seccomp filter, and the job (caisson_run.read_job). Before anything of the script runs, one frame goes out:
ENTERED, or FAILED with the reason.
"""

import marshal
import os
import struct
import sys

ENTERED = 17
FAILED = 18
SCRIPT_BEGINS = b"\0caisson: the script begins\0\n"  # on standard error, where others have spoken before
HEAD = struct.Struct("<7Q")  # as src/isolate/oci/container.cc writes it
CHANNEL = 512  # jail::kFirstHostFd

# Bits of `expected`: what must stand. What a test leaves out on purpose is not looked for.
NO_NEW_PRIVILEGES, NO_CAPABILITIES, READ_ONLY_ROOT, NO_NETWORK, OTHER_USER, OUTER_FILTER, FILTER, FIRST_PROCESS = (1 << bit for bit in range(8))
# Bits of `flags`.
UNGUARDED = 1
PUMP_STDOUT = 2

PR_GET_SECCOMP, PR_SET_SECCOMP, PR_CAPBSET_READ, PR_GET_NO_NEW_PRIVS = 21, 22, 23, 39
CAPABILITIES = 41


class WallMissing(Exception):
    pass


def compile_all(sources, policy):
    """{module: marshalled code}, with the guard's policy as a module of its own."""
    import json

    codes = {name: marshal.dumps(compile(text, f"<caisson>/{name}.py", "exec", dont_inherit=True)) for name, text in sources.items()}
    codes["caisson_policy"] = marshal.dumps(compile(f"POLICY = {json.loads(policy)!r}", "<caisson>/caisson_policy.py", "exec"))
    return codes


def require(holds, wall):
    if not holds:
        raise WallMissing(f"{wall} (seen from inside the container)")


def interfaces():
    with open("/proc/net/dev") as file:
        return {line.split(":")[0].strip() for line in file if ":" in line}


def look_at_walls(prctl, expected):
    if expected & NO_NEW_PRIVILEGES:
        require(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs is not set")
    if expected & NO_CAPABILITIES:
        require(not any(prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1 for number in range(CAPABILITIES)), "the bounding set of capabilities is not empty")
        with open("/proc/self/status") as file:
            sets = [line.split()[1] for line in file if line.startswith(("CapPrm", "CapEff", "CapInh", "CapAmb"))]
        require(sets and not any(int(text, 16) for text in sets), "there are capabilities")
    if expected & READ_ONLY_ROOT:
        require(os.statvfs("/").f_flag & os.ST_RDONLY, "the root is not read-only")
    if expected & NO_NETWORK:
        require(interfaces() <= {"lo"}, "there is a network beside the loopback")
    if expected & OTHER_USER:
        require(0 not in (*os.getresuid(), *os.getresgid()), "the user or group is root")
    if expected & OUTER_FILTER:
        require(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2, "no seccomp filter is loaded")
    if expected & FIRST_PROCESS:
        require(len([name for name in os.listdir("/proc") if name.isdigit()]) <= 2, "processes of others can be seen")


def lower_limits(data_bytes, file_bytes):
    import resource

    for kind, value in (
        (resource.RLIMIT_NOFILE, CHANNEL),
        (resource.RLIMIT_DATA, data_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        if kind == resource.RLIMIT_CORE or value:
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def load_filter(ctypes, prctl, program):
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    require(len(os.listdir("/proc/self/task")) == 1, "there are threads before the filter")
    result = prctl(PR_SET_SECCOMP, 2, ctypes.byref(Program(len(program) // 8, program)), 0, 0)
    require(result == 0, "the script's seccomp filter cannot be loaded")


def place_descriptors(channel):
    """The channel where a script's write, dup and fcntl cannot reach it; nothing else is left open."""
    os.dup2(channel, CHANNEL, inheritable=False)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.closerange(3, CHANNEL)
    os.closerange(CHANNEL + 1, 65536)


class Pump:
    """Takes what is written to descriptor 1 to the channel, where the real one is the channel."""

    def __init__(self, channel, number):
        import _thread

        self._read, write = os.pipe()
        os.dup2(write, 1)
        os.close(write)
        self._done = _thread.allocate_lock()
        self._done.acquire()
        _thread.start_new_thread(self._run, (channel, number, os.read))

    def _run(self, channel, number, read):
        try:
            while text := read(self._read, 1 << 16):
                channel.write(number, text)
        finally:
            self._done.release()

    def finish(self):
        """Waits for the end of what was written; not for a script's thread that still holds its end."""
        nothing = os.open("/dev/null", os.O_WRONLY)
        os.dup2(nothing, 1)
        self._done.acquire(timeout=0.5)


class PumpedChannel:
    """The harness's channel: before the last word, what was printed is there."""

    def __init__(self, channel, pump):
        self._channel, self._pump = channel, pump

    def send(self, kind, text, final=True):
        if kind == "end":
            self._pump.finish()
        self._channel.send(kind, text, final)


def main(file):
    import ctypes

    import caisson_run

    channel_descriptor, flags, expected, data_bytes, file_bytes, filter_bytes, _ = HEAD.unpack(file.read(HEAD.size))
    program = file.read(filter_bytes)
    job = caisson_run.read_job(file)
    file.close()
    place_descriptors(channel_descriptor)
    channel = caisson_run.Channel(CHANNEL)
    try:
        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
        os.chdir("/tmp")
        look_at_walls(prctl, expected)
        lower_limits(data_bytes, file_bytes)
        if expected & FILTER:
            load_filter(ctypes, prctl, program)
    except (WallMissing, OSError, ValueError) as error:
        channel.write(FAILED, str(error).encode())
        os._exit(1)
    caisson_run.ready_streams()
    caisson_run.clean_environment()
    if not flags & UNGUARDED:
        import caisson_policy

        caisson_run.guard(caisson_policy.POLICY)
    sink = PumpedChannel(channel, Pump(channel, caisson_run.STDOUT)) if flags & PUMP_STDOUT else channel
    leave = os._exit
    os.write(2, SCRIPT_BEGINS)
    channel.write(ENTERED, b"")
    caisson_run.run(job, sink)
    # The report was the last word.
    leave(0)
