#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times caisson-langflow's backend against the CreateOS plugin's, both against one `caisson serve`, turn by turn.

usage: bench/langflow_backend.py BUILD [--driver jail] [--runs N] [--gap SECONDS]

Needs root, the image devbox:1, and a Python with lfx, caisson-langflow and langflow-sandbox-createos: that of CAISSON_LANGFLOW_PYTHON, else
the one that the tests of a build have made (tests/clients/prepare.py). The gap is how long nothing is asked between two runs; 0 is one after the other.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"
INSIDE = "CAISSON_BENCH_LANGFLOW"


def tell(what, times, target=None, ok=None, control=None):
    row = {"what": f"{what}, p50 (p90 {sorted(times)[len(times) * 9 // 10]:.0f})", "value": statistics.median(times), "unit": "ms"}
    if target:
        row |= {"target": target, "ok": bool(ok)}
    if control:
        row |= {"control": control, "control_name": "the CreateOS plugin, the same server and run", "ratio": row["value"] / control}
    print(json.dumps(row), flush=True)


def measure(driver, runs, gap):
    import time

    sys.path[:0] = [str(TESTS / "clients"), str(TESTS / "machine")]
    os.environ["CAISSON_TEST_DRIVER"] = driver
    from service_under_test import Service

    service = Service()
    service.warm({"shape": "s-2vcpu-4gb"})
    for prefix in ("CAISSON", "CREATEOS"):
        os.environ[f"{prefix}_SANDBOX_BASE_URL"], os.environ[f"{prefix}_SANDBOX_API_KEY"] = service.url, service.key
    os.environ["LANGFLOW_SANDBOX_CREATEOS_ACCEPT_EGRESS_EXCEPTIONS"] = "true"
    os.environ["LANGFLOW_SANDBOX_ALLOW_SOFTWARE_EMULATION"] = "true"
    from caisson_langflow.backend import make_backend
    from langflow_sandbox_createos import CreateOSBackend

    backends = {"ours": make_backend(), "the plugin": CreateOSBackend()}
    times = {name: [] for name in backends}
    for turn in range(runs + 3):
        for name, backend in backends.items():
            time.sleep(gap)
            begin = time.perf_counter()
            result = backend.run("print(1)")
            spent = (time.perf_counter() - begin) * 1e3
            if result.stdout != "1\n":
                raise SystemExit(f"langflow: {name} said {result}")
            if turn >= 3:
                times[name].append(spent)
    ours, control = (statistics.median(times[name]) for name in ("ours", "the plugin"))
    within = 60 if driver == "jail" else 900
    tell(f'run("print(1)"), {driver}, a gap of {gap:g} s', times["ours"],
         f"<= {within} ms" + (", 1.5 times as fast" if driver == "jail" else ""),
         ours <= within and (driver != "jail" or control >= 1.5 * ours), control)
    tell(f'the plugin\'s run("print(1)"), {driver}', times["the plugin"])
    view = service._call("GET", "/v1/pools")["data"]["data"][0]
    print(json.dumps({"what": "of the pool", "handed_out": view["handed_out"], "missed": view["missed"], "load": os.getloadavg()}))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", default="jail")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--gap", type=float, default=0.3)
    asked = parser.parse_args()
    if INSIDE in os.environ:
        return measure(asked.driver, asked.runs, asked.gap)
    made = sorted(TESTS.parent.glob("build/*/clients/langflow/bin/python"))
    python = os.environ.get("CAISSON_LANGFLOW_PYTHON") or (str(made[0]) if made else None)
    if python is None:
        print("skipped: no build has build/*/clients/langflow (tests/clients/prepare.py), and CAISSON_LANGFLOW_PYTHON is not set",
              file=sys.stderr)
        sys.exit(77)
    environment = os.environ | {INSIDE: "1", "CAISSON_BUILD": str(asked.build.resolve()), "LFX_LOG_LEVEL": "ERROR"}
    sys.exit(subprocess.run([python, "-W", "ignore", *sys.argv], env=environment).returncode)


if __name__ == "__main__":
    main()
