# SPDX-License-Identifier: Apache-2.0
"""The list of libraries agrees with the pins and the lock, and makes a policy for each runtime."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

RUNTIMES = pathlib.Path(__file__).resolve().parent.parent.parent / "runtimes"
sys.path[:0] = [str(RUNTIMES), str(RUNTIMES / "python")]

from fetch_cpython import site_versions  # noqa: E402
from make_policy import make_policy  # noqa: E402

LISTING = tomllib.loads((RUNTIMES / "python-packages.toml").read_text())
PINS = json.loads((RUNTIMES / "pins.json").read_text())
ENTRIES = LISTING["library"] + LISTING["dependency"]

# What the specification promises: WASM lacks those of the second set.
EVERYWHERE = set("numpy scipy sympy pandas pint statsmodels networkx sklearn xarray dateutil six matplotlib".split())
NATIVE_ONLY = set("cftime astropy geopandas shapely rasterio rioxarray".split())


def lock():
    """name -> (version, hashes)"""
    text = "\n".join(line for line in (RUNTIMES / "python-native.lock").read_text().splitlines() if not line.startswith("#")).replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        name, version, hashes = re.fullmatch(r"([a-z0-9-]+)==([0-9a-z.]+)((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*", line).groups()
        assert name not in found, f"{name} stands twice in the lock"
        found[name] = (version, hashes.split())
    return found


class Packages(unittest.TestCase):
    def test_have_the_versions_of_the_lock(self):
        native = {entry["name"]: entry["native"]["version"] for entry in ENTRIES if "version" in entry.get("native", {})}
        self.assertEqual(native, {name: version for name, (version, _) in lock().items()})

    def test_have_the_python_and_the_wheels_of_the_pins(self):
        self.assertEqual(LISTING["runtimes"]["cpython"]["python"], PINS["cpython"]["python"])
        self.assertEqual(site_versions().keys(), PINS["cpython"]["site_wheels"].keys())

    def test_are_where_the_specification_has_them(self):
        policies = {runtime: make_policy(runtime) for runtime in ("cpython", "native", "oci")}
        for runtime, policy in policies.items():
            here = {name for name, entry in policy["libraries"].items() if runtime in entry["runtimes"]}
            self.assertLessEqual(EVERYWHERE, here)
            self.assertEqual(NATIVE_ONLY & here, set() if runtime == "cpython" else NATIVE_ONLY)
        self.assertEqual(policies["native"]["libraries"], policies["oci"]["libraries"])
        self.assertLessEqual({"duckdb", "sqlalchemy", "bokeh", "altair", "cartopy", "seaborn", "sqlite3"}, set(policies["native"]["refused"]))

    def test_say_why_they_are_missing(self):
        for entry in LISTING["library"]:
            for runtime in ("cpython", "native"):
                self.assertEqual(set(entry[runtime]) in ({"version", "kind"}, {"missing"}), True, entry)

    def test_name_no_module_twice(self):
        modules = [module for entry in ENTRIES for module in entry["imports"]]
        self.assertEqual(len(modules), len(set(modules)))
        self.assertEqual(set(modules) & {entry["module"] for entry in LISTING["refused"]}, set())

    def test_the_policy_can_be_printed(self):
        program = RUNTIMES / "python" / "make_policy.py"
        found = subprocess.run([sys.executable, str(program), "cpython"], capture_output=True, text=True)
        self.assertEqual(json.loads(found.stdout), make_policy("cpython"))
        self.assertEqual(subprocess.run([sys.executable, str(program), "none"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
