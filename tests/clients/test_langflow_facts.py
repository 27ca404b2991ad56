# SPDX-License-Identifier: Apache-2.0
"""What our documents say of the way in which Langflow's editor runs the stock interpreter, asked of the lfx of
tests/clients/langflow.txt: its own classes, walked as its server walks them. No service is needed; the backend is a probe."""

import asyncio
import json
import os
import unittest

os.environ.setdefault("LFX_LOG_LEVEL", "CRITICAL")
for name in list(os.environ):
    if name.startswith("LANGFLOW_"):
        del os.environ[name]

from lfx.components.utilities.python_repl_core import PythonREPLComponent
from lfx.events.event_manager import create_default_event_manager
from lfx.graph.graph.base import Graph
from lfx.services.deps import get_settings_service
from lfx.utils.sandbox.base import Capabilities, SandboxResult
from lfx.utils.sandbox.registry import register_sandbox_backend

import executor_flows as flows

RUNS = []


class Probe:
    name = "probe"

    def capabilities(self):
        return Capabilities(isolation="hardware-virtualized", supports_deny_all_egress=True)

    def run(self, code, *, env=None):
        RUNS.append((code, env))
        return SandboxResult("in the sandbox\n", "", 0)

    def shutdown(self):
        pass

    def reset_after_fork(self):
        pass


register_sandbox_backend("probe", Probe)
OLD = '''
import contextlib
import io

from lfx.custom.custom_component.component import Component
from lfx.io import MultilineInput, Output, StrInput
from lfx.schema.data import Data


class PythonREPLComponent(Component):
    display_name = "Python Interpreter"
    inputs = [StrInput(name="global_imports", display_name="Global Imports", value="math"),
              MultilineInput(name="python_code", display_name="Python Code")]
    outputs = [Output(display_name="Results", name="results", method="run_python_repl")]

    def run_python_repl(self) -> Data:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(self.python_code, {})
        return Data(data={"result": said.getvalue()})
'''


async def build(data):
    """What the node says, of a build by the editor's own calls."""
    graph = Graph.from_payload(json.loads(json.dumps(data, default=str)), flow_id=flows.FLOW_ID, user_id=flows.USER_ID)
    graph.sort_vertices()
    await graph.initialize_run()
    built = await graph.build_vertex(vertex_id="node", user_id=flows.USER_ID, inputs_dict={},
                                     event_manager=create_default_event_manager(asyncio.Queue()))
    return built.result_dict.outputs["results"]["message"]


def interpreter(source=None):
    node = PythonREPLComponent(_id="node", python_code="import os; print('process', os.getpid())", global_imports="math")
    data = Graph(node, node).dump()["data"]
    if source:
        data["nodes"][0]["data"]["node"]["template"]["code"]["value"] = source
    return data


class Facts(unittest.TestCase):
    def setUp(self):
        RUNS.clear()
        self.setting("sandbox_backend", "probe")

    def setting(self, name, value):
        settings = get_settings_service().settings
        self.addCleanup(setattr, settings, name, getattr(settings, name))
        setattr(settings, name, value)

    def test_an_editor_s_build_takes_the_interpreter_to_the_backend_without_variables(self):
        self.assertIn("in the sandbox", str(asyncio.run(build(interpreter()))))
        [(code, env)] = RUNS
        self.assertIn("import math", code)
        self.assertIsNone(env)

    def test_an_older_node_runs_in_the_process_all_the_same(self):
        self.assertIn(f"process {os.getpid()}", str(asyncio.run(build(interpreter(OLD)))))
        self.assertEqual(RUNS, [])

    def test_where_no_custom_components_are_allowed_the_interpreter_is_refused_despite_the_backend(self):
        self.setting("allow_custom_components", False)
        try:
            said = str(asyncio.run(build(interpreter())))
        except Exception as why:
            said = str(why)
        self.assertNotIn("in the sandbox", said)
        self.assertEqual(RUNS, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
