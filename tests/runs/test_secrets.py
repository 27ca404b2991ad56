# SPDX-License-Identifier: Apache-2.0
"""caisson secrets as a person uses it, and canaries: no value of a secret gets out of the node that it is for."""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from programs import BIN, caisson, environment, main  # noqa: E402

CANARY = "canary-71c4-secret"
# The secret goes to a node that keeps it, one that says it, one that fails with it, and a code node that looks for it.
WORKFLOW = """from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, DebugNode, DelayNode, HumanInputNode, JsonProcessingNode, SetVariableNode


class Look(CodeNode):
    def run(self, state, config):
        return {"seen": str(state) + str(config)}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("keep", SetVariableNode(variables={"a": "[[k]]", "b": "Bearer [[k]]", "m": {"deep": ["[[k]]"]}}))
    graph.add_node("say", DebugNode(message="Bearer [[k]]"))
    graph.add_node("look", Look())
    graph.add_node("ask", HumanInputNode(prompt="is it [[k]]?"))
    graph.add_node("fail", JsonProcessingNode(operation="parse", input_data="[[k]]"))
    graph.add_edge(START, "keep")
    graph.add_edge("keep", "say")
    graph.add_edge("say", "look")
    graph.add_edge("look", "ask")
    graph.add_edge("ask", "fail")
    return graph
"""
SIMPLE = """from orcheo.graph import START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import DelayNode, SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("wait", DelayNode(duration_seconds=DELAY))
    graph.add_node("keep", SetVariableNode(variables={"length": "[[k]]"}))
    graph.add_edge(START, "wait")
    graph.add_edge("wait", "keep")
    return graph
"""


class SecretsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="caisson-secrets-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.key = self.folder / "key"
        self.assertEqual(self.caisson("secrets", "new-key", str(self.key)).code, 0)
        self.env = {"CAISSON_VAULT_KEY_FILE": str(self.key)}

    def caisson(self, *arguments, **more):
        env = {"CAISSON_STORE": str(self.folder / "runs.db")} | getattr(self, "env", {}) | more.pop("env", {})
        return caisson(*arguments, env=env, **more)

    def set(self, name="k", value=CANARY):
        done = self.caisson("secrets", "set", name, stdin=value + "\n")
        self.assertEqual(done.code, 0, done.stderr)

    def names(self):
        return [secret["name"] for secret in self.caisson("secrets", "list", "--json").json()["secrets"]]

    def run_workflow(self, source, *arguments, **more):
        return self.caisson("run", "-", "--mode", "restricted", *arguments, stdin=source, **more)


class Commands(SecretsTest):
    def test_set_list_and_rm(self):
        self.set("b")
        self.set("a", "2")
        self.assertEqual(self.names(), ["a", "b"])
        self.assertNotIn(CANARY, self.caisson("secrets", "list").stdout)
        self.assertEqual(self.caisson("secrets", "rm", "b").code, 0)
        self.assertEqual(self.names(), ["a"])
        gone = self.caisson("secrets", "rm", "b")
        self.assertIn("graph.credential_not_found", gone.stderr)

    def test_a_value_on_the_command_line_is_refused_and_not_repeated(self):
        refused = self.caisson("secrets", "set", "k", "--from", CANARY)
        self.assertEqual(refused.code, 2)
        self.assertNotIn(CANARY, refused.stderr)

    def test_a_wrong_key_is_refused(self):
        self.set()
        other = self.folder / "other"
        self.caisson("secrets", "new-key", str(other))
        for command in (["secrets", "set", "x"], ["run", "-", "--mode", "restricted"]):
            refused = self.caisson(*command, "--vault-key", f"@{other}", stdin=SIMPLE.replace("DELAY", "0"))
            self.assertEqual(refused.code, 2)
            self.assertIn("vault.wrong_key", refused.stderr)

    def test_a_key_file_that_is_there_is_kept(self):
        before = self.key.read_text()
        refused = self.caisson("secrets", "new-key", str(self.key))
        self.assertEqual(refused.code, 2)
        self.assertIn("name a file that does not exist yet", refused.stderr)
        self.assertEqual(self.key.read_text(), before)

    def test_a_key_may_come_from_a_command_or_a_variable(self):
        self.set()
        self.env = {}
        source = SIMPLE.replace("DELAY", "0")
        text = self.key.read_text().strip()
        for env in ({"CAISSON_VAULT_KEY": text}, {"CAISSON_VAULT_KEY_COMMAND": f"cat {self.key}"}):
            self.assertEqual(self.run_workflow(source, env=env).code, 0)
        self.assertEqual(self.run_workflow(source, "--vault-key", "env:MINE", env={"MINE": text}).code, 0)
        locked = self.run_workflow(source)
        self.assertEqual(locked.code, 2)
        self.assertIn("Credential 'k' is in the vault, whose key is not given", locked.stderr)

    def test_rotating_the_key_keeps_the_secrets(self):
        self.set()
        new = self.folder / "new"
        self.caisson("secrets", "new-key", str(new))
        done = self.caisson("secrets", "rotate-key", "--new-key", f"@{new}")
        self.assertEqual(done.code, 0, done.stderr)
        self.assertIn("vault.wrong_key", self.caisson("secrets", "set", "x", stdin="1").stderr)
        self.env = {"CAISSON_VAULT_KEY_FILE": str(new)}
        self.assertEqual(self.run_workflow(SIMPLE.replace("DELAY", "0")).code, 0)

    def test_the_command_line_wins_over_the_vault(self):
        self.set()
        source = SIMPLE.replace("DELAY", "0").replace('"[[k]]"', '"x[[k]]"')
        done = self.run_workflow(source, "--credential", "k=env:GIVEN", env={"GIVEN": "short"})
        self.assertEqual(done.json()["node_results"]["keep"], {"length": "x[[k]]"})


class Canaries(SecretsTest):
    def test_no_value_leaves_the_node_that_it_is_for(self):
        self.set()
        events = self.folder / "events.jsonl"
        said = []
        first = self.run_workflow(WORKFLOW, "--events-file", str(events), "--report")
        self.assertEqual(first.code, 9, first.stderr)
        said += [first.stdout, first.stderr, events.read_text()]
        run = json.loads(first.stdout)["run_id"]
        second = self.caisson("runs", "resume", run, "--value", '"yes"', "--report", "--events-file", str(events))
        self.assertEqual(second.code, 4, second.stderr)
        said += [second.stdout, second.stderr, events.read_text()]
        for command in (["runs", "show", run], ["runs", "events", run], ["runs", "list", "--json"]):
            said.append(self.caisson(*command).stdout)
        copy = self.folder / "copy.db"
        self.caisson("backup", str(copy))
        with sqlite3.connect(self.folder / "runs.db") as database:
            said += ["\n".join(database.iterdump())]
        database.close()
        said += [path.read_bytes().decode("latin-1") for path in self.folder.glob("*.db*")]
        for text in said:
            self.assertNotIn(CANARY, text)
        self.assertIn("[[k]]", said[0])

    def test_a_process_with_a_key_leaves_no_core_file(self):
        self.set()
        path = self.folder / "workflow.py"
        path.write_text(SIMPLE.replace("DELAY", "30"))
        process = subprocess.Popen([str(BIN / "caisson"), "run", str(path), "--mode", "restricted", "-q"],
                                   env=environment({"CAISSON_STORE": str(self.folder / "runs.db")} | self.env))
        try:
            end = time.monotonic() + 20
            while not self.caisson("runs", "list", "--json").json()["runs"]:
                self.assertLess(time.monotonic(), end)
            limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
            [line] = [line for line in limits.splitlines() if line.startswith("Max core file size")]
            self.assertIn(line.split()[4], ("0", "1"))
            os.kill(process.pid, 0)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
