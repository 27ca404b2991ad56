#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail when a source file includes a folder above its own, or a sibling that it must not know.

The order is that of docs/architecture.md, top first: a folder includes only from folders below it.
The runtimes under isolate/ never include one another, nor do the drivers under machine/, but for
one that is another monitor of the same machines.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src"
ORDER = ["capi", "cli", "api", "control", "runs", "vault", "graph", "host", "nodes", "block", "workflow", "python", "isolate", "machine",
         "agent", "wasm", "egress", "jail", "store", "http", "images", "os", "json", "base"]
RANK = {name: rank for rank, name in enumerate(ORDER)}
SIBLINGS_APART = {"isolate", "machine"}
# Another monitor below the same virtual machines.
BUILDS_ON = {("machine", "firecracker"): "microvm"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def problems(path: pathlib.Path) -> list[str]:
    relative = path.relative_to(ROOT)
    own = relative.parts[0]
    found = []
    for include in INCLUDE.findall(path.read_text()):
        parts = pathlib.PurePosixPath(include).parts
        if parts[0] not in RANK:
            if len(parts) > 1 and parts[0] != "errors":
                found.append(f"src/{relative}: includes \"{include}\", whose folder is in no layer")
            continue
        if RANK[parts[0]] < RANK[own]:
            found.append(f"src/{relative}: {own}/ may not include {parts[0]}/ (\"{include}\"), which lies above it")
        is_test = re.search(r"_(test|bench|fuzz)\.cc$", path.name)
        if own == parts[0] and own in SIBLINGS_APART and not is_test and len(relative.parts) > 2 and len(parts) > 2:
            if relative.parts[1] != parts[1] and BUILDS_ON.get((own, relative.parts[1])) != parts[1]:
                found.append(f"src/{relative}: {own}/{relative.parts[1]} may not include {own}/{parts[1]}")
    return found


def main() -> int:
    found = []
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in {".h", ".cc"}:
            if path.relative_to(ROOT).parts[0] not in RANK:
                found.append(f"src/{path.relative_to(ROOT)}: its folder is in no layer of {pathlib.Path(__file__).name}")
                continue
            found += problems(path)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
