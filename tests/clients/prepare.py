# SPDX-License-Identifier: Apache-2.0
"""Installs a real client, pinned by hash, into a folder of its own.

usage: prepare.py python-sdk|npm-sdk|schemathesis|langflow|langflow-server FOLDER. Exits with 77 (skipped) where the tools are missing.
caisson-langflow instead puts our own package, as it is now, into the FOLDER of langflow.
"""

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
NODE_LEAST = 20
PINNED_PYTHON = (3, 11)
SYSTEM_PYTHON = "/usr/bin/python3"


def install_python(folder: pathlib.Path, pins: pathlib.Path) -> None:
    if pins.stem.startswith("langflow"):  # guests use it, too, and what lies in a home is not theirs to see
        subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--clear", folder], check=True)
    else:
        venv.create(folder, with_pip=True, clear=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--require-hashes", "--no-deps", "--requirement", pins], check=True)
    # The list names all that is needed, and alone says which versions: pip would look for newer ones of what has extras.
    subprocess.run([folder / "bin/python", "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)


def install_own(folder: pathlib.Path) -> int:
    if not (folder / "bin/python").exists():
        print("skipped: langflow is not installed there")
        return 77
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--force-reinstall", HERE.parents[1] / "clients/langflow"], check=True)
    return 0


def install_npm(folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "npm-sdk", folder)
    subprocess.run(["npm", "ci", "--silent", "--ignore-scripts"], cwd=folder, check=True)


def system_python() -> tuple[int, ...]:
    if not pathlib.Path(SYSTEM_PYTHON).exists():
        return ()
    shown = subprocess.run([SYSTEM_PYTHON, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, shown.stdout.split()))


def node_version() -> int:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return 0
    text = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    return int(re.match(r"v(\d+)", text)[1])


def main() -> int:
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if name == "caisson-langflow":
        return install_own(folder)
    pins = HERE / ("npm-sdk/package-lock.json" if name == "npm-sdk" else f"{name}.txt")
    stamp = folder / ".stamp"
    wanted = hashlib.sha256(pins.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return 0
    if name == "npm-sdk" and node_version() < NODE_LEAST:
        print(f"skipped: the package needs Node.js {NODE_LEAST} and npm")
        return 77
    if name.startswith("langflow") and system_python() != PINNED_PYTHON:
        print("skipped: its packages are pinned for the system's CPython {}.{}".format(*PINNED_PYTHON))
        return 77
    if name == "schemathesis" and sys.version_info[:2] != PINNED_PYTHON:
        print("skipped: its packages are pinned for CPython {}.{}".format(*PINNED_PYTHON))
        return 77
    install_npm(folder) if name == "npm-sdk" else install_python(folder, pins)
    stamp.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
