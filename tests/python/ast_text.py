# SPDX-License-Identifier: Apache-2.0
"""The text form of a CPython `ast` tree; src/python/ast_dump.h describes and writes the same."""

import ast
import struct

_IGNORED = {"type_comment", "type_ignores"}
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def _classes():
    pending = [ast.AST]
    for cls in pending:
        pending.extend(cls.__subclasses__())
        yield cls


def _describe(cls):
    fields = tuple(name for name in cls._fields if name not in _IGNORED)
    positioned = all(name in cls._attributes for name in _POSITION)
    is_word = not fields and not positioned
    return cls.__name__, fields, positioned, is_word


_CLASSES = {cls: _describe(cls) for cls in _classes()}
_WORDS = {cls for cls, description in _CLASSES.items() if description[3]}  # Load, Add, ...


def _constant(value):
    kind = type(value)
    if kind is str:
        return "s" + value.encode("utf-8", "surrogatepass").hex()
    if kind is int:
        return "i" + format(value, "x")
    if kind is float:
        return "f" + struct.pack(">d", value).hex()
    if kind is bytes:
        return "b" + value.hex()
    if kind is complex:
        return "j" + struct.pack(">d", value.imag).hex()
    return "..." if value is ... else repr(value)


def _list(values, children):
    if values and type(values[0]) is str:
        return " ".join([f"[{len(values)}"] + ["'" + name for name in values])
    if values and values[0].__class__ in _WORDS:
        return " ".join([f"[{len(values)}"] + [value.__class__.__name__ for value in values])
    if None in values:
        children.extend(value for value in values if value is not None)
        return f"[{len(values)}:" + "".join("0" if value is None else "1" for value in values)
    children.extend(values)
    return f"[{len(values)}"


def _field(value, children):
    if value is None:
        return "~"
    kind = value.__class__
    if kind is list:
        return _list(value, children)
    if kind is str:
        return "'" + value
    if kind is int:
        return f"#{value}"
    if kind in _WORDS:
        return kind.__name__
    children.append(value)
    return "1"


def dump(tree, positions=True):
    out = []
    pending = [tree]
    while pending:
        node = pending.pop()
        name, fields, positioned, _ = _CLASSES[node.__class__]
        if positioned and positions:
            name = (
                f"{name}@{node.lineno}:{node.col_offset}-{node.end_lineno}:{node.end_col_offset}"
            )
        children = []
        words = [name]
        is_constant = node.__class__ is ast.Constant or node.__class__ is ast.MatchSingleton
        for field in fields:
            value = getattr(node, field, None)
            if is_constant and field == "value":
                words.append(_constant(value))
            else:
                words.append(_field(value, children))
        out.append(" ".join(words))
        children.reverse()
        pending.extend(children)
    out.append("")
    return "\n".join(out)
