# SPDX-License-Identifier: Apache-2.0
"""Flows in flows of a whole Langflow, built as its editor builds them, with our executor: the inner flow is a machine, and what it
says is in what the editor shows.

Over the namespaces of this host, whose guests have the lfx of this environment. Exits with 77 where Langflow is missing.
"""

import json
import os
import sys
import unittest

os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")
os.environ["CAISSON_TEST_GUEST_PYTHON"] = sys.executable
try:
    import langflow  # noqa: F401
except ImportError:
    print("skipped: there is no Langflow")
    raise SystemExit(77)
import httpx

import langflow_server
from service_under_test import Service

SERVICE = Service()
SHAPE = "s-2vcpu-4gb"
SERVICE.warm({"shape": SHAPE})

from lfx.components.flow_controls.run_flow import RunFlowComponent
from lfx.components.flow_controls.sub_flow import SubFlowComponent
from lfx.components.processing.parser import ParserComponent
from lfx.graph.graph.base import Graph

import executor_flows as flows

SAID = "from inside"
INNER = ("ChatInput-in", "ChatOutput-out")


class Nested(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.langflow = langflow_server.Langflow(
            SERVICE, LANGFLOW_ALLOW_CUSTOM_COMPONENTS="true", LANGFLOW_EXECUTOR_KIND="caisson", CAISSON_EXECUTOR_ROOTFS="devbox:1",
            CAISSON_EXECUTOR_EGRESS="none", CAISSON_EXECUTOR_SHAPE=SHAPE)
        cls.addClassCleanup(cls.langflow.close)
        cls.langflow.wait()
        cls.http = cls.langflow.client()
        cls.addClassCleanup(cls.http.close)
        cls.inner = langflow_server.store(cls.http, "inner", flows.echo(SAID, *INNER).dump()["data"])

    def machines(self):
        """How many were asked for until now."""
        pools = httpx.get(SERVICE.url + "/v1/pools", headers={"X-Api-Key": SERVICE.key}).json()["data"]["data"]
        return sum(pool["handed_out"] + pool["missed"] for pool in pools)

    def build(self, name, nodes, edges):
        before = self.machines()
        told = langflow_server.build(self.http, langflow_server.store(self.http, name, {"nodes": nodes, "edges": edges}))
        self.assertEqual(self.machines() - before, 1)  # for the inner flow, and none for the walk
        self.assertTrue(all(one["valid"] for one in told.values()), told)
        return told

    def test_run_flow(self):
        running = RunFlowComponent(_id="RunFlow-out", flow_name_selected="inner", flow_id_selected=self.inner)
        inner = flows.from_data(flows.echo(SAID, *INNER))
        outputs = running._format_flow_outputs(inner)  # as the editor asks for it once a flow is chosen
        running.outputs, running._outputs_map = outputs, {one.name: one for one in outputs}
        [output] = [one for one in outputs if one.name.endswith("message")]
        outer = flows.echo("", "ChatInput-outer", "ChatOutput-outer").dump()["data"]
        [edge], ended = outer["edges"], [node for node in outer["nodes"] if node["id"] == "ChatOutput-outer"]
        edge["source"] = "RunFlow-out"
        edge["data"]["sourceHandle"] |= {"dataType": "RunFlow", "id": "RunFlow-out", "name": output.name}
        told = self.build("Runs a flow", Graph(running, running).dump()["data"]["nodes"] + ended, [edge])
        self.assertEqual(told["ChatOutput-outer"]["data"]["results"]["message"]["text"], SAID)
        self.assertIn(SAID, json.dumps(told["RunFlow-out"]["data"]["outputs"]))

    def test_sub_flow(self):
        running = SubFlowComponent(_id="SubFlow-out", flow_name="inner")
        parsed = ParserComponent(_id="ParserComponent-out", mode="Stringify").set(input_data=running.generate_results)
        whole = Graph(running, parsed).dump()["data"]
        told = self.build("Has a sub flow", whole["nodes"], whole["edges"])
        self.assertIn(SAID, json.dumps(told["ParserComponent-out"]["data"]["outputs"]))
        self.assertIn(SAID, json.dumps(told["SubFlow-out"]["data"]["outputs"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
