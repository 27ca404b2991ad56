# SPDX-License-Identifier: Apache-2.0
"""Tests that set variables of this process, which are as before after each."""

import os
import unittest


class EnvironmentCase(unittest.TestCase):
    def variable(self, name, value):
        """None: it is not set."""
        before = os.environ.get(name)
        self.addCleanup(self._put, name, before)
        self._put(name, value)

    @staticmethod
    def _put(name, value):
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
