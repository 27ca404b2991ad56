# SPDX-License-Identifier: Apache-2.0
"""`caisson run --node-host` with a host of the standard library (fake_host.py): what is refused, what is lost, and what goes
on. usage: test_node_host.py BIN"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from programs import caisson, main  # noqa: E402

WORKFLOW = """from orcheo.graph import START, StateGraph


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("first", SetVariableNode(variables={"x": "{{inputs.x}}"}))
    graph.add_node("hosted", QueryClassifierNode(query_key="{{first.x}}"))
    graph.add_node("last", SetVariableNode(variables={"v": "{{hosted.values}}"}))
    graph.add_edge(START, "first")
    graph.add_edge("first", "hosted")
    graph.add_edge("hosted", "last")
    return graph
"""


class NodeHost(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-host-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.host = self.folder / "python"
        shutil.copy2(HERE / "fake_host.py", self.host)
        self.host.chmod(0o755)
        self.workflow = self.folder / "workflow.py"
        self.workflow.write_text(WORKFLOW)
        done = self.run_it("--node-host", str(self.host), "--node-host-types", "all")
        if "error[host.no_isolation]" in done.stderr:
            self.skipTest(done.stderr)
        (self.folder / "starts").unlink()

    def run_it(self, *options, env=None):
        return caisson("run", str(self.workflow), "--input", '{"x": [1, "2"]}', *options, env=env)

    def starts(self):
        path = self.folder / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def test_runs_nodes_in_the_host(self):
        done = self.run_it("--node-host", str(self.host), "--node-host-types", "QueryClassifierNode")
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(done.json()["node_results"]["last"], {"v": {"{{first.x}}": [1, "2"]}})
        self.assertIn("the host says\\x1b[31m so", done.stderr)

    def test_takes_the_host_from_the_environment(self):
        env = {"CAISSON_NODE_HOST": str(self.host), "CAISSON_NODE_HOST_TYPES": "TurnAnnotationNode,QueryClassifierNode"}
        self.assertEqual(self.run_it(env=env).code, 0)

    def test_is_off_unless_types_are_listed(self):
        done = self.run_it("--node-host", str(self.host))
        self.assertEqual(done.code, 6, done.stderr)
        self.assertIn("the node host is off", done.stderr)
        self.assertIn("error[graph.not_native]", done.stderr)
        self.assertEqual(self.starts(), 0)

    def test_refuses_a_type_that_is_not_listed_before_anything_runs(self):
        done = self.run_it("--node-host", str(self.host), "--node-host-types", "TurnAnnotationNode", "--events")
        self.assertIn("error[graph.not_native]", done.stderr)
        self.assertIn("QueryClassifierNode (node 'hosted', line 7)", done.stderr)
        self.assertIn("The node host does not serve them", done.stderr)
        self.assertNotIn("run_started", done.stderr)

    def test_refuses_a_type_that_the_host_does_not_have(self):
        done = self.run_it("--node-host", str(self.host), "--node-host-types", "QueryClassifierNode,Nonsense")
        self.assertEqual(done.code, 6)
        self.assertIn("error[host.unknown_type]", done.stderr)

    def test_refuses_a_list_without_names(self):
        for types in ("", ",", "A,,B"):
            done = self.run_it("--node-host", str(self.host), f"--node-host-types={types}")
            self.assertEqual(done.code, 2, done.stderr)

    def test_refuses_rules_that_are_none(self):
        for rules in ("a..b", "-", "api.example.com,,"):
            done = self.run_it("--node-host", str(self.host), "--node-host-types", "all", f"--node-host-egress={rules}")
            self.assertNotEqual(done.code, 0)
            self.assertIn("error[egress.bad_rule]", done.stderr)
        self.assertEqual(self.starts(), 0)

    def test_reaches_a_host_only_by_the_rules(self):
        self.assertEqual(self.reach("8.8.8.8:443"), "refused")
        self.assertEqual(self.reach("8.8.8.8:443", "--node-host-egress", "api.example.com"), "HTTP/1.1 403 Forbidden")
        self.assertEqual(self.reach("127.0.0.1:443", "--node-host-egress", "*"), "HTTP/1.1 403 Forbidden")

    def reach(self, target, *options):
        """What the host's nodes see of a destination."""
        (self.folder / "reach").write_text(target)
        done = self.run_it("--node-host", str(self.host), "--node-host-types", "all", *options)
        self.assertEqual(done.code, 0, done.stderr)
        return (self.folder / "reached").read_text()

    def test_does_not_start_the_host_without_need(self):
        self.workflow.write_text(WORKFLOW.replace("QueryClassifierNode(query_key", "SetVariableNode(variables"))
        self.run_it("--node-host", str(self.host), "--node-host-types", "all")
        self.assertEqual(self.starts(), 0)

    def test_resumes_a_run_whose_host_was_lost(self):
        (self.folder / "die").touch()
        options = ["--node-host", str(self.host), "--node-host-types", "all"]
        lost = self.run_it(*options, "--report")
        self.assertEqual(lost.code, 6, lost.stderr)
        error = lost.json()["error"]
        self.assertEqual((error["code"], error["node"]), ("host.lost", "hosted"))
        self.assertIn("exited with code 9; its last words were: out of memory", error["message"])
        again = caisson("runs", "resume", lost.json()["run_id"], *options, "--events")
        self.assertEqual(again.code, 0, again.stderr)
        self.assertEqual(again.json()["node_results"]["last"], {"v": {"{{first.x}}": [1, "2"]}})
        started = [json.loads(line)["node"] for line in again.stderr.splitlines() if '"node_started"' in line]
        self.assertEqual(started, ["hosted", "last"])

    def test_tries_again_with_a_host_that_is_started_again(self):
        (self.folder / "die").touch()
        config = '{"retry": {"count": 1, "backoff_seconds": 0.01}}'
        done = self.run_it("--node-host", str(self.host), "--node-host-types", "all", "--config", config)
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(self.starts(), 2)

    def test_cannot_resume_without_the_host(self):
        (self.folder / "die").touch()
        lost = self.run_it("--node-host", str(self.host), "--node-host-types", "all", "--report")
        again = caisson("runs", "resume", lost.json()["run_id"])
        self.assertEqual(again.code, 6)
        self.assertIn("error[graph.not_native]", again.stderr)


if __name__ == "__main__":
    main()
