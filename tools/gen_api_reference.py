#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/api-reference.md from api/openapi.yaml, or say that it is not what that gives.

usage: gen_api_reference.py [--check]
"""

import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE, TARGET = ROOT / "api/openapi.yaml", ROOT / "docs/api-reference.md"
COMMON = {"400", "401", "403", "404", "405", "413", "429", "500", "503"}  # told once, on top

HEAD = """# API reference

Generated from [`api/openapi.yaml`](../api/openapi.yaml) by `tools/gen_api_reference.py`; [sandbox-api.md](sandbox-api.md) says how to start.

{description}

A success is `200` with `{{"status":"success","data":…}}`; below stands what `data` is. A fault of the caller is `{{"status":"fail","data":…}}`, one of ours
`{{"status":"error","message":…,"code":…}}`, and the header `X-Error-Code` names it (`api/errors.yaml`). Every operation may answer {common}; others are named.
The key goes into the header `X-Api-Key`.
"""


class Reference:
    def __init__(self, document: dict):
        self.document = document

    def resolve(self, node: dict) -> dict:
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def type_of(self, schema: dict) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return f"[{name}](#{name.lower()})"
        if "enum" in schema:
            return " \\| ".join(f"`{value}`" for value in schema["enum"])
        kind = schema.get("type", "any")
        if kind == "array":
            return f"list of {self.type_of(schema.get('items', {}))}"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"map of {self.type_of(schema['additionalProperties'])}"
        return schema.get("format", kind)

    def fields(self, schema: dict, prefix: str = "") -> list[str]:
        """One row of a table for each field, those of nested objects after theirs."""
        schema = self.resolve(schema)
        rows = []
        for part in schema.get("allOf", []):
            rows += self.fields(part, prefix)
        required = schema.get("required", [])
        for name, field in schema.get("properties", {}).items():
            full = f"{prefix}{name}"
            limits = [f"{word} {field[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in field]
            notes = "; ".join(filter(None, [field.get("description", ""), " ".join(limits)])).replace("|", "\\|")
            rows.append(f"| `{full}` | {self.type_of(field)} | {'yes' if name in required else ''} | {notes} |")
            inner = field.get("items", {}) if field.get("type") == "array" else field
            if inner.get("type") == "object" and "properties" in inner:
                rows += self.fields(inner, f"{full}{'[]' if inner is not field else ''}.")
        return rows

    def table(self, schema: dict) -> list[str]:
        rows = self.fields(schema)
        return ["", "| field | type | always | |", "|---|---|---|---|", *rows] if rows else []

    def body(self, content: dict, unwrap: bool) -> list[str]:
        lines = []
        for media, entry in content.items():
            schema = entry.get("schema", {})
            if unwrap and media == "application/json":
                schema = self.resolve(schema).get("properties", {}).get("data", schema)
            shown = self.type_of(schema)
            lines.append(f"`{media}`: {shown}" if media != "application/json" or "$ref" in schema else f"`{media}`:")
            if "$ref" not in schema:
                lines += self.table(schema)
        return lines

    def parameters(self, path: dict, operation: dict) -> list[str]:
        rows = []
        for parameter in path.get("parameters", []) + operation.get("parameters", []):
            parameter = self.resolve(parameter)
            notes = parameter.get("description", "").replace("|", "\\|")
            always = "yes" if parameter.get("required") else ""
            rows.append(f"| `{parameter['name']}` | {parameter['in']} | {self.type_of(parameter.get('schema', {}))} | {always} | {notes} |")
        return ["", "| parameter | in | type | always | |", "|---|---|---|---|---|", *rows] if rows else []

    def operation(self, method: str, route: str, path: dict) -> list[str]:
        operation = path[method]
        lines = ["", f"### {method.upper()} {route}", "", operation.get("summary", "") + "."]
        if operation.get("description"):
            lines += ["", operation["description"]]
        if operation.get("security") == []:
            lines += ["", "Needs no key."]
        lines += self.parameters(path, operation)
        if "requestBody" in operation:
            lines += ["", "Request: " + "\n".join(self.body(self.resolve(operation["requestBody"])["content"], False))]
        others = []
        for status, answer in operation["responses"].items():
            answer = self.resolve(answer)
            if status[0] in "12":
                shown = self.body(answer.get("content", {}), True)
                note = answer.get("description", "")
                lines += ["", f"Answer {status}" + (f" ({note.rstrip('.')})" if note not in ("", "Done.") else "")
                          + (": " + "\n".join(shown) if shown else ".")]
            elif status not in COMMON:
                others.append(f"`{status}` {answer.get('description', '').rstrip('.')}")
        return lines + (["", "Also: " + "; ".join(others) + "."] if others else [])

    def text(self) -> str:
        info = self.document["info"]
        common = ", ".join(f"`{status}`" for status in sorted(COMMON))
        lines = [HEAD.format(description=" ".join(info["description"].split()), common=common)]
        tags: dict[str, list[str]] = {}
        for route, path in self.document["paths"].items():
            for method in path:
                if method in ("get", "put", "post", "patch", "delete"):
                    tags.setdefault(path[method].get("tags", ["other"])[0], []).extend(self.operation(method, route, path))
        for tag, part in tags.items():
            lines += [f"\n## {tag.capitalize()}", *part]
        lines.append("\n## Types")
        for name, schema in self.document["components"]["schemas"].items():
            shown = [] if "properties" in schema or "allOf" in schema else ["", self.type_of(schema)]
            lines += ["", f"### {name}", *shown, *self.table(schema)]
        return "\n".join(lines) + "\n"


def main() -> int:
    text = Reference(yaml.safe_load(SOURCE.read_text())).text()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
        return 0
    if TARGET.is_file() and TARGET.read_text() == text:
        return 0
    print(f"{TARGET.relative_to(ROOT)} is not what {SOURCE.relative_to(ROOT)} gives; run tools/gen_api_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
