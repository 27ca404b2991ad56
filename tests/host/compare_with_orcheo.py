# SPDX-License-Identifier: Apache-2.0
"""Runs a chain of nodes that are not native, by `caisson run` with a node host and by calling them in the real package,
and compares what each writes into the state. Exits with 77 where orcheo cannot be imported, or where there is no network
namespace for a host.

    compare_with_orcheo.py build/.../bin
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "workflow"))

from orcheo_process import SKIPPED, find_python  # noqa: E402

import cases  # noqa: E402

LEAST_TYPES = 40
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def builtin(name, kind, config):
    return {"kind": "builtin", "id": name, "type": kind, "config": config}


def chain_ir(chain, seed):
    nodes = [builtin("seed", "SetVariableNode", {"variables": {"node_results": seed}})]
    nodes += [builtin(*node) for node in chain]
    edges = [{"source": a["id"], "target": b["id"]} for a, b in zip(nodes, nodes[1:])]
    return {"schema_version": 1, "entrypoint": "seed", "nodes": nodes, "edges": edges}


class Ours:
    def __init__(self, programs, python):
        self.program = f"{programs}/caisson"
        self.python = python

    def run(self, ir, inputs, types, secrets):
        with tempfile.TemporaryDirectory(prefix="caisson-host-") as folder:
            path = pathlib.Path(folder)
            (path / "ir.json").write_text(json.dumps(ir))
            (path / "inputs.json").write_text(json.dumps(inputs))
            command = [self.program, "run", str(path / "ir.json"), "--input", f"@{path}/inputs.json", "--report",
                       "--node-host", self.python, "--node-host-types", ",".join(sorted(types)), "--durability", "none",
                       "--events-file", str(path / "events.jsonl")]
            environment = os.environ | {"PYTHONPATH": str(ROOT / "clients/orcheo/src")}
            for name, secret in secrets.items():
                environment[f"TEST_{name}"] = secret
                command += ["--credential", f"{name}=env:TEST_{name}"]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
            if "error[host.no_isolation]" in done.stderr:
                print("skipped:", done.stderr)
                sys.exit(SKIPPED)
            events = []
            if (path / "events.jsonl").exists():
                events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
            return done, events


def normal(update):
    """Without times and random ids, and with messages in one form."""
    if isinstance(update, dict):
        if "response_metadata" in update and "content" in update:
            update = {key: value for key, value in update.items() if key != "id" and value not in (None, [])}
        return {key: "<time>" if key == "timestamp" else normal(value) for key, value in update.items()}
    if isinstance(update, list):
        return [normal(item) for item in update]
    return UUID.sub("<uuid>", update) if isinstance(update, str) else update


def compare_chain(ours, python):
    chain, inputs = cases.chain(), cases.inputs()
    request = {"chain": chain, "inputs": inputs, "seed": cases.SEED, "secrets": cases.SECRETS}
    there = subprocess.run([python, str(HERE / "direct_runs.py")], input=json.dumps(request), capture_output=True, text=True,
                           timeout=300)
    if there.returncode != 0:
        return [f"the peer: {there.stderr}"], 0
    expected = json.loads(there.stdout)
    done, events = ours.run(chain_ir(chain, cases.SEED), inputs, {kind for _, kind, _ in chain}, cases.SECRETS)
    updates = {event["node"]: event["update"] for event in events if event["event"] == "node_finished"}
    faults, agreed = [], set()
    for name, kind, _ in chain:
        if "error" in expected[name]:
            faults.append(f"{name}: the peer fails: {expected[name]['error']}")
        elif name not in updates:
            faults.append(f"{name}: ours did not finish: {done.stderr[-2000:]}")
            break
        elif normal(updates[name]) != normal(expected[name]):
            faults.append(f"{name}:\n  ours  {json.dumps(normal(updates[name]))}\n  peer  {json.dumps(normal(expected[name]))}")
        else:
            agreed.add(kind)
    faults += [f"the secret {name} is in an event" for name, secret in cases.SECRETS.items()
               if len(secret) > 8 and secret in json.dumps(events)]
    return faults, len(agreed)


def compare_errors(ours, python):
    """What a node raises, and what is refused before anything runs."""
    request = {"chain": [["n", "QueryClassifierNode", {}]], "inputs": {}, "seed": {}, "secrets": {}}
    there = subprocess.run([python, str(HERE / "direct_runs.py")], input=json.dumps(request), capture_output=True, text=True)
    expected = json.loads(there.stdout)["n"]["error"]
    faults = []
    done, _ = ours.run(chain_ir([("n", "QueryClassifierNode", {})], {}), {}, {"QueryClassifierNode"}, {})
    error = json.loads(done.stdout)["error"]
    if (done.returncode, f"{error['error_type']}: {error['message']}") != (4, expected):
        faults.append(f"raised: {error} is not {expected}")
    done, events = ours.run(chain_ir([("n", "ReRankerNode", {"top_k": []})], {}), {}, {"ReRankerNode"}, {})
    if done.returncode != 3 or events or "Failed to construct node 'n' of type 'ReRankerNode'" not in done.stderr:
        faults.append(f"a bad configuration: {done.returncode} {done.stderr}")
    return faults


def main():
    python = find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON names one")
        return SKIPPED
    ours = Ours(sys.argv[1], python)
    faults, agreed = compare_chain(ours, python)
    faults += compare_errors(ours, python)
    for fault in faults:
        print(fault)
    print(f"{agreed} types agree, {len(faults)} faults")
    return 1 if faults or agreed < LEAST_TYPES else 0


if __name__ == "__main__":
    sys.exit(main())
