# SPDX-License-Identifier: Apache-2.0
"""Talks to the ast_tool program; see ast_tool.cc for the requests and answers."""

import os
import subprocess


class AstTool:
    def __init__(self, path):
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, mode, kind, payload):
        """Returns (status, text). The program's death is an error here, with its exit status."""
        to_tool, from_tool = self._process.stdin, self._process.stdout
        try:
            to_tool.write(b"%s %s %d\n" % (mode.encode(), kind.encode(), len(payload)))
            to_tool.write(payload)
            to_tool.flush()
            status, length = from_tool.readline().split()
        except (BrokenPipeError, ValueError):
            raise RuntimeError(f"ast_tool died with {self._process.wait()}") from None
        answer = from_tool.read(int(length))
        return status.decode(), answer.decode("utf-8", "surrogateescape")

    def check_file(self, path):
        return self.ask("check", "file", os.fsencode(path))

    def check_text(self, source):
        return self.ask("check", "text", source.encode())

    def random_source(self, seed):
        return self.ask("print", "seed", str(seed).encode())[1]
