# SPDX-License-Identifier: Apache-2.0
"""A mixed load on one `caisson block serve`: what it holds does not grow, and every run ends as it should.

    test_soak.py BIN RUNTIME SECONDS [OPTION of block serve …]

Four callers start runs of all kinds, those that fail included. Now and then they pause, and at rest the memory, processes,
descriptors, mounts and cgroups of the service are looked at. Prints one JSON line with the figures. Exit code 77: the runtime
is not available here.
"""

import dataclasses
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from process_tree import adopt_orphans, descendants, leave_mounts_of_others, private_bytes  # noqa: E402
from service import FIRST_RUN, PREPARED, Host, Run  # noqa: E402

RUNTIME, SECONDS = sys.argv[2], float(sys.argv[3])
OPTIONS = sys.argv[4:]

CALLERS = 4
ROUND = min(15.0, SECONDS / 12)  # seconds of load between two looks
MOST_SLOPE = 1.0  # MB a minute, from five minutes on
MOST_GROWTH = 16.0  # MB, in a shorter run: allocators take some minutes to come to rest


@dataclasses.dataclass
class Kind:
    """A script and how it must end: by what it settles, with which result or error code."""
    script: str
    settled_by: str
    results: list | None = None
    code: str | None = None
    more: dict = dataclasses.field(default_factory=dict)
    cancel: bool = False


ROWS = [{"site": f"s{i % 6}", "value": i} for i in range(60)]
TOTALS = [{f"s{i}": sum(range(i, 60, 6)) for i in range(6)}]
KINDS = {
    "nothing": Kind("pass", "end", []),
    "result": Kind("done({'n': 1})", "final_done", [{"n": 1}]),
    "pandas": Kind("import pandas\ndone(pandas.DataFrame(documents).groupby('site').value.sum().to_dict())",
                   "final_done", TOTALS, more={"documents": ROWS}),
    "stream": Kind("for i in range(200):\n  done(i, False)\n  debug('x' * 100)\ndone('end')",
                   "final_done", [*range(200), "end"]),
    "list": Kind("done([{'i': i, 't': 'x' * 40} for i in range(20000)])", "final_done"),
    "print": Kind("print('x' * 200000)\ndone(1)", "final_done", [1]),
    "raise": Kind("raise ValueError('no')", "error", [], "block.raised"),
    "syntax": Kind("done(", "error", [], "block.syntax"),
    "exit": Kind("import sys\nsys.exit(3)", "error", [], "block.exited"),
    "loop": Kind("while True: pass", "limit", [], "block.limit", {"limits": {"wall_ms": 300}}),
    "memory": Kind("x = []\nwhile True: x.append(bytearray(1 << 20))", "limit", [], "block.limit",
                   {"limits": {"memory_bytes": 256 << 20}}),
    "output": Kind("while True: done('x' * 1000, False)", "limit", None, "block.limit",
                   {"limits": {"output_bytes": 1 << 20}}),
    "files": Kind("open('/tmp/a', 'wb').write(b'x' * 1000000)\ndone(2)", "final_done", [2]),
    "cancel": Kind("done(0, False)\nwhile True: pass", "cancel", [0], "block.cancelled", cancel=True),
}


def check(name: str, run: Run) -> str | None:
    kind, end = KINDS[name], run.end
    if end["type"] != "end" or end["settled_by"] != kind.settled_by:
        return f"{name}: {run}"
    if kind.results is not None and run.results != kind.results:
        return f"{name}: {str(run.results)[:200]}, expected {str(kind.results)[:200]}"
    code = end["error"] and end["error"]["code"]
    return None if code == kind.code else f"{name}: {code}, expected {kind.code}"


class Load:
    def __init__(self, host: Host):
        self.host = host
        self.counts = dict.fromkeys(KINDS, 0)
        self.problems: list[str] = []
        self._lock = threading.Lock()

    def one(self, name: str):
        kind = KINDS[name]
        run = self.host.start(kind.script, **kind.more)
        if kind.cancel:
            self.host.until(run, lambda: run.results or run.over)
            self.host.cancel(run)
        problem = check(name, self.host.wait(run))
        self.host.forget(run)
        with self._lock:
            self.counts[name] += 1
            if problem:
                self.problems.append(problem)

    def _caller(self, seed: int, end: float):
        choose = random.Random(seed)
        try:
            while time.monotonic() < end and not self.problems:
                self.one(choose.choice(list(KINDS)))
        except Exception as error:  # a service that has gone
            self.problems.append(repr(error))

    def round(self, number: int):
        end = time.monotonic() + ROUND
        callers = [threading.Thread(target=self._caller, args=(number * CALLERS + i, end)) for i in range(CALLERS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()


@dataclasses.dataclass
class Look:
    seconds: float
    bytes: int
    processes: int
    descriptors: int
    mounts: int
    cgroups: int

    def counts(self) -> tuple:
        return self.processes, self.descriptors, self.mounts, self.cgroups


def cgroups(pids: set[int]) -> int:
    """Those that these processes have made, by their names."""
    names = tuple(f"caisson.{pid}-" for pid in pids)
    return sum(any(part.startswith(names) for part in pathlib.Path(folder).parts)
               for folder, _, _ in os.walk("/sys/fs/cgroup"))


def look(pid: int) -> Look:
    all = {pid, *descendants(pid)}
    return Look(time.monotonic(), private_bytes(all), len(all), len(os.listdir(f"/proc/{pid}/fd")),
                len(pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()), cgroups(all))


def at_rest(pid: int) -> Look:
    """When nothing that counts changes any more: what ends a run or makes its place ready goes on after its end."""
    last, end = look(pid), time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.5)
        now = look(pid)
        if now.counts() == last.counts() and abs(now.bytes - last.bytes) < 1 << 16:
            return now
        last = now
    return last


def slope(looks: list[Look]) -> float:
    """MB a minute: the median over all pairs (Theil and Sen), which one odd look does not move."""
    pairs = [(b.bytes - a.bytes) / (b.seconds - a.seconds) for i, a in enumerate(looks) for b in looks[i + 1:]]
    return statistics.median(pairs) * 60 / 1e6


def judge(looks: list[Look]) -> list[str]:
    settled = looks[len(looks) // 3:]
    problems = []
    growth = (settled[-1].bytes - settled[0].bytes) / 1e6
    if SECONDS >= 300 and slope(settled) >= MOST_SLOPE:
        problems.append(f"memory grows by {slope(settled):.2f} MB a minute")
    if growth >= MOST_GROWTH:
        problems.append(f"memory has grown by {growth:.1f} MB")
    fewest = tuple(map(min, zip(*(one.counts() for one in settled))))
    for what, least, last in zip(("processes", "descriptors", "mounts", "cgroups"), fewest, settled[-1].counts()):
        if last > least:
            problems.append(f"{last} {what} at the end, {least} before")
    return problems


def main() -> int:
    adopt_orphans()
    leave_mounts_of_others()
    with tempfile.TemporaryDirectory(prefix="caisson-soak-") as folder:
        host = Host("--runtime", RUNTIME, *OPTIONS, cwd=folder)
        code = host.refusal()
        if code is not None:
            return code
        load, looks = Load(host), []
        for script in PREPARED:
            host.wait(host.start(script), FIRST_RUN)
        for name in KINDS:
            load.one(name)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not load.problems:
            load.round(len(looks))
            looks.append(at_rest(host.process.pid))
        problems = load.problems + (judge(looks) if len(looks) > 3 else ["too few looks"])
        left = os.listdir(folder)
        problems += [f"the folder of the service has {left}"] if left else []
        code = host.close()
        problems += [f"the service ended with exit code {code}: {host.messages}"] if code else []
    if looks:
        last = dataclasses.asdict(looks[-1]) | {"seconds": SECONDS}
        print(json.dumps({"runtime": RUNTIME, "runs": sum(load.counts.values()), "looks": len(looks), **last,
                          "slope_mb_per_minute": round(slope(looks[len(looks) // 3:]), 3)}))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
