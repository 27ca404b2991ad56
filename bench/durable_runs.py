#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a step of a loop here and by langgraph in the same run: without a record, in memory, in SQLite. Also what a
step of a large state writes, and what a waiting run costs.

usage: bench/durable_runs.py RUNS_BENCH

Without langgraph (CAISSON_ORCHEO_PYTHON names an interpreter that has it) the figures stand without a control.
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "workflow"))
import orcheo_process  # noqa: E402

PEER = """
import sqlite3, sys, tempfile, time
from typing import Annotated, TypedDict
from langgraph.graph import START, END, StateGraph

STEPS = 1000

class State(TypedDict):
    inputs: dict
    node_results: Annotated[dict, lambda left, right: {**left, **right}]
    steps: int

def node(state):
    return {"node_results": {"a": {"n": state["inputs"]["n"], "k": [1, 2]}}, "steps": state["steps"] + 1}

def build(saver):
    graph = StateGraph(State)
    graph.add_node("a", node)
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "a" if state["steps"] < STEPS else END, {"a": "a", END: END})
    return graph.compile(checkpointer=saver)

def time_of(saver, thread):
    app = build(saver)
    config = {"recursion_limit": STEPS + 10, "configurable": {"thread_id": thread}}
    start = time.perf_counter()
    state = app.invoke({"inputs": {"n": 1}, "node_results": {}, "steps": 0}, config)
    assert state["steps"] == STEPS
    return (time.perf_counter() - start) / STEPS * 1e6

def best(make):
    return min(time_of(make(), str(i)) for i in range(3))

print("off", best(lambda: None))
from langgraph.checkpoint.memory import InMemorySaver
print("memory", best(InMemorySaver))
try:
    from langgraph.checkpoint.sqlite import SqliteSaver
except ImportError:
    sys.exit()
folder = tempfile.mkdtemp()
def sqlite():
    saver = SqliteSaver(sqlite3.connect(f"{folder}/{time.time_ns()}.db", check_same_thread=False))
    saver.setup()
    return saver
print("sqlite", best(sqlite))
"""
TARGETS = {"a step of a loop, not recorded": ("off", 30), "a step of a loop, recorded in memory": ("memory", 30),
           "a step of a loop, recorded in SQLite": ("sqlite", 10)}
CONTROLS = {"off": "langgraph without a saver", "memory": "langgraph with InMemorySaver",
            "sqlite": "langgraph with SqliteSaver"}
BOUNDS = {"bytes written for a step that changes 1 KB of a state of 1 MB": 20_000,
          "memory of a run that waits for an answer": 1_024}


def peer_figures() -> dict[str, float]:
    python = orcheo_process.find_python()
    if not python:
        return {}
    done = subprocess.run([python, "-c", PEER], text=True, capture_output=True, check=False)
    sys.stderr.write(done.stderr[-2000:])
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def main() -> int:
    ours = subprocess.run([sys.argv[1]], text=True, capture_output=True, check=True)
    controls = peer_figures()
    for line in ours.stdout.splitlines():
        figure = json.loads(line)
        if figure["what"] in TARGETS:
            name, least = TARGETS[figure["what"]]
            if name in controls:
                ratio = controls[name] / figure["value"]
                figure |= {"control": controls[name], "control_name": CONTROLS[name], "ratio": ratio,
                           "target": f">= {least} times", "ok": ratio >= least}
        if figure["what"] in BOUNDS:
            figure |= {"target": f"<= {BOUNDS[figure['what']]} B", "ok": figure["value"] <= BOUNDS[figure["what"]]}
        print(json.dumps(figure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
