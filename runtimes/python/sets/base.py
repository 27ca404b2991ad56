# SPDX-License-Identifier: Apache-2.0
# The set `base`: the standard library's modules that scripts use most.
import base64, bisect, calendar, collections, contextlib, copy, csv, dataclasses, datetime, decimal
import enum, fractions, functools, hashlib, heapq, io, itertools, json, math, operator, random, re
import statistics, string, textwrap, time, traceback, typing, uuid, zoneinfo


def _work():
    for _ in range(30):
        text = json.dumps({"a": [1, 2.5, None, "x"], "b": {"c": True}})
        json.loads(text)
        re.sub(r"(\w+)", lambda found: found.group(1).upper(), text)
        sum(decimal.Decimal(n) / 3 for n in range(5))
        datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc).isoformat()
        datetime.datetime.fromisoformat("2024-01-02T03:04:05+00:00")
        collections.Counter(text).most_common(2)
        statistics.mean([1, 2, 3.5])
        sorted(text, key=str.lower)
    try:
        exec(compile("def f():\n    return 1 / 0\nf()", "script", "exec"), {})
    except ZeroDivisionError:
        traceback.format_exc()


_work()
del _work
