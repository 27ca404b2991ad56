# SPDX-License-Identifier: Apache-2.0
# The set `pandas`: numpy and pandas beside the modules of `base`.
import numpy
import pandas


def _work():
    import io
    import json

    for _ in range(30):
        frame = pandas.DataFrame({"a": [1, 2, 3], "b": [1.0, None, 3.0], "k": list("xyx")})
        frame.a.sum()
        frame.groupby("k").b.agg(["sum", "mean"]).reset_index().to_dict("records")
        frame.groupby("k").b.mean().to_dict()
        frame.merge(frame, on="k")
        frame.describe()
        frame.sort_values("a")[frame.a > 1]
        frame.fillna(0).to_json()
        str(frame)
        frame.assign(c=frame.a * 2).to_dict("records")
        frame.apply(lambda row: row.a, axis=1)
        pandas.DataFrame(json.loads('[{"k":"x","v":1},{"k":"y","v":2.5}]')).pivot_table(index="k", values="v")
        pandas.to_datetime(["2024-01-02"])
        pandas.Series([1, 2, 3]).rolling(2).mean().tolist()
        pandas.read_csv(io.StringIO("a,b\n1,2\n")).to_csv()
        numpy.arange(6.0).reshape(2, 3).mean(axis=0).tolist()
        numpy.linalg.inv(numpy.eye(2)) @ numpy.ones(2)
        exec(compile("import pandas as pd\npd.DataFrame({'a':[1,2]}).a.sum()", "script", "exec"), {})


_work()
del _work
