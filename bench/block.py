#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times runs through `caisson block serve`, as a host program has them, and reads the host's memory.

usage: bench/block.py FOLDER_OF_PROGRAMS RUNTIME [--repeat N]

Many documents: the control is the script itself, which times its own work in the guest, without what it
takes to bring documents in and results out. One list of many results: the control is a list of a tenth.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
sys.argv, ARGUMENTS = [sys.argv[0], *sys.argv[1:2]], sys.argv
sys.path[:0] = [str(TESTS / "block"), str(TESTS / "cli")]

from service import FIRST_RUN, Host  # noqa: E402

sys.argv = ARGUMENTS

# Biomass of the trees of a plot, as the methodologies for forests have it.
SCRIPT = """
import math, time
begin = time.perf_counter()
spent = 0.0
for document in documents:
    at = time.perf_counter()
    plot = document["credentialSubject"][0]
    above = below = 0.0
    for tree in plot["trees"]:
        d, h = tree["diameter"], tree["height"]
        biomass = 0.0673 * (plot["density"] * d * d * h) ** 0.976
        above += biomass
        below += math.exp(-1.0587 + 0.8836 * math.log(biomass))
    carbon = (above + below) * 0.47 / plot["area"]
    result = {"plot": plot["id"], "aboveground": above, "belowground": below, "tco2e": carbon * 44 / 12}
    spent += time.perf_counter() - at
    done(result, False)
done({"spent": spent})
"""


def plot(number: int) -> dict:
    trees = [{"diameter": 8 + (number * 7 + i * 13) % 50, "height": 4 + (number + i * 5) % 25} for i in range(60)]
    return {"id": f"urn:uuid:{number}", "type": ["VerifiableCredential"],
            "credentialSubject": [{"id": f"plot-{number}", "density": 0.58, "area": 0.04, "trees": trees}]}


def show(what: str, value: float, unit: str, **more):
    print(json.dumps({"what": what, "value": round(value, 3), "unit": unit, **more}))


def peak_of(host: Host, script: str) -> float:
    """MB that the host process held more at its peak in this run than before it."""
    def status(name: str) -> float:
        text = pathlib.Path(f"/proc/{host.process.pid}/status").read_text()
        return int(text.split(name + ":")[1].split()[0]) / 1000
    pathlib.Path(f"/proc/{host.process.pid}/clear_refs").write_text("5")  # proc(5): resets VmHWM
    before = status("VmRSS")
    run = host.run(script)
    assert run.end["settled_by"] == "final_done", str(run)
    return max(0.0, status("VmHWM") - before)


def many_documents(host: Host, runtime: str, repeat: int):
    request = {"op": "run", "script": SCRIPT, "documents": [plot(i) for i in range(1000)]}
    lines = [json.dumps(request | {"id": f"many {i}"}).encode() + b"\n" for i in range(repeat)]
    ratios, times = [], []
    for i, line in enumerate(lines):
        run = host.follow(f"many {i}")
        begin = time.perf_counter()
        host.service.write(line)
        host.wait(run)
        took = time.perf_counter() - begin
        assert len(run.results) == 1001, str(run)
        times.append(took * 1e3)
        ratios.append(took / run.results[-1]["spent"])
    show(f"1,000 documents in, 1,000 results out, {runtime}", statistics.median(times), "ms",
         control=round(statistics.median(times) / statistics.median(ratios), 3), control_name="the script itself",
         ratio=round(statistics.median(ratios), 3), target="< 1.3", ok=statistics.median(ratios) < 1.3)


def many_results(host: Host, runtime: str):
    script = "done([{'id': i, 'text': 'x' * 100} for i in range(%d)])"
    few, many = (peak_of(host, script % count) for count in (2000, 20000))
    show(f"20,000 results in one list, memory of the host, {runtime}", many, "MB", control=few,
         control_name="2,000 results", target="bounded", ok=many < 16)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("runtime")
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    host = Host("--runtime", options.runtime)
    code = host.refusal()
    if code is not None:
        return code
    host.run("done(1)", seconds=FIRST_RUN)
    many_documents(host, options.runtime, options.repeat)
    many_results(host, options.runtime)
    return host.close()


if __name__ == "__main__":
    sys.exit(main())
