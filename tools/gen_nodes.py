#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generate the C++ tables of node types, models and missing guest methods from their data files.

usage: gen_nodes.py api/nodes.json api/models.json runtimes/micropython/capabilities.json OUTDIR

Writes OUTDIR/{node,model,capability}_table.inc, each only when its content changes.
"""

import json
import pathlib
import re
import sys

HEAD = "// Generated from {} by tools/gen_nodes.py. Do not edit.\n"


def quoted(text: str) -> str:
    """A C++ string literal; JSON's \\u escapes would need a closer look, so bytes are escaped."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif char == "?":  # no trigraphs
            out.append("\\?")
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def constraints(field: dict) -> str:
    """["Ge(ge=1)", "Le(le=300)"] -> "ge=1,le=300"."""
    found = []
    for text in field.get("constraints", ()):
        match = re.fullmatch(r"\w+\((\w+=[-\w.]+)\)", text)
        if match:
            found.append(match[1])
    return ",".join(found)


def default(field: dict) -> str:
    if "default" not in field or field.get("default_is_long_text"):
        return ""
    return json.dumps(field["default"])


def node_table(document: dict) -> str:
    nodes = sorted(document["nodes"], key=lambda node: node["type"])
    text = HEAD.format("api/nodes.json")
    for node in nodes:
        if not node["fields"]:
            continue
        text += f"inline constexpr NodeField kFieldsOf{node['type']}[] = {{\n"
        for field in node["fields"]:
            cells = [quoted(field["name"]), quoted(field["type"]), str(field["required"]).lower(),
                     quoted(default(field)), quoted(constraints(field))]
            text += "    {" + ", ".join(cells) + "},\n"
        text += "};\n"
    text += "inline constexpr NodeType kNodeTypes[] = {\n"
    for node in nodes:
        cells = [quoted(node[key]) for key in ("type", "category", "description", "base")]
        cells.append(str(node["restricted"]).lower())
        cells.append(f"kFieldsOf{node['type']}" if node["fields"] else "{}")
        text += "    {" + ", ".join(cells) + "},\n"
    return text + "};\n"


def model_table(document: dict) -> str:
    text = HEAD.format("api/models.json")
    text += "inline constexpr std::string_view kModules[] = {\n"
    text += "".join(f"    {quoted(name)},\n" for name in sorted(document["modules"])) + "};\n"
    text += "inline constexpr std::string_view kModelSchemas[] = {\n"
    place = {}
    for key, schema in document["schemas"].items():
        place[key] = len(place)
        text += f"    {quoted(json.dumps(schema, separators=(',', ':')) if schema else '')},\n"
    text += "};\ninline constexpr Model kModels[] = {\n"
    pairs = sorted((module, name, key) for module, names in document["names"].items()
                   for name, key in names.items())
    for module, name, key in pairs:
        text += f"    {{{quoted(module)}, {quoted(name)}, kModelSchemas[{place[key]}]}},\n"
    return text + "};\n"


def capability_table(document: dict) -> str:
    text = HEAD.format("runtimes/micropython/capabilities.json")
    text += "inline constexpr MissingMethod kMissingMethods[] = {\n"
    for method in sorted(document["missing_methods"], key=lambda each: each["name"]):
        cells = [quoted(method["name"]), quoted(", ".join(method["types"])),
                 quoted(method["instead"])]
        text += "    {" + ", ".join(cells) + "},\n"
    text += "};\n"
    sha256 = document["artifact"]["sha256"]
    return text + f"inline constexpr std::string_view kProbedArtifactSha256 = {quoted(sha256)};\n"


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main() -> int:
    nodes, models, capabilities, out = (pathlib.Path(arg) for arg in sys.argv[1:5])
    out.mkdir(parents=True, exist_ok=True)
    write_if_changed(out / "node_table.inc", node_table(json.loads(nodes.read_text())))
    write_if_changed(out / "model_table.inc", model_table(json.loads(models.read_text())))
    write_if_changed(out / "capability_table.inc",
                     capability_table(json.loads(capabilities.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
