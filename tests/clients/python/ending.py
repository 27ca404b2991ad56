# SPDX-License-Identifier: Apache-2.0
"""The end of a test process that Orcheo's runner was in: threads of the WebAssembly engine that it loads abort some processes while
Python ends, ours in it or not."""

import os
import sys
import unittest


def run_tests():
    ended = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if ended.result.wasSuccessful() else 1)
