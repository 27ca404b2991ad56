# SPDX-License-Identifier: Apache-2.0
"""Makes the guard's policy of one runtime from python-packages.toml. Runs on the host.

usage: make_policy.py RUNTIME > policy.json        RUNTIME: cpython, native or oci
"""

import json
import pathlib
import sys
import tomllib

LIST = pathlib.Path(__file__).resolve().parent.parent / "python-packages.toml"


def runtimes_of(listing: dict) -> dict[str, str]:
    """Each runtime with the one whose entries it has."""
    return {name: entry.get("same_as", name) for name, entry in listing["runtimes"].items()}


def make_policy(runtime: str, listing: dict | None = None) -> dict:
    """What caisson_guard.install takes; KeyError for a runtime that the list does not name."""
    listing = listing or tomllib.loads(LIST.read_text())
    owners = runtimes_of(listing)
    own = owners[runtime]
    libraries = {}
    for library in listing["library"]:
        having = [name for name, owner in owners.items() if "version" in library[owner]]
        for module in library["imports"]:
            entry = {"package": library["name"], "runtimes": having}
            if runtime not in having:
                entry["missing"] = library[own]["missing"]
            libraries[module] = entry
    dependencies = sorted(module for entry in listing["dependency"] if own in entry for module in entry["imports"])
    refused = {entry["module"]: entry["reason"] for entry in listing["refused"]}
    return {"runtime": runtime, "libraries": libraries, "dependencies": dependencies, "refused": refused, "processes": False}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in runtimes_of(tomllib.loads(LIST.read_text())):
        print(__doc__, file=sys.stderr)
        return 2
    print(json.dumps(make_policy(sys.argv[1]), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
