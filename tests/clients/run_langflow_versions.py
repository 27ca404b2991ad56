# SPDX-License-Identifier: Apache-2.0
"""Our backend, component and executor on other CPythons and another lfx than those of langflow.txt: the newest releases that fit, so
what they find is of today.

usage: run_langflow_versions.py FOLDER [VERSION]. The interpreters are those of the path or of pyenv; exits with 77 where none is found.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAIRS = {"3.10": "1.12.*", "3.12": "1.13.*", "3.13": "1.13.*"}  # CPython and lfx
SUITES = ("test_caisson_langflow", "test_caisson_component", "test_caisson_executor")


def find(version: str) -> pathlib.Path | None:
    places = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"), "versions").glob(f"{version}.*/bin/python{version}")
    for program in (shutil.which(f"python{version}"), *sorted(places)):
        if program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return pathlib.Path(program)
    return None


def install(program: pathlib.Path, lfx: str, folder: pathlib.Path) -> pathlib.Path:
    """A Python of its own: guests run it, too, and what lies in a home is not theirs to see."""
    prefix = subprocess.run([program, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True).stdout.strip()
    shutil.rmtree(folder, ignore_errors=True)
    if pathlib.Path(prefix).is_relative_to(pathlib.Path.home()):
        shutil.copytree(prefix, folder, symlinks=True, ignore=shutil.ignore_patterns("test", "site-packages", "*.a"))
        python = folder / "bin" / program.name
        for_guests = folder / "bin/python-for-guests"  # its library is looked for where it was built, which is not theirs to see either
        for_guests.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{folder}/lib" exec "{python}" "$@"\n')
        for_guests.chmod(0o755)
        subprocess.run([python, "-m", "ensurepip"], check=True, capture_output=True)
    else:
        subprocess.run([program, "-m", "venv", folder], check=True)
        python = folder / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", f"lfx=={lfx}",
                    HERE.parents[1] / "clients/langflow"], check=True)
    return python


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    found = {version: program for version in sys.argv[2:] or PAIRS if (program := find(version))}
    if not found:
        print(f"skipped: there is no CPython {', '.join(PAIRS)}")
        return 77
    failed = []
    for version, program in found.items():
        python = install(program, PAIRS[version], folder / version)
        for_guests = python.with_name("python-for-guests")
        variables = {"CAISSON_TEST_GUEST_PYTHON": str(for_guests)} if for_guests.exists() else {}
        for suite in SUITES:
            print(f"== {suite} on CPython {version}, lfx {PAIRS[version]}", flush=True)
            if subprocess.run([python, "-W", "ignore", HERE / f"{suite}.py"], env=os.environ | variables).returncode:
                failed.append(f"{suite} on CPython {version}")
    print("failed: " + ", ".join(failed) if failed else f"all suites pass on CPython {', '.join(found)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
