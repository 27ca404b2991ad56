#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/nodes.md from api/nodes.json, or say that it is not what that gives.

usage: gen_node_reference.py [--check]
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE, TARGET = ROOT / "api/nodes.json", ROOT / "docs/nodes.md"

HEAD = """# Node types

Generated from [`api/nodes.json`](../api/nodes.json) by `tools/gen_node_reference.py`. `caisson nodes` says the same of the version that is installed.

A workflow may name each of the {count} types. **Native** ones run in Caisson itself ({native} of them). **Restricted** ones reach things that cannot be kept apart
between tenants and are refused to authors that are not trusted. The others compile, and a run that would reach one is refused before it begins.

Every field may hold a template (`{{{{inputs.url}}}}`) or, where it is a string as a whole, a credential (`[[name]]`); a template's value has the type that the
state gives it. `!` marks a field that has to be given. Fields that a type does not have are ignored, with a warning.

## What a run must have

| need | node types | what it is |
|---|---|---|
| network | DiscordWebhookNode, EmailNode, HttpRequestNode, RSSNode | requests to public addresses only: every address of a name is checked, connections go to what was checked, redirects pass the same checks, TLS is verified, proxies of the environment are not used. A request has 10 minutes in all; without a `timeout` that is its only limit. Answers of more than 16 MiB end with `outbound.too_large` |
| files | FileUploadNode | a store from which people download |
| items | GraphStoreAppendMessageNode | the long-term store of workflows; one message is added as one transaction |

`caisson run` has all three; both stores are in the database of runs ([runs.md](runs.md)). With `--durability none` it has neither of them: a
workflow that needs one is refused before it begins (`nodes.no_blobs`, `nodes.no_items`).
"""


def cell(value) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def default_of(field: dict) -> str:
    if field["required"] or "default" not in field:
        return ""
    return f"`{cell(json.dumps(field['default'], ensure_ascii=False))}`"


def field_rows(node: dict) -> list[str]:
    rows = ["| field | type | default | limits |", "|---|---|---|---|"]
    for field in node["fields"]:
        limits = field.get("constraints", "")
        if isinstance(limits, (list, dict)):
            limits = ", ".join(f"{key} {value}" for key, value in limits.items()) if isinstance(limits, dict) else ", ".join(map(str, limits))
        rows.append(f"| `{field['name']}`{'!' if field['required'] else ''} | {cell(field['type'])} | {default_of(field)} | {cell(limits)} |")
    return rows


def reference(document: dict) -> str:
    nodes = document["nodes"]
    native = [node for node in nodes if node["native_first"]]
    lines = [HEAD.format(count=len(nodes), native=len(native)), "## Native types", ""]
    for node in native:
        lines += [f"### {node['type']}", "", f"{node['description'][0].upper()}{node['description'][1:]} ({node['category']}).", ""]
        lines += field_rows(node) + [""] if node["fields"] else ["No fields.", ""]
    lines += ["## The others", "", "| type | category | what | fields |", "|---|---|---|---|"]
    for node in nodes:
        if node["native_first"]:
            continue
        fields = ", ".join(f"`{field['name']}`{'!' if field['required'] else ''}" for field in node["fields"])
        mark = " (restricted)" if node["restricted"] else ""
        lines.append(f"| {node['type']}{mark} | {node['category']} | {cell(node['description'])} | {fields} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    text = reference(json.loads(SOURCE.read_text()))
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    print(f"{TARGET.relative_to(ROOT)} is not what {SOURCE.relative_to(ROOT)} gives; run tools/gen_node_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
