# SPDX-License-Identifier: Apache-2.0
"""Finds a CPython 3.12 and continues the calling script in it."""

import glob
import os
import shutil
import subprocess
import sys

SKIPPED = 77  # what ctest is told to read as "skipped"


def is_cpython312(path):
    probe = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    try:
        result = subprocess.run(
            [path, "-I", "-c", probe], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.stdout.split() == ["cpython", "3", "12"]


def find():
    named = os.environ.get("CAISSON_PYTHON312")
    if named:
        if not is_cpython312(named):
            sys.exit(f"CAISSON_PYTHON312 is {named}, which is not a CPython 3.12")
        return named
    candidates = [sys.executable, shutil.which("python3.12")]
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates += sorted(glob.glob(os.path.join(pyenv, "versions", "3.12*", "bin", "python")))
    return next((path for path in candidates if path and is_cpython312(path)), None)


def continue_in_cpython312():
    """Returns when already running in one; exits with SKIPPED when there is none."""
    if sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 12):
        return
    python = find()
    if python is None:
        print("skipped: no CPython 3.12 here (CAISSON_PYTHON312 may name one)")
        sys.exit(SKIPPED)
    sys.stdout.flush()
    os.execv(python, [python, "-B"] + sys.argv)
