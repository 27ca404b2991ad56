# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over one file, or the memory that it was clean.

A clean file is remembered under a hash of all that clang-tidy reads: every file that the compiler reads
for it (`-M`), the command from compile_commands.json, `.clang-tidy`, the arguments and the version. What
had findings is never remembered, so it is looked at each time. The memory is a folder of empty files
(~/.cache/caisson/tidy, or under XDG_CACHE_HOME); remove it to look at everything again.
"""

import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATABASE = ROOT / "build/fuzz"
PROGRAM = "clang-tidy-19"
FORGET_AFTER_DAYS = 30
MEMORY = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "caisson/tidy"


@functools.cache
def version() -> str:
    return subprocess.run([PROGRAM, "--version"], capture_output=True, check=True, text=True).stdout


@functools.cache
def compile_commands() -> dict[str, list[str]]:
    """By file: compiler and options, without the file and what only concerns its object."""
    commands = {}
    for entry in json.loads((DATABASE / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])
        output = arguments.index("-o")
        rest = arguments[:output] + arguments[output + 2:]
        commands[entry["file"]] = [part for part in rest if part not in ("-c", entry["file"])]
    return commands


def command_of(name: str) -> list[str]:
    """For a file that this build leaves out (a bench), that of a neighbour; tests are told most."""
    path = ROOT / name
    if str(path) in compile_commands():
        return compile_commands()[str(path)]
    for folder in path.parents:
        neighbours = sorted((other for other in compile_commands() if other.startswith(f"{folder}/")),
                            key=lambda other: not other.endswith("_test.cc"))
        if neighbours:
            return compile_commands()[neighbours[0]]
    raise SystemExit(f"{DATABASE}/compile_commands.json has no files")


@functools.lru_cache(maxsize=None)
def hash_of(path: str) -> bytes:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).digest()


def files_read(name: str, command: list[str]) -> list[str] | None:
    """None where the file does not compile."""
    result = subprocess.run([*command, "-M", "-w", str(ROOT / name)], cwd=DATABASE, capture_output=True, text=True)
    if result.returncode != 0:
        return None
    files = result.stdout.split(":", 1)[1].replace("\\\n", " ")
    return [os.path.normpath(DATABASE / path) for path in shlex.split(files)]


def key_of(name: str, command: list[str], arguments: list[str]) -> str | None:
    files = files_read(name, command)
    if files is None:
        return None
    # Of another checkout with the same content the result is the same.
    told = [text.replace(str(ROOT), "") for text in [version(), *arguments, *command]]
    digest = hashlib.sha256("\0".join(told).encode())
    for path in [str(ROOT / ".clang-tidy"), *files]:
        digest.update(path.removeprefix(str(ROOT)).encode() + b"\0" + hash_of(path))
    return digest.hexdigest()


def forget_old() -> None:
    oldest = time.time() - FORGET_AFTER_DAYS * 86400
    for path in MEMORY.glob("*"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def check(name: str, arguments: list[str]) -> tuple[str, bool]:
    """What clang-tidy says (empty: the file is clean), and whether that was only remembered."""
    command = command_of(name)
    key = key_of(name, command, arguments)
    if key and (MEMORY / key).exists():
        (MEMORY / key).touch()
        return "", True
    result = subprocess.run([PROGRAM, "--quiet", *arguments, str(ROOT / name), "--", *command[1:]], cwd=DATABASE,
                            capture_output=True, text=True)
    if result.returncode != 0:
        return result.stdout or result.stderr or f"{PROGRAM} ended with {result.returncode}", False
    if key:
        MEMORY.mkdir(parents=True, exist_ok=True)
        (MEMORY / key).touch()
    return "", False
