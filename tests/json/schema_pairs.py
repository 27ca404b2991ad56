# SPDX-License-Identifier: Apache-2.0
"""Random schemas, and values that have a fair chance of fitting them."""

import random

NAMES = ["a", "b", "c", "kind", "x1", "größe", ""]
TEXTS = ["", "a", "aa", "abc", "x1", "größe", "😀", "😀😀", "A-1", "2024-01-01", "kind", "null"]
# Patterns and multiples on which both sides mean the same.
PATTERNS = ["^a", "b$", "^[a-z]+$", "\\d", "^.{2}$", "(a|x)1?", "ö", "^\\w*$", "[^a-c]", "^(?:a|b)*$"]
NUMBERS = [0, 1, -1, 2, 3, 5, 10, 0.5, 1.5, -0.25, 1.0, 2.0, 1e3, 2**53, 2**53 + 1, 2**63, -(2**64), 10**25, 1e20]
DIVISORS = [1, 2, 3, 5, 0.5, 0.25, 2**40, 10**20]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        # Within a definition a reference stands only below something that takes a part of the value: the
        # other side does not survive schemas that refer to themselves in place.
        self.is_definition, self.below = False, 0

    def value(self, depth=0):
        kind = self.random.randrange(5 if depth > 3 else 8)
        if kind == 0:
            return None
        if kind == 1:
            return self.random.random() < 0.5
        if kind in (2, 3):
            return self.random.choice(NUMBERS)
        if kind == 4:
            return self.random.choice(TEXTS)
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice(NAMES): self.value(depth + 1) for _ in range(self.random.randrange(4))}

    def schema(self, depth=0):
        roll = self.random.random()
        if roll < 0.05:
            return self.random.random() < 0.7
        result = {}
        for _ in range(self.random.randrange(1, 4)):
            self.keyword(result, depth)
        if depth == 0:
            self.is_definition = True
            result["$defs"] = {name: self.schema(depth=2) for name in ("d1", "d2")}
            self.is_definition = False
        return result

    def part(self, depth):
        self.below += 1
        result = self.schema(depth + 1)
        self.below -= 1
        return result

    def some(self, depth):
        return [self.schema(depth + 1) for _ in range(self.random.randrange(1, 4))]

    def keyword(self, result, depth):
        pick = self.random.choice
        simple = [self.types, self.choices, self.texts, self.numbers, self.counts]
        deep = [self.arrays, self.objects, self.combinations, self.reference]
        pick(simple if depth > 3 else simple + deep * 2)(result, depth)

    def types(self, result, depth):
        result["type"] = (self.random.choice(TYPES) if self.random.random() < 0.7
                          else self.random.sample(TYPES, self.random.randrange(1, 4)))

    def choices(self, result, depth):
        if self.random.random() < 0.5:
            result["const"] = self.value(2)
        else:
            result["enum"] = [self.value(2) for _ in range(self.random.randrange(1, 5))]

    def texts(self, result, depth):
        keyword = self.random.choice(["minLength", "maxLength", "pattern", "format"])
        result[keyword] = {"pattern": self.random.choice(PATTERNS), "format": "email"}.get(
            keyword, self.random.randrange(4))

    def numbers(self, result, depth):
        keyword = self.random.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
        result[keyword] = self.random.choice(DIVISORS if keyword == "multipleOf" else NUMBERS)

    def counts(self, result, depth):
        keyword = self.random.choice(["minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems"])
        result[keyword] = self.random.random() < 0.8 if keyword == "uniqueItems" else self.random.randrange(4)

    def arrays(self, result, depth):
        keyword = self.random.choice(["items", "prefixItems", "contains"])
        result[keyword] = [self.part(depth) for _ in range(self.random.randrange(1, 4))] if keyword == "prefixItems" else self.part(depth)
        if keyword == "contains" and self.random.random() < 0.5:
            result[self.random.choice(["minContains", "maxContains"])] = self.random.randrange(3)

    def objects(self, result, depth):
        roll = self.random.randrange(6)
        names = lambda: self.random.sample(NAMES, self.random.randrange(3))  # noqa: E731
        if roll <= 1:
            result["properties"] = {name: self.part(depth) for name in names()}
            if self.random.random() < 0.5:
                result["additionalProperties"] = self.part(depth)
        elif roll == 2:
            result["required"] = names()
        elif roll == 3:
            result["patternProperties"] = {self.random.choice(PATTERNS): self.part(depth)}
        elif roll == 4:
            result["propertyNames"] = self.part(depth)
        else:
            result["dependentRequired"] = {self.random.choice(NAMES): names()}
            result["dependentSchemas"] = {self.random.choice(NAMES): self.schema(depth + 1)}

    def combinations(self, result, depth):
        keyword = self.random.choice(["anyOf", "oneOf", "allOf", "not", "if"])
        if keyword == "if":
            for part in ("if", "then", "else"):
                if self.random.random() < 0.8:
                    result[part] = self.schema(depth + 1)
        else:
            result[keyword] = self.schema(depth + 1) if keyword == "not" else self.some(depth)

    def reference(self, result, depth):
        if not self.is_definition or self.below > 0:
            result["$ref"] = self.random.choice(["#/$defs/d1", "#/$defs/d2"])

    def fitting(self, schema, root, depth=0):
        """A value that tries to fit: half of what it does is by the schema, the rest by chance."""
        if not isinstance(schema, dict) or depth > 6 or self.random.random() < 0.15:
            return self.value(depth)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self.random.choice(schema["enum"])
        if schema.get("$ref", "").startswith("#/$defs/"):
            return self.fitting(root["$defs"].get(schema["$ref"][8:], True), root, depth + 1)
        for keyword in ("anyOf", "oneOf", "allOf"):
            if schema.get(keyword):
                return self.fitting(self.random.choice(schema[keyword]), root, depth + 1)
        kind = schema.get("type", self.random.choice(TYPES) if len(schema) < 2 else None)
        kind = self.random.choice(kind) if isinstance(kind, list) else kind
        if kind == "object" or "properties" in schema or "required" in schema:
            return self.fitting_object(schema, root, depth)
        if kind == "array" or "items" in schema or "prefixItems" in schema:
            return self.fitting_array(schema, root, depth)
        plain = {"null": [None], "boolean": [True, False], "string": TEXTS, "number": NUMBERS,
                 "integer": [n for n in NUMBERS if n == int(n)]}
        return self.random.choice(plain[kind]) if kind in plain else self.value(depth)

    def fitting_object(self, schema, root, depth):
        result = {}
        for name, part in schema.get("properties", {}).items():
            if name in schema.get("required", []) or self.random.random() < 0.7:
                result[name] = self.fitting(part, root, depth + 1)
        for name in schema.get("required", []):
            if self.random.random() < 0.9:
                result.setdefault(name, self.value(depth + 1))
        if self.random.random() < 0.3:
            result.setdefault(self.random.choice(NAMES), self.fitting(schema.get("additionalProperties"), root, depth + 1))
        return result

    def fitting_array(self, schema, root, depth):
        prefix = [self.fitting(part, root, depth + 1) for part in schema.get("prefixItems", [])]
        rest = [self.fitting(schema.get("items"), root, depth + 1) for _ in range(self.random.randrange(3))]
        return prefix + rest
