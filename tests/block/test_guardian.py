# SPDX-License-Identifier: Apache-2.0
"""clients/guardian from a clean `npm ci`: its own tests, with the programs under test.

    test_guardian.py BIN WORKDIR     WORKDIR is made anew

Exit code 77: Node.js 18 or newer with npm is not here.
"""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from programs import BIN, ROOT, environment  # noqa: E402

SOURCE = ROOT / "clients/guardian"
NOT_SOURCE = shutil.ignore_patterns("node_modules", "dist")


def node_major() -> int:
    if not shutil.which("node") or not shutil.which("npm"):
        return 0
    return int(subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip("v\n").split(".")[0])


def main() -> int:
    if node_major() < 18:
        print("Node.js 18 or newer with npm is not here")
        return 77
    work = pathlib.Path(sys.argv[2])
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(SOURCE, work, ignore=NOT_SOURCE)
    env = environment({"CAISSON_BIN": str(BIN / "caisson")})
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "test"]):
        print("+ " + " ".join(command), flush=True)
        code = subprocess.run(command, cwd=work, env=env).returncode
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
