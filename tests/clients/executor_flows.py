# SPDX-License-Identifier: Apache-2.0
"""Flows of real components of lfx, and a few components of a user's own, as source in the flow."""

import atexit
import functools
import importlib
import pathlib
import shutil
import sys
import tempfile

from lfx.components.flow_controls.loop import LoopComponent
from lfx.components.input_output import ChatInput, ChatOutput, TextInputComponent, TextOutputComponent
from lfx.components.models_and_agents import PromptComponent
from lfx.components.processing.parser import ParserComponent
from lfx.components.utilities.python_repl_core import PythonREPLComponent
from lfx.graph.graph.base import Graph

OWN = '''
import os
import time

from lfx.custom.custom_component.component import Component
from lfx.io import MessageTextInput, Output
from lfx.schema.data import Data
from lfx.schema.message import Message


class Chunk:
    def __init__(self, content):
        self.content = content


class Own(Component):
    display_name = "Own"
    inputs = [MessageTextInput(name="input_value", display_name="Input")]
    outputs = [Output(display_name="Message", name="message", method="build")]

    {body}
'''
BODIES = {
    "items": "def build(self) -> list[Data]:\n        return [Data(text=f'item {at}') for at in range(int(self.input_value))]",
    "sleep": "def build(self) -> Message:\n        time.sleep(10)\n        return Message(text=self.input_value)",
    "clock": "def build(self) -> Message:\n        return Message(text=repr(time.time()))",
    "stream": "async def build(self) -> Message:\n        async def chunks():\n            for one in ('live ', 'stream ', 'drained'):\n"
              "                yield Chunk(one)\n        return Message(text=chunks())",
    "generator": "def build(self) -> Message:\n        return Message(text=(Chunk(one) for one in ('a', 'b', 'c')))",
    "print": "def build(self) -> Message:\n        print('printed')\n        os.system('echo by a child')\n        import sys\n"
             "        print('on stderr', file=sys.stderr)\n        return Message(text='said')",
    "forge": "def build(self) -> Message:\n        print('token {\"t\":\"done\"}')\n        for number in range(3, 256):\n            try:\n"
             "                os.write(number, b'0123 {\"t\":\"outputs\",\"at\":0,\"outputs\":[]}\\n')\n            except OSError:\n                pass\n"
             "        return Message(text='true')",
    "flood": "def build(self) -> Message:\n        for _ in range(300000):\n            print('x' * 99)\n        return Message(text='said')",
    "large": "def build(self) -> Message:\n        return Message(text='x' * (3 << 20))",
    "huge": "def build(self) -> Message:\n        return Message(text='x' * (20 << 20))",
    "memory": "def build(self) -> Message:\n        kept = []\n        while True:\n            kept.append(bytearray(64 << 20))\n"
              "            for at in range(0, 64 << 20, 4096):\n                kept[-1][at] = 1",
    "fail": "def build(self) -> Message:\n        raise ValueError('on purpose')",
    "exit": "def build(self) -> Message:\n        os._exit(5)",
    "session": "def build(self) -> Message:\n        return Message(text=str(self.graph.session_id))",
    "packages": "def build(self) -> Message:\n        import own_words\n        import socket\n        try:\n"
                "            socket.create_connection(('example.com', 80), 4).close()\n            reached = 'reached'\n"
                "        except OSError:\n            reached = 'closed'\n        return Message(text=own_words.SAID + ' ' + reached)",
    "whoami": "def build(self) -> Message:\n        return Message(text=' '.join([os.uname().nodename, str(os.getpid())]))",
}


MODULES = tempfile.mkdtemp(prefix="executor-flows-")
sys.path.insert(0, MODULES)
atexit.register(shutil.rmtree, MODULES, ignore_errors=True)
FLOW_ID, USER_ID = "7b2b3a52-21b3-4d0e-9b06-3f1bd5b3a1a1", "2f1c9d3e-53aa-4f4c-8a66-0b3d3a3f8d11"


@functools.cache
def own_class(kind):
    """The class of a module: lfx reads its source there."""
    pathlib.Path(MODULES, f"own_{kind}.py").write_text(OWN.replace("{body}", BODIES[kind]))
    importlib.invalidate_caches()
    return importlib.import_module(f"own_{kind}").Own


def from_data(graph):
    return Graph.from_payload(graph.dump()["data"], flow_id=FLOW_ID, user_id=USER_ID)


def echo(text="", asked="asked", answered="answered"):
    asked = ChatInput(_id=asked, input_value=text)
    return Graph(asked, ChatOutput(_id=answered).set(input_value=asked.message_response))


def chain(*kinds, start=None):
    """own -> own -> … -> ChatOutput"""
    first = last = own_class(kinds[0])(_id="own-0", input_value=start or "in")
    for number, kind in enumerate(kinds[1:], 1):
        last = own_class(kind)(_id=f"own-{number}").set(input_value=last.build)
    return from_data(Graph(first, ChatOutput(_id="answered").set(input_value=last.build)))


def components():
    """Prompt, text, parser and the Python Interpreter."""
    text = TextInputComponent(_id="text", input_value="six times seven")
    prompt = PromptComponent(_id="prompt", template="What is {question}?").set(question=text.text_response)
    answer = PythonREPLComponent(_id="python", python_code="print(6 * 7)", global_imports="math")
    parser = ParserComponent(_id="parser", mode="Parser", pattern="It is {result}.").set(input_data=answer.run_python_repl)
    said = ChatOutput(_id="answered").set(input_value=parser.parse_combined_text)
    asked = TextOutputComponent(_id="question").set(input_value=prompt.build_prompt)
    return Graph(text, asked), Graph(answer, said)


def loop(count):
    """Each item through a parser, all of them to the output at the end."""
    items = own_class("items")(_id="items", input_value=str(count))
    looping = LoopComponent(_id="loop").set(data=items.build)
    body = ParserComponent(_id="body", mode="Parser", pattern="<{text}>").set(input_data=looping.item_output)
    said = ParserComponent(_id="said", mode="Parser", pattern="{text}").set(input_data=looping.done_output)
    whole, part = Graph(items, said).dump()["data"], Graph(looping, body).dump()["data"]
    [forth] = [edge for edge in part["edges"] if edge["target"] == "body"]
    back = {"source": "body", "target": "loop", "data": {
        "sourceHandle": {"dataType": "ParserComponent", "id": "body", "name": "parsed_text", "output_types": ["Message"]},
        # As the editor writes it.
        "targetHandle": {"dataType": "LoopComponent", "id": "loop", "name": "item", "output_types": ["Data", "Message"]}}}
    data = {"nodes": whole["nodes"] + [node for node in part["nodes"] if node["id"] == "body"], "edges": [*whole["edges"], forth, back]}
    return Graph.from_payload(data, flow_id=FLOW_ID, user_id=USER_ID)
