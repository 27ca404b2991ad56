# SPDX-License-Identifier: Apache-2.0
"""What is particular to the runtime native: its image, its walls, what the environment asks of it, and what a
service that is killed leaves behind. The folder of the programs is the first argument.
"""

import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from process_tree import descendants, living  # noqa: E402
from programs import BIN, caisson, environment, main  # noqa: E402
from service import Service  # noqa: E402

CAISSON = str(BIN / "caisson")
WITHOUT_PIDS = "echo 0 > /proc/sys/user/max_pid_namespaces || exit 99; exec \"$@\""
MEMORY = "done(len([bytearray(1 << 20) for _ in range(200)]))\n"


def run(script: str, *arguments: str, env: dict | None = None):
    return caisson("block", "run", "-", *arguments, stdin=script, env={"PYTHON_SANDBOX_MODE": "native"} | (env or {}))


def doctor(**variables: str) -> dict:
    done = caisson("doctor", "--json", env=variables)
    return {runtime["name"]: runtime for runtime in json.loads(done.stdout)["block_runtimes"]}


FIRST = run("done(1)")


class Missing(unittest.TestCase):
    def test_image_is_named_with_the_command_that_builds_it(self):
        with tempfile.TemporaryDirectory() as empty:
            refused = run("done(1)", env={"CAISSON_IMAGES_DIR": empty})
        self.assertEqual((refused.code, refused.stdout), (6, ""))
        self.assertIn("block.runtime_unavailable", refused.stderr)
        self.assertIn("sudo caisson images build python-science", refused.stderr)

    def test_root_is_named(self):
        with tempfile.TemporaryDirectory() as empty:
            missing = f"{empty}/root"
            refused = run("done(1)", "--root", missing)
        self.assertEqual(refused.code, 6)
        self.assertIn(f'"{missing}" is no directory', refused.stderr)

    def test_runtime_stands_in_the_hello_of_a_service_with_its_reason(self):
        with tempfile.TemporaryDirectory() as empty:
            with Service("--runtime", "auto", env={"CAISSON_IMAGES_DIR": empty}) as service:
                native = next(one for one in service.hello["runtimes"] if one["name"] == "native")
                self.assertFalse(native["available"])
                self.assertIn("images build python-science", native["reason"])


@unittest.skipIf(FIRST.code != 0, FIRST.stderr)
class Native(unittest.TestCase):
    def test_is_refused_where_a_wall_is_missing(self):
        inside = ["unshare", "-Ur", "sh", "-c", WITHOUT_PIDS, "sh"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespace can be made here")
        refused = subprocess.run([*inside, CAISSON, "block", "run", "-", "--runtime", "native"], input=b"done(1)",
                                 capture_output=True, env=environment(), timeout=60)
        self.assertEqual((refused.returncode, refused.stdout), (7, b""), refused.stderr)
        self.assertIn(b"pid_namespace", refused.stderr)

    def test_doctor_runs_a_script_in_it(self):
        self.assertEqual(doctor()["native"], {"name": "native", "ready": True, "reason": "", "what_to_do": ""})
        with tempfile.TemporaryDirectory() as empty:
            missing = doctor(CAISSON_IMAGES_DIR=empty)["native"]
        self.assertFalse(missing["ready"])
        self.assertIn("sudo caisson images build python-science", missing["reason"])

    def test_has_the_libraries_that_webassembly_lacks(self):
        script = "import rasterio, rioxarray, cftime, astropy, shapely, geopandas\ndone(rasterio.__version__)"
        result = run(script)
        self.assertEqual(result.code, 0, result.stderr)

    def test_is_what_auto_takes_for_such_a_library(self):
        version = "import sys\ndone(sys.version_info[1])\n"
        chosen = run(f"import rasterio\n{version}", "--runtime", "auto")
        self.assertEqual((chosen.code, chosen.stdout), (0, "11\n"), chosen.stderr)
        if doctor()["cpython"]["ready"]:
            self.assertNotEqual(run(version, "--runtime", "auto").stdout, "11\n")

    def test_honours_the_environment(self):
        slow = run("while True: pass", env={"PYTHON_SANDBOX_TIMEOUT_MS": "300"})
        self.assertEqual(slow.code, 5)
        self.assertIn("300 ms", slow.stderr)
        for variables in ({"PYTHON_SANDBOX_MEMORY": "96m"}, {"PYTHON_SANDBOX_HEAP_MB": "96"},
                          {"PYTHON_SANDBOX_HEAP_MB": "4096", "PYTHON_SANDBOX_MEMORY": "96m"}):
            with self.subTest(variables):
                self.assertEqual(run(MEMORY, env=variables).code, 5)
        self.assertEqual(run(MEMORY).stdout, "200\n")
        threads = ("import threading, time\ntry:\n    for n in range(100):\n"
                   "        threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
                   "except RuntimeError: pass\ndone(n)")
        self.assertLess(int(run(threads, env={"PYTHON_SANDBOX_PIDS": "20"}).stdout), 20)
        self.assertEqual(run(threads, "--memory", "2GiB").stdout, "99\n")  # each has a stack
        spin = ("import time\nbegin, used = time.monotonic(), time.process_time()\n"
                "while time.monotonic() - begin < 2: pass\ndone(time.process_time() - used)")
        if os.geteuid() == 0:  # else there is no cgroup
            self.assertLess(float(run(spin, env={"PYTHON_SANDBOX_CPUS": "0.05"}).stdout), 0.3)

    def test_interpreters_of_a_service_have_imported_what_scripts_use(self):
        modules = ["matplotlib.pyplot", "astropy.units", "statsmodels.api", "sklearn.linear_model", "pint", "cftime",
                   "rioxarray", "geopandas", "scipy.stats", "sympy", "networkx", "xarray"]
        script = f"import sys\nhad = [name for name in {modules} if name not in sys.modules]\n"
        with Service("--runtime", "native") as service:
            service.run("a", script + "".join(f"import {name}\n" for name in modules) + "done(had)")
            done = next(frame for frame in service.until_end("a") if frame["type"] == "done")
        self.assertEqual(done["result"], [])

    def test_a_script_cannot_have_a_module_imported_where_others_are_forked_from(self):
        script = "import sys\nhad = 'antigravity' in sys.modules, 'wave' in sys.modules\nif had[0]: import antigravity\nimport wave\ndone(had)"
        self.assertEqual(run(script).json(), [False, False])

    def test_a_service_that_is_killed_leaves_nothing(self):
        with Service("--runtime", "native") as service:
            service.run("a", "print('at work', flush=True)\nwhile True: pass")
            self.assertEqual([service.next()["type"] for _ in range(2)], ["accepted", "stdout"])
            below = descendants(service.process.pid)
            groups = f"/sys/fs/cgroup/**/caisson.{service.process.pid}-*"
            self.assertGreaterEqual(len(below), 3)  # the reaper, an interpreter, its call
            if os.geteuid() == 0:
                self.assertNotEqual(glob.glob(groups, recursive=True), [])
            service.process.send_signal(signal.SIGKILL)
            end = time.monotonic() + 30
            while time.monotonic() < end and (living(below) or glob.glob(groups, recursive=True)):
                time.sleep(0.05)
            self.assertEqual(living(below), set())
            self.assertEqual(glob.glob(groups, recursive=True), [])


if __name__ == "__main__":
    main()
