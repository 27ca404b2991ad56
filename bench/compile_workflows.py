#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles workflows of 10, 200 and 2,000 nodes with our compiler and with orcheo's, in turns within
one run, and prints the processor time of both as JSON for bench/run.py. Where no interpreter with
orcheo is found, the figures stand without a control.

usage: bench/compile_workflows.py COMPILE_BENCH [--repeat N]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "workflow"))
import orcheo_process  # noqa: E402

TARGET_SECONDS = {10: 0.3e-3, 200: 4e-3}
TARGET_RATIO = 25.0
HEAD = """from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode
from orcheo.nodes.logic import SetVariableNode


class Grade(CodeNode):
    threshold: int = 6
    labels: list = ["low", "high"]

    def run(self, state, config):
        score = state["node_results"]["n0"]["value"]
        # a comment that is kept
        if score >= self.threshold:
            return {"verdict": self.labels[1]}
        return {"verdict": self.labels[0]}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_edge(START, "n0")
"""


def workflow(nodes):
    lines = [HEAD]
    for i in range(nodes):
        if i % 5 == 4:
            node = f'Grade(name="n{i}", threshold={i})'
        else:
            node = (
                f'SetVariableNode(name="n{i}", variables={{"value": {i}, "text": "{{{{n0.value}}}}", '
                f'"nested": {{"list": [1, 2.5, None, True], "k": "v{i}"}}}})'
            )
        lines.append(f'    graph.add_node("n{i}", {node})\n')
        if i == 0:
            continue
        if i % 10 == 9:
            lines.append(
                f'    graph.add_conditional_edges("n{i - 1}", {{"path": "node_results.n{i - 1}.verdict", '
                f'"mapping": {{"low": "n{i}", "high": END}}, "default": "n{i}"}})\n'
            )
        else:
            lines.append(f'    graph.add_edge("n{i - 1}", "n{i}")\n')
    lines.append(f'    graph.add_edge("n{nodes - 1}", END)\n    return graph\n')
    return "".join(lines)


def seconds_of_ours(program, source):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(source)
        file.flush()
        result = subprocess.run([program, file.name], text=True, capture_output=True, check=True)
    return json.loads(result.stdout)["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the compile_bench program")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    python = orcheo_process.find_python()
    peer = orcheo_process.Compiler([python, str(orcheo_process.PEER), "--time", "5"]) if python else None
    per_node = {}
    for nodes in (10, 200, 2000):
        source = workflow(nodes)
        ours, theirs = [], []
        for _ in range(options.repeat):
            ours.append(seconds_of_ours(options.program, source))
            if peer:
                theirs.append(peer(source)["seconds"])
        best = min(ours)
        per_node[nodes] = best / nodes
        row = {"what": f"compile a workflow of {nodes} nodes", "value": best * 1e3, "unit": "ms"}
        targets = []
        met = []
        if nodes in TARGET_SECONDS:
            targets.append(f"< {TARGET_SECONDS[nodes] * 1e3:g} ms")
            met.append(best < TARGET_SECONDS[nodes])
        if peer:
            ratio = min(theirs) / best
            row |= {"control": min(theirs) * 1e3, "control_name": "orcheo 0.46.1", "ratio": ratio}
            targets.append(f"{TARGET_RATIO:g} times as fast")
            met.append(ratio >= TARGET_RATIO)
        print(json.dumps(row | {"target": ", ".join(targets), "ok": all(met)}), flush=True)
    growth = per_node[2000] / per_node[200]
    row = {"what": "time per node, 2000 nodes to 200", "value": growth, "unit": "times"}
    print(json.dumps(row | {"target": "linear: < 1.5", "ok": growth < 1.5}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
