# SPDX-License-Identifier: Apache-2.0
"""Langflow's values as JSON and back. Both sides have it; neither makes anything of what comes in but these few types.

A dict with the key `$` stands for a value that JSON has no form for. What has no form here either (a model, a tool, a
connection) is told by its type's name and stays where it is.
"""

import base64
import datetime
import decimal
import enum
import math
import pathlib
import uuid

MOST_DEEP = 64


class Depth(ValueError):
    """Nested deeper than MOST_DEEP."""


def _tag(kind, value):
    return {"$": kind, "value": value}


def is_stream(value):
    return hasattr(value, "__next__") or hasattr(value, "__anext__")


def encode(value, deep=0):
    """JSON of it. A stream that nobody has read is an empty text."""
    if deep > MOST_DEEP:
        raise Depth("a value is nested too deeply")
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return encode(value.value, deep + 1)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _tag("float", str(float(value)))
    if isinstance(value, (bytes, bytearray)):
        return _tag("bytes", base64.b64encode(bytes(value)).decode())
    if isinstance(value, (uuid.UUID, pathlib.PurePath, decimal.Decimal)):
        return str(value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, dict):
        plain = {str(key): encode(one, deep + 1) for key, one in value.items()}
        return _tag("dict", plain) if "$" in plain else plain
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(one, deep + 1) for one in value]
    return _encode_object(value, deep)


def _encode_object(value, deep):
    from lfx.schema.data import Data
    from lfx.schema.dataframe import DataFrame
    from lfx.schema.message import Message

    if isinstance(value, Message):
        fields = {name: getattr(value, name) for name in type(value).model_fields if name not in ("data", "text")}
        text = value.text
        # What came with it beside the fields, as a model's own numbers.
        data = {key: one for key, one in value.data.items() if key != value.text_key and key not in fields}
        return _tag("message", {"fields": encode(fields, deep + 1), "text": "" if is_stream(text) else str(text or ""),
                                "data": encode(data, deep + 1)})
    if isinstance(value, Data):
        return _tag("data", {"data": encode(value.data, deep + 1), "text_key": value.text_key,
                             "default_value": encode(value.default_value, deep + 1)})
    if isinstance(value, DataFrame):
        return _tag("table", {"columns": [str(name) for name in value.columns],
                              "rows": [[encode(cell, deep + 1) for cell in row] for row in value.itertuples(index=False)],
                              "text_key": value.text_key, "default_value": value.default_value})
    if is_stream(value):
        return ""
    if hasattr(value, "item") and type(value).__module__.startswith("numpy") and getattr(value, "ndim", 0) == 0:
        return encode(value.item(), deep + 1)
    if hasattr(value, "model_dump"):
        return encode(value.model_dump(mode="python"), deep + 1)
    return _tag("opaque", f"{type(value).__module__}.{type(value).__name__}")


LONG = 1024


def share(value, texts):
    """What encode() made, each long text of it once: in `texts`, {text: number}. A vertex's result has its text in many places."""
    if isinstance(value, str):
        return value if len(value) < LONG else {"$": "text", "value": texts.setdefault(value, len(texts))}
    if isinstance(value, dict):
        return {key: share(one, texts) for key, one in value.items()}
    return [share(one, texts) for one in value] if isinstance(value, list) else value


def unshare(value, texts, spend):
    """`texts` is the list of them, and spend(length) is called for each place of each, since all of them cost as much as if they
    had come once each wherever the value is written down. Raises ValueError, TypeError, KeyError for what share() cannot have made."""
    if isinstance(value, dict):
        if value.get("$") == "text":
            number = value["value"]
            if type(number) is not int or not 0 <= number < len(texts) or not isinstance(texts[number], str):
                raise ValueError("no such text")
            spend(len(texts[number]))
            return texts[number]
        return {key: unshare(one, texts, spend) for key, one in value.items()}
    return [unshare(one, texts, spend) for one in value] if isinstance(value, list) else value


def decode(value, deep=0):
    """Raises ValueError for what encode() cannot have made."""
    if deep > 3 * MOST_DEEP:
        raise Depth("a value is nested too deeply")
    if isinstance(value, list):
        return [decode(one, deep + 1) for one in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: decode(one, deep + 1) for key, one in value.items()}
    kind, inner = value.get("$"), value.get("value")
    try:
        return _decode_tagged(kind, inner, deep)
    except Depth:
        raise
    except Exception as why:
        raise ValueError(f"a value of kind {str(kind)[:40]!r} is not well formed ({type(why).__name__})") from None


def _file(told):
    """What a message has for a file. A message that is made with it would open it, and it is a guest's name of a file of this host."""
    from lfx.schema.image import Image
    return str(told) if isinstance(told, str) else Image(path=told["path"], url=told["url"])


def _decode_tagged(kind, inner, deep):
    if kind == "float":
        return float(inner)
    if kind == "bytes":
        return base64.b64decode(inner, validate=True)
    if kind == "dict":
        return {key: decode(one, deep + 1) for key, one in inner.items()}
    if kind == "opaque":
        return f"<{inner}, which stays in the guest>"
    if kind == "message":
        from lfx.schema.message import Message
        fields = {name: one for name, one in decode(inner["fields"], deep + 1).items()
                  if name in Message.model_fields and name not in ("data", "text")}
        files = [_file(one) for one in fields.pop("files", None) or []]
        made = Message(**fields, text=str(inner["text"]))
        made.files = made.data["files"] = files
        # An id is that of a row in a store that this side does not have, or has with another's row under it.
        made.data.update({name: one for name, one in decode(inner["data"], deep + 1).items() if name != "id"})
        return made
    if kind == "data":
        from lfx.schema.data import Data
        return Data(data=decode(inner["data"], deep + 1), text_key=str(inner["text_key"]),
                    default_value=decode(inner["default_value"], deep + 1))
    if kind == "table":
        import pandas
        from lfx.schema.dataframe import DataFrame
        columns, rows = inner["columns"], inner["rows"]
        if not isinstance(columns, list) or not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
            raise ValueError("rows of other lengths, which pandas would fill up")
        rows = [[decode(cell, deep + 1) for cell in row] for row in rows]
        return DataFrame(pandas.DataFrame(rows, columns=[str(name) for name in columns]), text_key=str(inner["text_key"]),
                         default_value=str(inner["default_value"]))
    raise ValueError("unknown")
