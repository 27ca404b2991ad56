# SPDX-License-Identifier: Apache-2.0
"""caisson runs and caisson backup as a person uses them."""

import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from programs import BIN, caisson, environment, main  # noqa: E402

WORKFLOW = """from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import DelayNode, HumanInputNode, SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("draft", SetVariableNode(variables={"text": "Dear {{inputs.name}}"}))
    graph.add_node("ask", HumanInputNode(prompt="Send it?"))
    graph.add_node("sent", SetVariableNode(variables={"text": "{{draft.text}}", "answer": "{{ask.response}}"}))
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "ask")
    graph.add_edge("ask", "sent")
    graph.add_edge("sent", END)
    return graph
"""
TWO = """from orcheo.graph import START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import HumanInputNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("one", HumanInputNode(prompt="1?"))
    graph.add_node("two", HumanInputNode(prompt="2?"))
    graph.add_edge(START, "one")
    graph.add_edge(START, "two")
    return graph
"""
SLOW = """from orcheo.graph import START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import DelayNode, SetVariableNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("first", SetVariableNode(variables={"x": 1}))
    graph.add_node("slow", DelayNode(duration_seconds=60))
    graph.add_edge(START, "first")
    graph.add_edge("first", "slow")
    return graph
"""
LOOP = """from orcheo.graph import START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import NoOpTaskNode


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("a", NoOpTaskNode())
    graph.add_edge(START, "a")
    graph.add_edge("a", "a")
    return graph
"""


class RunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="caisson-runs-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.folder / "runs.db"

    def caisson(self, *arguments, **more):
        return caisson(*arguments, env={"CAISSON_STORE": str(self.store)}, **more)

    def start(self, source=WORKFLOW, *arguments):
        return self.caisson("run", "-", "--mode", "restricted", "--input", '{"name": "Ann"}', "-q", *arguments,
                            stdin=source)

    def background(self, source):
        path = self.folder / "workflow.py"
        path.write_text(source)
        process = subprocess.Popen([str(BIN / "caisson"), "run", str(path), "--mode", "restricted", "-q"],
                                   env=environment({"CAISSON_STORE": str(self.store)}), stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def list(self, *arguments):
        return self.caisson("runs", "list", "--json", *arguments).json()["runs"]

    def wait_for(self, condition):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.02)
        self.fail("still not so after 20 s")


class Questions(RunsTest):
    def test_a_run_is_answered_by_another_process(self):
        started = self.start()
        self.assertEqual(started.code, 9, started.stderr)
        self.assertIn("the node 'ask' asks: Send it?", started.stderr)
        [run] = self.list()
        self.assertEqual(run["status"], "interrupted")
        self.assertIn(f"caisson runs resume {run['id']} --value", started.stderr)
        done = self.caisson("runs", "resume", run["id"][:8], "--value", '"yes"', "-q")
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(done.json()["node_results"]["sent"], {"text": "Dear Ann", "answer": "yes"})
        self.assertEqual(self.list()[0]["status"], "succeeded")
        again = self.caisson("runs", "resume", run["id"], "--value", '"no"')
        self.assertEqual(again.code, 3)
        self.assertIn("runs.ended", again.stderr)

    def test_several_questions_are_answered_by_node(self):
        self.start(TWO)
        [run] = self.list()
        refused = self.caisson("runs", "resume", run["id"], "--value", "1")
        self.assertEqual(refused.code, 2)
        self.assertIn("this one has 2", refused.stderr)
        self.assertEqual(self.list()[0]["status"], "interrupted")
        twice = self.caisson("runs", "resume", run["id"], "--answer", "one=1", "--answer", "one=2")
        self.assertEqual(twice.code, 2)
        self.assertIn("the node 'one' is answered twice", twice.stderr)
        done = self.caisson("runs", "resume", run["id"], "--answer", "one=1", "--answer", "two=[2]", "-q")
        self.assertEqual(done.json()["node_results"], {"one": {"response": 1}, "two": {"response": [2]}})

    def test_without_a_record_a_question_is_an_error(self):
        refused = self.start(WORKFLOW, "--durability", "none")
        self.assertEqual(refused.code, 6)
        self.assertIn("graph.no_journal", refused.stderr)
        self.assertFalse(self.store.exists())


class Records(RunsTest):
    def test_show_goes_back_in_time(self):
        self.start()
        [run] = self.list()
        self.assertEqual(self.caisson("runs", "show", run["id"], "--step", "0").json()["state"]["node_results"], {})
        now = self.caisson("runs", "show", run["id"]).json()
        self.assertEqual(now["state"]["node_results"], {"draft": {"text": "Dear Ann"}})
        self.assertEqual(now["current"], ["ask"])
        beyond = self.caisson("runs", "show", run["id"], "--step", "2")
        self.assertEqual(beyond.code, 3)
        self.assertIn("runs.no_step", beyond.stderr)

    def test_a_fork_is_a_run_of_its_own(self):
        self.start()
        [run] = self.list()
        self.caisson("runs", "resume", run["id"], "--value", '"yes"', "-q")
        fork = self.caisson("runs", "fork", run["id"], "--step", "1", "--report", "-q").json()
        self.assertEqual(fork["status"], "interrupted")
        self.caisson("runs", "resume", fork["run_id"], "--value", '"no"', "-q")
        shown = self.caisson("runs", "show", fork["run_id"]).json()
        self.assertEqual(shown["state"]["node_results"]["sent"]["answer"], "no")
        self.assertEqual(shown["forked_from"], {"id": run["id"], "step": 1})
        self.assertEqual(self.caisson("runs", "show", run["id"]).json()["state"]["node_results"]["sent"]["answer"], "yes")

    def test_events_are_those_that_were_told(self):
        told = self.folder / "told.jsonl"
        self.start(WORKFLOW, "--events-file", str(told))
        [run] = self.list()
        events = self.caisson("runs", "events", run["id"]).stdout
        self.assertEqual(events, told.read_text())
        rest = self.caisson("runs", "events", run["id"], "--after", "3").stdout
        self.assertEqual(rest.splitlines(), events.splitlines()[3:])

    def test_events_are_followed_until_the_run_ends(self):
        process = self.background(SLOW)
        run = self.wait_for(self.list)[0]["id"]
        follower = subprocess.Popen([str(BIN / "caisson"), "runs", "events", run, "--follow"], stdout=subprocess.PIPE,
                                    text=True, env=environment({"CAISSON_STORE": str(self.store)}))
        self.assertEqual(self.caisson("runs", "cancel", run).code, 0)
        process.wait(timeout=20)
        events = [json.loads(line) for line in follower.communicate(timeout=20)[0].splitlines()]
        self.assertEqual(events[-1]["event"], "run_finished")
        self.assertEqual(events[-1]["result"]["status"], "cancelled")

    def test_a_backup_is_a_store(self):
        self.start()
        copy = self.folder / "copy.db"
        self.assertEqual(self.caisson("backup", str(copy)).code, 0)
        self.assertEqual(self.caisson("runs", "list", "--json", "--store", str(copy)).json()["runs"], self.list())
        self.assertEqual(copy.stat().st_mode & 0o777, 0o600)
        refused = self.caisson("backup", str(copy))
        self.assertEqual(refused.code, 3)
        self.assertIn("store.conflict", refused.stderr)

    def test_a_stored_file_is_given_out(self):
        source = LOOP.replace("NoOpTaskNode", "FileUploadNode").replace("FileUploadNode()", 'FileUploadNode(content="a,b\\n1,2\\n", filename="t.csv")')
        source = source.replace('    graph.add_edge("a", "a")\n', "")
        done = self.start(source)
        self.assertEqual(done.code, 0, done.stderr)
        stored = done.json()["node_results"]["a"]
        self.assertEqual(self.caisson("runs", "file", stored["download_url"]).stdout, "a,b\n1,2\n")
        out = self.folder / "out.csv"
        self.assertEqual(self.caisson("runs", "file", stored["attachment_id"], "-o", str(out)).code, 0)
        self.assertEqual(out.read_text(), "a,b\n1,2\n")
        self.assertIn("runs.not_found", self.caisson("runs", "file", "atc_none").stderr)

    def test_numbers_out_of_range_are_refused_in_words(self):
        self.start()
        [run] = self.list()
        for arguments in (["show", run["id"], "--step", "-1"], ["fork", run["id"], "--step", "99999999999999999999"],
                          ["events", run["id"], "--after", "-1"], ["events", run["id"], "--after", "4294967296"]):
            refused = self.caisson("runs", *arguments)
            self.assertEqual(refused.code, 2, refused.stderr)
            self.assertIn("not in range 0 to 4294967295", refused.stderr)

    def test_rm_forgets(self):
        self.start()
        [run] = self.list()
        self.assertEqual(self.caisson("runs", "rm", run["id"]).code, 0)
        self.assertEqual(self.list(), [])

    def test_the_record_is_for_its_owner_alone(self):
        self.start()
        self.assertEqual(self.store.stat().st_mode & 0o777, 0o600)

    def test_the_default_place_is_the_users_state_folder(self):
        env = {name: value for name, value in environment().items() if name not in ("CAISSON_STORE", "XDG_STATE_HOME")}
        subprocess.run([str(BIN / "caisson"), "run", "-", "--mode", "restricted", "-q"], input=LOOP, text=True,
                       env=env | {"HOME": str(self.folder)}, capture_output=True, check=False)
        folder = self.folder / ".local/state/caisson"
        self.assertTrue((folder / "runs.db").exists())
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)


class Processes(RunsTest):
    def test_a_killed_process_leaves_a_run_to_go_on_with(self):
        process = self.background(SLOW.replace("60", "1"))
        run = self.wait_for(lambda: [r for r in self.list() if "slow" in self.current(r["id"])])[0]["id"]
        active = self.caisson("runs", "resume", run)
        self.assertIn("runs.active", active.stderr)
        process.kill()
        process.wait()
        self.assertEqual([r["id"] for r in self.list("--status", "crashed")], [run])
        done = self.caisson("runs", "resume", run, "-q")
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(done.json()["node_results"]["first"], {"x": 1})

    def current(self, run):
        return self.caisson("runs", "show", run).json()["current"]

    def test_a_signal_cancels_a_run_which_can_go_on(self):
        process = self.background(SLOW)
        run = self.wait_for(lambda: [r for r in self.list() if "slow" in self.current(r["id"])])[0]["id"]
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 4)
        self.assertEqual(self.list()[0]["status"], "cancelled")
        again = self.caisson("runs", "resume", run, "--config", '{"timeout_seconds": 0.1}')
        self.assertEqual(again.code, 5)
        self.assertEqual(self.list()[0]["status"], "timed_out")

    def test_a_used_up_budget_is_raised_on_resuming(self):
        failed = self.start(LOOP, "--config", '{"budget": {"nodes": 5}}')
        self.assertEqual(failed.code, 5)
        self.assertIn("graph.budget", failed.stderr)
        [run] = self.list()
        again = self.caisson("runs", "resume", run["id"], "--config", '{"budget": {"nodes": 20}}', "--report", "-q")
        self.assertEqual(again.json()["steps"], 19)  # the sixth visit was refused, yet counted

    def test_a_configuration_that_was_replaced_holds_when_a_question_is_answered_later(self):
        self.assertEqual(self.start(WORKFLOW, "--config", '{"budget": {"nodes": 1}}').code, 5)
        [run] = self.list()
        refused = self.caisson("runs", "resume", run["id"], "--config", '{"budget": {"nodes": 0}}')
        self.assertIn("graph.config", refused.stderr)
        raised = self.caisson("runs", "resume", run["id"], "--config", '{"budget": {"nodes": 20}}', "-q")
        self.assertEqual(raised.code, 9, raised.stderr)
        done = self.caisson("runs", "resume", run["id"], "--value", '"yes"', "-q")
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(done.json()["node_results"]["sent"]["answer"], "yes")


class Faults(RunsTest):
    def test_a_file_that_is_no_store_is_refused(self):
        self.store.write_bytes(os.urandom(5000))
        for command in (["runs", "list"], ["run", "-"]):
            refused = self.caisson(*command, stdin=LOOP)
            self.assertEqual(refused.code, 8)
            self.assertIn("store.corrupt", refused.stderr)

    def test_a_store_of_a_newer_program_is_left_alone(self):
        self.start()
        with sqlite3.connect(self.store) as database:
            database.execute("PRAGMA user_version = 1000")
        database.close()
        refused = self.caisson("runs", "list")
        self.assertEqual(refused.code, 6)
        self.assertIn("store.version", refused.stderr)

    def test_a_workflow_that_was_changed_in_the_store_is_not_gone_on_with(self):
        self.start()
        [run] = self.list()
        with sqlite3.connect(self.store) as database:
            database.execute("UPDATE workflows SET ir = replace(ir, 'Send it?', 'Burn it?')")
        database.close()
        refused = self.caisson("runs", "resume", run["id"], "--value", "1")
        self.assertEqual(refused.code, 3)
        self.assertIn("graph.other_workflow", refused.stderr)
        self.assertEqual(self.list()[0]["status"], "interrupted")

    def test_damaged_events_are_named(self):
        self.start()
        [run] = self.list()
        with sqlite3.connect(self.store) as database:
            database.execute("UPDATE run_events SET lines = substr(lines, 1, length(lines) - 9)")
        database.close()
        refused = self.caisson("runs", "resume", run["id"], "--value", "1")
        self.assertEqual(refused.code, 8)
        self.assertIn("runs.damaged", refused.stderr)

    def test_a_full_disk_ends_the_run_which_goes_on_when_there_is_room(self):
        # RLIMIT_FSIZE refuses to write beyond a size, as a full disk does; SIGXFSZ is ignored so that it is an error.
        path = self.folder / "workflow.py"
        path.write_text(LOOP)

        def narrow():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        done = subprocess.run([str(BIN / "caisson"), "run", str(path), "--mode", "restricted", "-q"], capture_output=True,
                              text=True, env=environment({"CAISSON_STORE": str(self.store)}), preexec_fn=narrow,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertRegex(done.stderr, r"error\[store\.(full|failed)\].*the run cannot be recorded")
        [run] = self.list()
        self.assertEqual(run["status"], "crashed")
        steps = self.caisson("runs", "show", run["id"]).json()["steps"]
        self.assertGreater(steps, 100)
        again = self.caisson("runs", "resume", run["id"], "--config", '{"budget": {"nodes": %d}}' % (steps + 50), "--report",
                             "-q").json()
        self.assertEqual(again["error"]["code"], "graph.budget")
        self.assertGreater(again["steps"], steps)

    def test_a_store_that_another_process_holds_is_waited_for(self):
        self.start()
        holder = sqlite3.connect(self.store, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        refused = self.caisson("run", "-", "--mode", "restricted", "-q", stdin=LOOP)
        self.assertEqual(refused.code, 8)
        self.assertIn("store.locked", refused.stderr)
        self.assertGreater(time.monotonic() - start, 5)
        holder.execute("ROLLBACK")
        holder.close()

    def test_a_clock_that_jumps_changes_no_owner(self):
        process = self.background(SLOW)
        run = self.wait_for(lambda: self.list("--status", "running"))[0]["id"]
        with sqlite3.connect(self.store, isolation_level=None) as database:
            database.execute("UPDATE runs SET lease_until = 1, created_at = 9000000000000")
        database.close()
        refused = self.caisson("runs", "resume", run)
        self.assertIn("runs.active", refused.stderr)
        process.kill()


if __name__ == "__main__":
    main()
