# SPDX-License-Identifier: Apache-2.0
"""What a node gives, as JSON: models and chat messages become their members, tuples become lists, and all else that
is no JSON is an error that names its place."""

import math
from collections.abc import Mapping

MAX_DEPTH = 600
MAX_BITS = 14_284  # of every integer of 4300 digits at most


class NotJson(ValueError):
    """Says where in a value something is that JSON cannot hold."""


def _text(value: str, path: str) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson(f"{path}: the text has a lone surrogate") from None
    return text


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise NotJson(f"{path}: the key {key!r} is no text")
    return _text(key, path)


def to_json(value: object) -> object:
    try:
        return _form(value, "$", 0)
    except RecursionError:
        raise NotJson("$: nested too deeply for the interpreter") from None


def _form(value: object, path: str, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise NotJson(f"{path}: nested more deeply than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise NotJson(f"{path}: the integer has more than 4300 digits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"{path}: the number {value} is not finite")
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_form(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, path): _form(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _form(dump(), path, depth + 1)
    raise NotJson(f"{path}: a {type(value).__name__} has no JSON form")
