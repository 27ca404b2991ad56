# SPDX-License-Identifier: Apache-2.0
"""Builds the image python-science for the tests that need a root file system, unless it is there, and looks
whether it has every library of the list. Exit code 77 says that this host cannot build it, and why.

usage: native_root.py FOLDER_OF_PROGRAMS STORE
"""

import json
import pathlib
import sys
import tomllib

from host import build, obstacle

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def expected_libraries() -> dict[str, str]:
    listing = tomllib.loads((ROOT / "runtimes/python-packages.toml").read_text())
    return {library["name"]: library["native"]["version"] for library in listing["library"] if "version" in library["native"]}


def main() -> int:
    programs, store = map(pathlib.Path, sys.argv[1:])
    if (why := obstacle()) is not None:
        print(f"skipped: {why}")
        return 77
    built = build(programs, store, "python-science")
    if built.returncode != 0:
        return built.returncode
    image = json.loads(built.stdout)
    missing = {name: version for name, version in expected_libraries().items() if image["libraries"].get(name) != version}
    if missing:
        print(f"the image lacks {missing}; it has {image['libraries']}")
        return 1
    print(f"{image['id']} in {image['root']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
