# SPDX-License-Identifier: Apache-2.0
"""The server in a process of its own, with nodes that need no orcheo (fake_nodes.py)."""

import os
import pathlib
import socket
import subprocess
import sys
import unittest

from caisson_orcheo.frames import Channel

HERE = pathlib.Path(__file__).resolve().parent


class Server(unittest.TestCase):
    def setUp(self):
        ours, theirs = socket.socketpair()
        ours.settimeout(20)
        self.process = subprocess.Popen([sys.executable, str(HERE / "fake_nodes.py"), str(theirs.fileno())],
                                        pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        theirs.close()
        self.channel = Channel(ours)
        self.addCleanup(self.end, ours)
        self.assertEqual(self.channel.receive()["type"], "hello")

    def end(self, ours):
        ours.close()
        self.output, _ = self.process.communicate(timeout=20)
        self.assertEqual(self.process.returncode, 0)

    def run_node(self, call, kind, **config):
        self.channel.send({"type": "run", "id": call, "node_type": kind, "node": "n", "instance": "", "config": config, "values": {},
                           "state": {}, "run_config": {}})

    def test_runs_calls_at_the_same_time(self):
        self.run_node(1, "Sleep", seconds=0.5)
        self.run_node(2, "Echo", a=1)
        first = self.channel.receive()
        self.assertEqual(first, {"type": "result", "id": 2, "value": {"a": 1}})
        self.assertEqual(self.channel.receive()["id"], 1)

    def test_cancels_a_call(self):
        self.run_node(1, "Sleep", seconds=100)
        self.channel.send({"type": "cancel", "id": 1})
        error = self.channel.receive()
        self.assertEqual((error["type"], error["id"], error["kind"]), ("error", 1, "cancelled"))
        self.channel.send({"type": "cancel", "id": 1})  # of a call that has ended: nothing
        self.run_node(2, "Echo")
        self.assertEqual(self.channel.receive()["id"], 2)

    def test_answers_pings_while_a_node_computes(self):
        self.run_node(1, "Compute", seconds=1)
        self.channel.send({"type": "ping"})
        self.assertEqual(self.channel.receive()["type"], "pong")
        self.assertEqual(self.channel.receive()["id"], 1)

    def test_tells_what_was_raised(self):
        self.run_node(1, "Raise")
        self.assertEqual(self.channel.receive(), {"type": "error", "id": 1, "kind": "raised", "error_type": "KeyError", "message": "'x'"})
        self.run_node(2, "Exit")
        self.assertEqual(self.channel.receive()["error_type"], "SystemExit")
        self.run_node(3, "Missing")
        self.assertEqual(self.channel.receive()["kind"], "unknown_type")
        self.run_node(4, "NotJson")
        error = self.channel.receive()
        self.assertEqual((error["kind"], error["message"]), ("not_json", "$.a: a set has no JSON form"))
        self.channel.send({"type": "check", "id": 5, "node_type": "Echo", "node": "n", "config": {"bad": 1}})
        self.assertEqual(self.channel.receive()["kind"], "config")

    def test_tells_of_a_result_that_is_too_large(self):
        self.run_node(1, "Large")
        error = self.channel.receive()
        self.assertEqual((error["id"], error["kind"]), (1, "too_large"))

    def test_gives_lines_to_the_call_that_prints_them(self):
        self.run_node(1, "Print", text="one\ntwo")
        messages = [self.channel.receive() for _ in range(4)]
        self.assertEqual([(message["type"], message["id"], message.get("level"), message.get("text")) for message in messages],
                         [("log", 1, "info", "one"), ("log", 1, "warning", "logged"), ("log", 1, "info", "two"), ("result", 1, None, None)])


if __name__ == "__main__":
    unittest.main()
