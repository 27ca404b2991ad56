# SPDX-License-Identifier: Apache-2.0
"""Prepares the runtime cpython, once for all tests that use it. Exit code 77: its artifact is not here."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from programs import BIN, ROOT, environment  # noqa: E402

data = pathlib.Path(environment().get("CAISSON_DATA_DIR") or ROOT / ".deps")
if not (data / "cpython/python.wasm").is_file():
    print(f"there is no {data}/cpython/python.wasm; run tools/fetch_deps.py --with cpython")
    sys.exit(77)
sys.exit(subprocess.run([str(BIN / "caisson"), "runtimes", "install", "cpython"], env=environment()).returncode)
