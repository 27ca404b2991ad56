# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that puts our compiler and our runner in the place of Orcheo's before its own tests are imported, and says how often
they were used. See orcheo_suite.py."""

import caisson.compiler
import caisson.orcheo
import caisson.runner

counts = {"compiled": 0, "ran": 0}


def _counting(name, function):
    def call(*arguments, **rest):
        counts[name] += 1
        return function(*arguments, **rest)

    return call


caisson.compiler.compile_source = _counting("compiled", caisson.compiler.compile_source)
caisson.runner.MicroPythonSandboxRunner.run = _counting("ran", caisson.runner.MicroPythonSandboxRunner.run)
caisson.orcheo.install()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"caisson: {counts['compiled']} sources compiled, {counts['ran']} bodies run")
