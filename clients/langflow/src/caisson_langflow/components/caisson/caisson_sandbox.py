# SPDX-License-Identifier: Apache-2.0
"""The component "Caisson Sandbox". Langflow saves this source in flows, so it is short: what it does is in the package."""

from caisson_langflow.node import SandboxNode
from lfx.custom.custom_component.component import Component
from lfx.io import BoolInput, DropdownInput, IntInput, MultilineInput, Output, StrInput
from lfx.schema.data import Data
from lfx.schema.dataframe import DataFrame
from lfx.schema.message import Message


class CaissonSandboxComponent(Component):
    display_name = "Caisson Sandbox"
    description = "Run Python or a shell command in a machine of your own Caisson server, and get the files that it writes."
    icon = "square-terminal"
    name = "CaissonSandbox"

    inputs = [
        MultilineInput(
            name="python_code",
            display_name="Python Code",
            info="Runs in the machine unless Command is set. Files that it writes to the folder $CAISSON_ARTIFACTS "
            "(/workspace/artifacts leads there) come back by the output Files.",
            value="print('hello from a machine of my own')",
            input_types=["Message"],
            tool_mode=True,
        ),
        StrInput(
            name="command",
            display_name="Command",
            info="A shell command to run instead of Python Code.",
            advanced=True,
        ),
        DropdownInput(
            name="session_mode",
            display_name="Guest Reuse",
            options=["off", "flow"],
            value="off",
            info="off: each run has a machine of its own. flow: the runs of this node share one, so that packages and files "
            "carry over; a run can read what an earlier one left.",
        ),
        BoolInput(
            name="collect_artifacts",
            display_name="Return Files",
            value=False,
            info="Read the files even when neither Files nor Message is connected, so that Results counts them.",
        ),
        DropdownInput(
            name="network",
            display_name="Network",
            options=["off", "domains", "open"],
            value="off",
            info="off: nothing can be reached. domains: only what Domains names. open: everything.",
        ),
        StrInput(
            name="domains",
            display_name="Domains",
            info="For Network: domains. Names, such as api.example.com, *.example.com, with commas between them.",
            advanced=True,
        ),
        IntInput(
            name="timeout_seconds",
            display_name="Timeout (seconds)",
            value=60,
            info="From 1 to 86400. What was written until then is kept.",
            advanced=True,
        ),
        StrInput(
            name="shape",
            display_name="Shape",
            info="Of the machine, one of the server's. Empty: the operator's choice, else the smallest that is large enough.",
            advanced=True,
        ),
    ]

    outputs = [
        Output(display_name="Results", name="results", method="run_sandbox", group_outputs=True),
        Output(display_name="Files", name="files", method="collected_files", group_outputs=True, tool_mode=False),
        Output(display_name="Message", name="message", method="message_with_pictures", group_outputs=True, tool_mode=False),
    ]

    async def run_sandbox(self) -> Data:
        """How the program ended, and what it wrote."""
        return await SandboxNode.of(self).results()

    async def collected_files(self) -> DataFrame:
        """The files that the program wrote, one row each."""
        return await SandboxNode.of(self).files()

    async def message_with_pictures(self) -> Message:
        """What the program wrote to its output, with the pictures among its files."""
        return await SandboxNode.of(self).message()
