# SPDX-License-Identifier: Apache-2.0
import socket
import unittest

from caisson_orcheo.frames import Channel, Closed, TooLarge


class Frames(unittest.TestCase):
    def setUp(self):
        self.ours, self.theirs = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.addCleanup(self.theirs.close)

    def test_a_message_comes_as_it_was_sent(self):
        message = {"a": [1, None, "ß😀"], "b": {"c": 1.5}}
        Channel(self.ours).send(message)
        self.assertEqual(Channel(self.theirs).receive(), message)

    def test_the_end_of_the_other_side_is_told(self):
        self.ours.sendall(b"\x05\x00\x00\x00{}")
        self.ours.close()
        with self.assertRaises(Closed):
            Channel(self.theirs).receive()

    def test_an_endless_message_is_refused(self):
        self.ours.sendall(b"\xff\xff\xff\xff")
        with self.assertRaises(Closed):
            Channel(self.theirs).receive()

    def test_a_message_that_is_too_large_is_not_sent(self):
        with self.assertRaises(TooLarge):
            Channel(self.ours, max_bytes=10).send({"text": "0123456789"})
        Channel(self.ours).send({"next": 1})
        self.assertEqual(Channel(self.theirs).receive(), {"next": 1})


if __name__ == "__main__":
    unittest.main()
