#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write api/models.json: the model classes that `from orcheo.x import Name` reaches.

usage: introspect_models.py api/models.json     (with a Python that has orcheo installed)

The file holds names, modules and JSON Schemas as facts; descriptions, examples and long default
texts (the package's prose) are left out. Modules that cannot be imported in this environment are
left out too.
"""

import importlib
import importlib.metadata
import json
import pathlib
import pkgutil
import sys
import warnings

LONG_TEXT = 80


def modules(package) -> list[str]:
    found = [package.__name__]
    for entry in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        try:
            module = importlib.import_module(entry.name)
        except Exception as error:  # an optional dependency is missing
            print(f"left out: {entry.name} ({error})", file=sys.stderr)
            continue
        found += modules(module) if entry.ispkg else [entry.name]
    return found


def is_long(value) -> bool:
    if isinstance(value, str):
        return len(value) > LONG_TEXT or "\n" in value
    if isinstance(value, dict):
        return any(is_long(item) for item in value.values())
    return isinstance(value, list) and any(is_long(item) for item in value)


def without_prose(schema):
    """The schema less its prose; `properties` and `$defs` are maps of schemas, not schemas."""
    if isinstance(schema, list):
        return [without_prose(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key in ("description", "examples", "deprecated"):
            continue
        if key == "default":
            if not is_long(value):
                out[key] = value
        elif key in ("enum", "const", "required", "mapping"):
            out[key] = value
        elif key in ("properties", "$defs", "patternProperties"):
            out[key] = {name: without_prose(item) for name, item in value.items()}
        else:
            out[key] = without_prose(value)
    return out


def main() -> int:
    warnings.simplefilter("ignore")
    import orcheo
    from pydantic import BaseModel

    names, schemas = {}, {}
    found = modules(orcheo)
    for module_name in found:
        module = sys.modules[module_name]
        for name in sorted(set(dir(module)) | set(getattr(module, "__all__", ()))):
            value = getattr(module, name, None)
            if not (isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel):
                continue
            key = f"{value.__module__}.{value.__qualname__}"
            names.setdefault(module_name, {})[name] = key
            if key not in schemas:
                try:
                    schemas[key] = without_prose(value.model_json_schema())
                except Exception:  # holds a callable: the class has no JSON Schema
                    schemas[key] = None
    document = {
        "source": f"introspected from orcheo {importlib.metadata.version('orcheo')}",
        "modules": sorted(found),
        "names": names,
        "schemas": dict(sorted(schemas.items())),
    }
    lines = ["{", f'"source": {json.dumps(document["source"])},', '"modules": [']
    lines.append(",\n".join(json.dumps(name) for name in document["modules"]) + "],")
    lines.append('"names": {')
    lines.append(",\n".join(f"{json.dumps(m)}: {json.dumps(n)}" for m, n in names.items()) + "},")
    lines.append('"schemas": {')
    lines.append(",\n".join(f"{json.dumps(k)}: {json.dumps(s, separators=(',', ':'))}"
                            for k, s in document["schemas"].items()) + "}")
    lines.append("}")
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
