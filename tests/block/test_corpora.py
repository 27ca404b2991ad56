# SPDX-License-Identifier: Apache-2.0
"""tests/corpora/benign and tests/corpora/attacks in one runtime, through `caisson block serve`.

    test_corpora.py BIN RUNTIME [OPTION of block serve …] [-- ARGUMENT of unittest …]
    test_corpora.py build/release/bin native --root /srv/python -- Attacks.test_res_cpu_loop

Every attack is judged by the oracle that its first line names and by what holds for all runs; see the README
files of the corpora. Exit code 77: the runtime is not available here.
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from canaries import SECRET, TEXT, Canaries  # noqa: E402
from process_tree import Peaks, adopt_orphans, descendants, private_bytes, threads  # noqa: E402
from programs import ROOT  # noqa: E402
from service import FIRST_RUN, PREPARED, Host, Run  # noqa: E402

CORPORA = ROOT / "tests/corpora"

DEADLINE = 5  # seconds
GRACE = 2  # seconds beyond the deadline
MIB = 1 << 20
LIMITS = {"wall_ms": DEADLINE * 1000, "memory_bytes": 384 * MIB, "output_bytes": 16 * MIB,
          "stream_bytes": 64 << 10, "disk_bytes": 16 * MIB, "pids": 64}
BENIGN = "done({'benign': sum(range(10))})\n"
BENIGN_RESULT = [{"benign": 45}]
# Beside the runs' own limits: the neighbour's interpreter, output on its way, interpreters made anew.
SPARE_BYTES = 512 * MIB
SPARE_THREADS = 64

ARGUMENTS = sys.argv[2:]
RUNTIME = ARGUMENTS[0] if ARGUMENTS else "cpython"
SPLIT = ARGUMENTS.index("--") if "--" in ARGUMENTS else len(ARGUMENTS)
OPTIONS = ARGUMENTS[1:SPLIT]
UNITTEST = ARGUMENTS[SPLIT + 1:]


class Place:
    """The service of this test, a folder that it runs in, and what it had when it was at rest."""

    def __init__(self):
        self.mounts = mounts()
        self.folder = tempfile.TemporaryDirectory(prefix="caisson-corpora-")
        self.canaries = Canaries()
        self.host = None

    def start(self):
        self.host = Host("--runtime", RUNTIME, "--runs", "2", *OPTIONS, cwd=self.folder.name,
                         env={"HOST_CANARY_SECRET": SECRET})

    def warm(self):
        """Every interpreter that runs use exists, and the machine is at rest."""
        for script in PREPARED:
            runs = [self.host.start(script) for _ in range(2)]
            for run in runs:
                self.host.wait(run, FIRST_RUN)
        self.threads = max(self._threads_at_rest() for _ in range(3))
        self.bytes = private_bytes(descendants(self.host.process.pid))

    def _threads_at_rest(self) -> int:
        time.sleep(0.5)
        return threads(self.below())

    def below(self) -> set[int]:
        return descendants() - {self.canaries.sleeper.pid}

    def leftovers(self) -> list[str]:
        """Processes, files and mounts that a run has left; what is about to go is waited for."""
        found = [f"the folder of the service has {name}" for name in sorted(os.listdir(self.folder.name))]
        if self.mounts != mounts():
            found.append("mounts differ")
        end = time.monotonic() + 10
        while (count := threads(self.below())) > self.threads and time.monotonic() < end:
            time.sleep(0.1)
        if count > self.threads:
            found.append(f"{count} threads, {self.threads} before: {sorted(map(command, self.below()))}")
        return found

    def close(self) -> int:
        code = self.host.close()
        self.tidy()
        return code

    def tidy(self):
        self.canaries.close()
        self.folder.cleanup()


def command(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:100]
    except OSError:
        return f"({pid} has ended)"


def mounts() -> list[str]:
    return sorted(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


PLACE: Place  # made by main, in the jail


class Corpus(unittest.TestCase):
    def setUp(self):
        if not PLACE.host.alive():  # another test has failed; it says so
            PLACE.start()
            PLACE.warm()
        self.host = PLACE.host


def differences(got, want, path="$") -> list[str]:
    """Numbers with the tolerance of the README, everything else exactly, types too."""
    if isinstance(got, bool) or isinstance(want, bool) or not isinstance(want, (int, float, list, dict)):
        return [] if type(got) is type(want) and got == want else [f"{path}: {got!r}, expected {want!r}"]
    if isinstance(want, (int, float)):
        near = type(got) is type(want) and math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-9)
        return [] if near else [f"{path}: {got!r}, expected {want!r}"]
    if type(got) is not type(want):
        return [f"{path}: {type(got).__name__}, expected {type(want).__name__}"]
    if isinstance(want, list):
        if len(got) != len(want):
            return [f"{path}: {len(got)} items, expected {len(want)}"]
        return [line for i, (a, b) in enumerate(zip(got, want)) for line in differences(a, b, f"{path}[{i}]")]
    if got.keys() != want.keys():
        return [f"{path}: keys {sorted(got)}, expected {sorted(want)}"]
    return [line for key in want for line in differences(got[key], want[key], f"{path}.{key}")]


def missing_libraries(source: str) -> list[str]:
    """Those of the script's first line that the list says this runtime lacks."""
    needed = re.search(r"libs: ([^|]*)", source).group(1).replace(",", " ").split()
    listing = tomllib.loads((ROOT / "runtimes/python-packages.toml").read_text())
    owner = listing["runtimes"][RUNTIME].get("same_as", RUNTIME)
    lacking = {name for library in listing["library"] if "missing" in library.get(owner, {"missing": ""})
               for name in (library["name"], *library["imports"])}
    return [name for name in needed if name in lacking]


class Benign(Corpus):
    def check(self, path: pathlib.Path):
        source, data = path.read_text(), json.loads(path.with_suffix(".json").read_text())
        run = self.host.run(source, documents=data["input"])
        if missing := missing_libraries(source):
            self.assertEqual(run.refusal and run.refusal["code"], "block.library_unavailable", run)
            self.assertIn(f"'{missing[0]}'", run.refusal["message"])
            self.assertRegex(run.refusal["message"], "it is in (cpython|native|oci)")
            self.skipTest(run.refusal["message"])
        self.assertTrue(run.end.get("ok"), run)
        self.assertEqual((run.finals, len(run.results)), (1, 1), run)
        self.assertEqual(differences(run.results[0], data["expected"]), [])


class Attacks(Corpus):
    def check(self, path: pathlib.Path):
        source = path.read_text()
        oracle = re.search(r"oracle: ([a-z-]+)", source.splitlines()[0]).group(1)
        for _ in range(2 if path.stem == "state_leak_between_runs" else 1):
            self.attack(source, oracle)

    def attack(self, source: str, oracle: str):
        with Peaks(self.host.process.pid) as peaks:
            neighbour = self.host.start(BENIGN)
            run = self.host.run(source, documents=[PLACE.canaries.document()], limits=LIMITS)
            self.host.wait(neighbour)
        self.assertEqual(neighbour.results, BENIGN_RESULT, neighbour)
        self.expect_contained(run)
        {"no-escape": self.expect_no_escape, "limit": self.expect_limit, "no-forge": self.expect_no_forge,
         "host-alive": self.expect_answer}[oracle](run)
        if "'real'" in source or '"real"' in source:
            self.expect_no_forge(run)
        self.assertLess(peaks.bytes, PLACE.bytes + LIMITS["memory_bytes"] + SPARE_BYTES)
        self.assertLess(peaks.threads, PLACE.threads + LIMITS["pids"] + SPARE_THREADS)
        self.assertEqual(self.host.run(BENIGN).results, BENIGN_RESULT, "the next run")
        self.assertEqual(PLACE.leftovers(), [])
        self.assertTrue(self.host.alive(), self.host.messages)

    # Of all runs.
    def expect_contained(self, run: Run):
        self.assertLess(run.seconds, DEADLINE + GRACE, run)
        self.assertEqual(PLACE.canaries.touched(), [])
        for line in run.lines:
            for secret in (TEXT, SECRET):
                self.assertNotIn(secret.encode(), line)
        for result in run.results:
            escaped = result.get("escaped") if isinstance(result, dict) else None
            self.assertTrue(escaped in (None, False) or isinstance(escaped, str), run)

    def expect_answer(self, run: Run):
        self.assertTrue(run.results or not run.end.get("ok") or run.end["no_result"], run)

    def expect_no_escape(self, run: Run):
        self.expect_answer(run)  # the canaries have been looked at

    def expect_limit(self, run: Run):
        if run.results:
            return
        error = run.end["error"]
        self.assertIsNotNone(error, run)
        self.assertTrue(error.get("limit") or error.get("type") in ("MemoryError", "OSError", "BlockingIOError"), run)
        self.assertTrue(error["message"], run)

    def expect_no_forge(self, run: Run):
        if run.results:
            self.assertEqual((run.finals, len(run.results)), (1, 1), run)
            self.assertIs(run.results[0]["real"], True, run)
        else:
            self.assertTrue(run.end["error"] or run.end["no_result"], run)
        self.assertFalse(any(isinstance(result, dict) and "forged" in result for result in run.results), run)
        self.assertEqual(sum(frame["type"] in ("end", "error") for frame in run.frames), 1, run)


def add_tests(case: type, corpus: str):
    for path in sorted((CORPORA / corpus).glob("*.py")):
        setattr(case, f"test_{path.stem}", lambda self, path=path: self.check(path))


def enter_jail():
    """Where we may: pid and mount namespaces that end with this test, so that nothing outlives it."""
    if os.geteuid() == 0 and os.environ.get("CAISSON_CORPORA_JAILED") != "1":
        os.environ["CAISSON_CORPORA_JAILED"] = "1"
        os.execvp("unshare", ["unshare", "-pfm", "--mount-proc", "--kill-child", sys.executable, *sys.argv])


def main() -> int:
    global PLACE
    adopt_orphans()
    PLACE = Place()
    PLACE.start()
    code = PLACE.host.refusal()
    if code is not None:
        PLACE.tidy()
        return code
    PLACE.warm()
    add_tests(Benign, "benign")
    add_tests(Attacks, "attacks")
    program = unittest.main(argv=[sys.argv[0], *UNITTEST], verbosity=2, exit=False)
    code = PLACE.close()
    if code != 0:
        print(f"the service ended with exit code {code}; {PLACE.host.messages}", file=sys.stderr)
    return 0 if program.result.wasSuccessful() and code == 0 else 1


if __name__ == "__main__":
    enter_jail()
    sys.exit(main())
