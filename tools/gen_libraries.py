#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generate the C++ table of the modules that logic blocks may import.

usage: gen_libraries.py runtimes/python-packages.toml runtimes/python-stdlib.json OUTDIR

Writes OUTDIR/library_table.inc, only when its content changes.
"""

import json
import pathlib
import sys
import tomllib

RUNTIMES = ("cpython", "native", "oci")  # the order of block::RuntimeId
HEAD = "// Generated from python-packages.toml and python-stdlib.json by tools/gen_libraries.py. Do not edit.\n"
DEPENDENCY = "it is there for other libraries, not for scripts"


def owners(listing: dict) -> dict[str, str]:
    """Each runtime with the one whose entries it has."""
    found = {name: entry.get("same_as", name) for name, entry in listing["runtimes"].items()}
    if set(found) != set(RUNTIMES):
        raise SystemExit(f"the list has the runtimes {', '.join(sorted(found))}; expected {', '.join(RUNTIMES)}")
    return found


def minor(version: str) -> int:
    return int(version.split(".")[1])


def strings(values: list[str]) -> str:
    return "{" + ", ".join(json.dumps(value) for value in values) + "}"


def library_rows(listing: dict) -> list[str]:
    rows = []
    for library in sorted(listing["library"], key=lambda entry: entry["name"]):
        entries = [library[owners(listing)[name]] for name in RUNTIMES]
        versions = strings([entry.get("version", "") for entry in entries])
        missing = strings([entry.get("missing", "") for entry in entries])
        for number, module in enumerate(library["imports"]):
            main = "true" if number == 0 else "false"
            rows.append(f"    {{{json.dumps(library['name'])}, {json.dumps(module)}, {versions}, {missing}, {main}}},\n")
    return rows


def refused_rows(listing: dict) -> list[str]:
    reasons = {entry["module"]: entry["reason"] for entry in listing["refused"]}
    for dependency in listing["dependency"]:
        reasons |= {module: DEPENDENCY for module in dependency["imports"]}
    return [f"    {{{json.dumps(module)}, {json.dumps(reasons[module])}}},\n" for module in sorted(reasons)]


def standard_rows(modules: dict) -> list[str]:
    """Name, first and last minor version that has it."""
    spans = {name: [0, 99] for name in modules["base"]}
    for version, names in modules["removed"].items():
        for name in names:
            spans[name][1] = minor(version) - 1
    for version, names in modules["added"].items():
        spans |= {name: [minor(version), 99] for name in names}
    return [f"    {{{json.dumps(name)}, {first}, {last}}},\n" for name, (first, last) in sorted(spans.items())]


def table(listing: dict, modules: dict) -> str:
    pythons = [str(minor(listing["runtimes"][owners(listing)[name]]["python"])) for name in RUNTIMES]
    return "".join([
        HEAD,
        f"inline constexpr int kPythonMinors[] = {{{', '.join(pythons)}}};\n",
        "inline constexpr Library kLibraries[] = {\n", *library_rows(listing), "};\n",
        "inline constexpr RefusedModule kListedRefusals[] = {\n", *refused_rows(listing), "};\n",
        "inline constexpr StandardModule kStandardModules[] = {\n", *standard_rows(modules), "};\n",
    ])


def main() -> int:
    listing, modules, out = (pathlib.Path(argument) for argument in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    text = table(tomllib.loads(listing.read_text()), json.loads(modules.read_text()))
    path = out / "library_table.inc"
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
