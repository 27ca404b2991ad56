# SPDX-License-Identifier: Apache-2.0
"""Runs the native nodes, one by one and in random graphs, in our engine and in the peer's, and
compares final states, visits and errors. Exits with 77 where orcheo cannot be imported.

    compare_with_orcheo.py --tool build/.../run_tool [--graphs N] [--seed N] [--verbose] [--bless]

--bless writes the cases in which both agree to tests/golden/nodes, where the unit tests, which need
no peer, find them.
"""

import argparse
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "workflow"))

from orcheo_process import SKIPPED, find_python  # noqa: E402

import cases  # noqa: E402
import question_cases  # noqa: E402
import random_graphs  # noqa: E402
import store_cases  # noqa: E402
import trigger_cases  # noqa: E402

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# Errors whose text is the peer's libraries' own; that both fail at the same stage is what counts.
OWN_TEXT = [
    "Failed to construct node", "validation error", "Malformed workflow IR", "is not valid JSON", "Expecting ", "Extra data",
    "Invalid ", "Unterminated", "has no attribute", "Must specify non-null", "missing 1 required", "'tool_call_id'",
    "Exceeds the limit", "expected str instance", "Message(content=", "Illegal trailing comma", "object is not iterable",
]


class Process:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[0]} died with status {self.process.wait()} on {json.dumps(request)}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def normal(answer):
    """The answer without what may differ: random ids, what the peer leaves of a dumped AI message."""
    text = json.dumps(answer)
    text = text.replace('"invalid_tool_calls": [], "usage_metadata": null}, "response', '}, "response')
    text = text.replace("{, ", "{").replace("{}, }", "{}}")
    return UUID.sub("<uuid>", text)


def same_error(ours, theirs):
    if ours["stage"] != theirs["stage"]:
        return False
    message = theirs["error"].split("\nFor troubleshooting")[0]
    if ours["error"].startswith(message.rstrip(". ")):
        return True
    return any(text in theirs["error"] for text in OWN_TEXT)


def difference_of_questions(ours, theirs):
    """Around an interrupt the peer tells states and updates again, and states with a part of a step in them."""
    if ours["questions"] != theirs["questions"]:
        return "different questions"
    told = iter(normal(value) for value in theirs["values"])
    mine = [key for key, _ in itertools.groupby(normal(value) for value in ours["values"])]
    if not all(value in told for value in mine):
        return "different states after a step"
    return None if set(ours["order"]) == set(theirs["order"]) else "different visits"


def difference(request, ours, theirs):
    """None when both agree, else what to say about it."""
    if theirs["ok"] is None or ours["ok"] is None:
        return None  # no JSON: nothing to compare
    if ours["ok"] != theirs["ok"]:
        return f"ours {'runs' if ours['ok'] else 'fails'}, the peer does not agree"
    if not ours["ok"]:
        return None if same_error(ours, theirs) else "different errors"
    if normal(ours["state"]) != normal(theirs["state"]):
        return "different states"
    if "answers" in request:
        return difference_of_questions(ours, theirs)
    if normal(ours["values"]) != normal(theirs["values"]):
        return "different states after a step"
    if (ours["items"], ours["blobs"]) != (theirs["items"], theirs["blobs"]):
        return "different stores"
    # The peer's order within a step is that in which its tasks happen to end.
    return None if sorted(ours["order"]) == sorted(theirs["order"]) else "different visits"


def is_refused_earlier(ours, theirs):
    """A run with a step that has no type is refused before it begins; there it fails when it is reached."""
    return (ours.get("stage"), theirs.get("stage")) == ("build", "run") and \
        ours["error"].startswith("these steps have no type that exists") and \
        re.match("Each step must define a non-empty type|Unknown node type", theirs["error"]) is not None


def is_known_divergence(request, ours, theirs):
    """Subgraphs write back only what they changed: parallel ones do not collide, and none brings an
    older value of another node back. When a subgraph and another node of its step both fail, the peer
    reports the one that fails first, which is a matter of time."""
    if not random_graphs.has_subgraph(request["ir"]):
        return False
    if ours.get("stage") == "run" and theirs.get("stage") == "run":
        return True
    return ours["ok"] or "Can receive only one value per step" in theirs.get("error", "")


class Golden:
    """One file per node type, one case per line: what is asked, and the state or error that results."""

    def __init__(self):
        self.lines = {}

    def add(self, kind, request, ours):
        if UUID.search(json.dumps(ours)) or " fires every " in json.dumps(ours):
            return  # not the same the next time
        outcome = {"state": ours["state"]} if ours["ok"] else {"error": ours["error"]}
        nodes = {node["id"]: node["config"] for node in request["ir"]["nodes"]}
        case = {"config": nodes["n"], "inputs": request["inputs"]}
        if "0" in nodes:
            case["before"] = nodes["0"]["variables"]
        self.lines.setdefault(kind, []).append(json.dumps(case | outcome))

    def write(self):
        folder = HERE.parent / "golden" / "nodes"
        folder.mkdir(parents=True, exist_ok=True)
        for kind, lines in self.lines.items():
            (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")


class Tally:
    def __init__(self, verbose):
        self.verbose = verbose
        self.same = self.known = 0
        self.different = []

    def add(self, label, request, ours, theirs):
        found = difference(request, ours, theirs)
        if found is None:
            self.same += 1
        elif is_refused_earlier(ours, theirs) or is_known_divergence(request, ours, theirs):
            self.known += 1
        else:
            self.different.append(label)
            if self.verbose or len(self.different) <= 20:
                print(f"{label}: {found}\n  request {json.dumps(request)}\n  ours    {json.dumps(ours)}\n"
                      f"  theirs  {json.dumps(theirs)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--bless", action="store_true")
    options = parser.parse_args()
    python = find_python()
    if python is None:
        print("skipped: no Python with orcheo; set CAISSON_ORCHEO_PYTHON")
        return SKIPPED
    ours, theirs = Process([options.tool]), Process([python, str(HERE / "orcheo_runs.py")])
    tally = Tally(options.verbose)
    golden = Golden()
    counts = {}
    for kind, request in cases.all_cases():
        counts[kind] = counts.get(kind, 0) + 1
        our_answer, their_answer = ours(request), theirs(request)
        tally.add(f"{kind} {counts[kind]}", request, our_answer, their_answer)
        if our_answer["ok"] is not None and difference(request, our_answer, their_answer) is None:
            golden.add(kind, request, our_answer)
    for kind, request in cases.all_cases(trigger_cases.PASSING):
        counts[kind] += 1
        tally.add(f"{kind} {counts[kind]}", request, ours(request), theirs(request))
    for kind, maker in store_cases.FAMILIES.items():
        for config, inputs, state, items in maker():
            counts[kind] = counts.get(kind, 0) + 1
            request = cases.single(kind, config, inputs, state) | {"items": items}
            tally.add(f"{kind} {counts[kind]}", request, ours(request), theirs(request))
    for config, inputs, state, answers in question_cases.human_input():
        counts["HumanInputNode"] = counts.get("HumanInputNode", 0) + 1
        request = cases.single("HumanInputNode", config, inputs, state) | {"answers": answers}
        tally.add(f"HumanInputNode {counts['HumanInputNode']}", request, ours(request), theirs(request))
    for graph, answers in question_cases.GRAPHS:
        request = {"ir": graph, "inputs": {}, "answers": answers}
        counts["HumanInputNode"] += 1
        tally.add(f"questions {answers}", request, ours(request), theirs(request))
    if options.bless:
        golden.write()
    for i in range(options.graphs):
        request = random_graphs.request(random.Random(options.seed * 1_000_003 + i))
        tally.add(f"graph {options.seed}:{i}", request, ours(request), theirs(request))
    ours.close()
    theirs.close()
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    print(f"{sum(counts.values())} cases of {len(counts)} node types, {options.graphs} graphs: {tally.same} the same, "
          f"{tally.known} known divergences, {len(tally.different)} different")
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main())
