#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares agents with orcheo's: the same script gives the same requests in the same order, and the same
messages in the final state.

Not compared are ids; what the streaming of ours adds to a request; how strictly a request asks for a form and
what that makes of the tools' schemas; and where in a message its usage stands. Exit status: 0 agreed, 1 did not,
77 no interpreter with orcheo was found.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "workflow"))
import agent_cases  # noqa: E402
import orcheo_process  # noqa: E402
import served  # noqa: E402
import workflows  # noqa: E402


class Peer:
    def __init__(self, python):
        self.process = subprocess.Popen([python, str(HERE / "orcheo_agent.py")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, ir, inputs):
        self.process.stdin.write(json.dumps({"ir": ir, "inputs": inputs}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Ours:
    def __init__(self, program, folder, origin):
        self.program, self.folder, self.origin = program, pathlib.Path(folder), origin

    def compile(self, source):
        file = self.folder / "workflow.py"
        file.write_text(source)
        done = subprocess.run([self.program, "compile", str(file)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def run(self, ir, inputs):
        file = self.folder / "ir.json"
        file.write_text(ir)
        done = subprocess.run([self.program, "run", str(file), "-q", "--report", "--input", json.dumps(inputs),
                               "--allow-endpoint", self.origin], capture_output=True, text=True)
        if not done.stdout:
            raise RuntimeError(done.stderr)
        report = json.loads(done.stdout)
        return {"error": report["error"]["message"]} if report["error"] else {"state": report["state"]}


def message(value):
    kept = {key: value.get(key) for key in ("type", "content", "name", "tool_calls", "tool_call_id", "status")}
    if value["type"] == "ai":
        usage = value.get("usage_metadata") or value["additional_kwargs"].get("usage_metadata") or {}
        kept["usage"] = usage.get("total_tokens")
        kept["finish_reason"] = value["response_metadata"].get("finish_reason")
        kept["model"] = value["response_metadata"].get("model_name")
    return kept


def outcome(answer):
    if "state" not in answer:
        return {"failed": True}
    return {"messages": [message(m) for m in answer["state"]["messages"]],
            "structured": answer["state"].get("structured_response")}


def request(body):
    body = copy.deepcopy(body)
    body.pop("stream", None)
    body.pop("stream_options", None)
    if "response_format" in body:
        body["response_format"]["json_schema"].pop("strict", None)
        body["tools"] = len(body.get("tools", []))
    return body


# Words that the peer gives and ours repeats.
QUOTED = ("Workflow tool",)


def differences(theirs, ours):
    found = []
    for what in ("outcome", "requests"):
        if theirs[what] != ours[what]:
            found.append(f"{what}\n  theirs {json.dumps(theirs[what], ensure_ascii=False)}\n  ours   {json.dumps(ours[what], ensure_ascii=False)}")
    if theirs["error"].startswith(QUOTED) and theirs["error"] not in ours["error"]:
        found.append(f"error\n  theirs {theirs['error']}\n  ours   {ours['error']}")
    return found


def played(side, ir, inputs, answers, endpoint):
    endpoint.script(*answers)
    answer = side.run(ir, inputs)
    return {"outcome": outcome(answer), "error": answer.get("error", ""),
            "requests": [request(body) for body in endpoint.bodies()]}


def compare(cases, peer, ours, endpoint):
    count, wrong = 0, 0
    for name, fields, inputs, answers in cases:
        count += 1
        ir = ours.compile(workflows.source(endpoint.base_url, **fields))
        theirs = played(peer, json.loads(ir), inputs, answers, endpoint)
        mine = played(ours, ir, inputs, answers, endpoint)
        found = differences(theirs, mine)
        if found:
            wrong += 1
            print(f"== {name}: {'; '.join(found)}\n  errors: {theirs['error'][:300]!r} {mine['error'][:300]!r}\n")
    print(f"{wrong} of {count} conversations differ")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="the folder of the programs")
    parser.add_argument("--random", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    python = orcheo_process.find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one")
        return orcheo_process.SKIPPED
    cases = [*agent_cases.fixed(), *agent_cases.some(arguments.random, arguments.seed)]
    peer = Peer(python)
    with served.endpoint() as endpoint, tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(arguments.bin).resolve() / "caisson")
        status = compare(cases, peer, Ours(program, folder, endpoint.origin), endpoint)
    peer.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
