#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generate the C++ constants and the table of error codes from api/errors.yaml.

usage: gen_errors.py api/errors.yaml OUTDIR

Writes OUTDIR/<area>.h (one ErrorCode constant per code, namespace caisson::errors) and
OUTDIR/catalogue.inc (one CAISSON_ERROR(code, exit, http, text) line per code). A file is
rewritten only when its content changes.
"""

import json
import pathlib
import re
import sys

import yaml


def constant(area: str, reason: str) -> str:
    return "k" + "".join(part.capitalize() for part in f"{area}_{reason}".split("_"))


def load(path: pathlib.Path) -> tuple[dict, dict]:
    data = yaml.safe_load(path.read_text())
    exits, areas = data["exit_codes"], data["areas"]
    for area, codes in areas.items():
        for reason, entry in codes.items():
            where = f"{path}: {area}.{reason}"
            if not re.fullmatch(r"[a-z][a-z0-9_]*", reason):
                raise SystemExit(f"{where}: the reason must be snake_case")
            if entry.get("exit") not in exits:
                raise SystemExit(f"{where}: exit must be one of {', '.join(exits)}")
            if set(entry) - {"exit", "http", "text"} or not entry.get("text"):
                raise SystemExit(f"{where}: expected exactly exit, http (optional) and text")
    return exits, areas


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main() -> int:
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    exits, areas = load(source)
    head = "// Generated from api/errors.yaml by tools/gen_errors.py. Do not edit.\n"
    table = head
    for area, codes in areas.items():
        lines = [head + "#pragma once\n#include \"base/status.h\"\n\nnamespace caisson::errors {"]
        for reason, entry in codes.items():
            code = f"{area}.{reason}"
            lines.append(f"inline constexpr ErrorCode {constant(area, reason)}{{\"{code}\"}};")
            table += f"CAISSON_ERROR({json.dumps(code)}, {exits[entry['exit']]['code']}, {entry.get('http', 500)}, {json.dumps(entry['text'])})\n"
        write_if_changed(out / f"{area}.h", "\n".join(lines) + "\n}  // namespace caisson::errors\n")
    write_if_changed(out / "catalogue.inc", table)
    enum = head + "#pragma once\n\nnamespace caisson {\n// Exit codes of the caisson command.\nenum class ExitCode : int {\n"
    for name, entry in exits.items():
        enum += f"  {constant(name, '').rstrip('_')} = {entry['code']},  // {entry['text']}\n"
    write_if_changed(out / "exit_codes.h", enum + "};\n}  // namespace caisson\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
