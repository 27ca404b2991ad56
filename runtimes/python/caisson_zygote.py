# SPDX-License-Identifier: Apache-2.0
"""The program of a zygote: an interpreter of the root file system that imports a set of libraries
and then forks one call after another.

It runs trusted code only. `caisson_call.so` (src/isolate/native/guest) takes over once the imports
are done and returns in a call's process alone, walled in; from there on the harness runs the script
with a channel of its own (caisson_run.py).
"""

import ctypes
import sys

HOME = "/run/caisson"
sys.path.insert(0, HOME)

import caisson_memory  # noqa: E402

library = ctypes.PyDLL(f"{HOME}/caisson_call.so")
caisson_memory.gather(library)

import gc  # noqa: E402
import importlib  # noqa: E402
import importlib.metadata  # noqa: E402
import json  # noqa: E402
import marshal  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import threading  # noqa: E402, F401 (scripts find it imported)
import time  # noqa: E402

import caisson_block  # noqa: E402, F401 (calls run without imports)
import caisson_body  # noqa: E402, F401
from caisson_run import BLOCK, Channel, clean_environment, guard, read_job, ready_streams, reseed, run  # noqa: E402

REHEARSAL = b"debug({'n': len(documents)})\ndone([d for d in documents])\n"
NO_INPUTS = marshal.dumps({"user": {}, "documents": [{"a": 1}], "artifacts": [], "sources": [], "tables": {}}, 3)

# Work of the usual kind, done once before any fork, so that what libraries load and set up at their
# first use is there already. A failure here is none of the library's.
WARM_UP = {
    "numpy": "import numpy as np; str(np.arange(6.0).reshape(2, 3).sum(axis=0)); np.random.random(2)",
    "pandas": (
        "import pandas as pd; f = pd.DataFrame({'a': [1, 2, 3], 'b': [1.5, 2.5, None], 'c': ['x', 'y', 'x']});"
        "f.groupby('c').a.sum(); f.describe(); f.to_dict('records'); f.merge(f, on='a'); str(f);"
        "f.pivot_table(index='c', values='b'); pd.to_datetime(['2024-01-02']); f.sort_values('b').b.mean()"
    ),
    "scipy": (
        "import scipy.integrate, scipy.interpolate, scipy.linalg, scipy.optimize, scipy.signal, scipy.spatial, scipy.stats;"
        "scipy.stats.ttest_ind([1.0, 2.0, 3.0], [2.0, 3.0, 5.0])"
    ),
    # What these load only when it is asked for takes longer than most scripts do.
    "statsmodels": "import statsmodels.api, statsmodels.formula.api",
    "sklearn": (
        "import sklearn.cluster, sklearn.ensemble, sklearn.linear_model, sklearn.metrics, sklearn.model_selection,"
        "sklearn.neighbors, sklearn.pipeline, sklearn.preprocessing, sklearn.svm, sklearn.tree;"
        "sklearn.linear_model.LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0])"
    ),
    "pint": "import pint; pint.UnitRegistry().Quantity('3 kg').to('g')",
    "astropy": "import astropy.constants, astropy.coordinates, astropy.time, astropy.units",
    "matplotlib": (
        "import io; import matplotlib.pyplot as plt; plt.figure(); plt.plot([1, 2]); plt.title('a');"
        "plt.savefig(io.BytesIO()); plt.close('all')"
    ),
}


# What nearly every script with the library does; kept small, since each call holds the memory that
# these write to as its own.
REHEARSALS = {
    "numpy": "import numpy as np; np.arange(6.0).sum()",
    "pandas": "import pandas as pd; pd.DataFrame({'a': [1, 2], 'b': [1.5, 2.5]}).sum()",
}


class ServeOptions(ctypes.Structure):
    """ServeOptions of src/isolate/native/wire.h."""

    _fields_ = [
        ("filter", ctypes.c_void_p),
        ("filter_length", ctypes.c_uint32),
        ("leave_out", ctypes.c_uint32),
        ("control", ctypes.c_int32),
        ("may_execute", ctypes.c_uint32),
        ("written", ctypes.c_void_p),
        ("written_count", ctypes.c_uint32),
    ]


def end_if_abandoned(control):
    """The supervisor is the other end; without it there is nobody to serve."""
    poll = select.poll()
    poll.register(control, 0)  # a hang-up is always told
    if poll.poll(0):
        os._exit(1)


def import_set(names, warm_up, control):
    """Imports each; gives versions and errors, and never fails as a whole."""
    versions, failed = {}, {}
    for name in names:
        end_if_abandoned(control)
        try:
            module = importlib.import_module(name)
            version = getattr(module, "__version__", None)
            versions[name] = version if isinstance(version, str) else ""
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:500]
    for name in versions if warm_up else ():
        try:
            exec(WARM_UP.get(name, ""), {})
        except Exception as error:
            print(f"warm-up of {name}: {type(error).__name__}: {error}", file=sys.stderr)
    return versions, failed


def threads():
    return len(os.listdir("/proc/self/task"))


def prepare(configuration):
    begin = time.monotonic()
    versions, failed = import_set(configuration["imports"], configuration["warm_up"], configuration["control"])
    if threads() != 1:
        # A fork would have its locks and not the threads that hold them.
        raise SystemExit("a library started threads while it was imported; a zygote cannot fork then")
    report = {
        "python": sys.version.split()[0],
        "libraries": versions,
        "failed": failed,
        "import_ms": int((time.monotonic() - begin) * 1000),
    }
    return json.dumps(report).encode()


class Silent:
    """A channel to nowhere."""

    def send(self, kind, text, final=True):
        pass


def serve(configuration, call_filter, ready, rehearsal):
    """Returns in a call's process only, once there is a script for it."""
    serve_calls, enter = library.caisson_serve, library.caisson_enter
    api = ctypes.pythonapi
    ready_streams()
    clean_environment()
    gc.collect()
    gc.freeze()
    # What a fork's child must set right is set right here, once, as it has no threads either: each
    # call is a copy of this very moment.
    api.PyOS_BeforeFork()
    api.PyOS_AfterFork_Child()
    written = caisson_memory.rehearse(library, rehearsal)
    options = ctypes.byref(
        ServeOptions(
            ctypes.cast(ctypes.c_char_p(call_filter), ctypes.c_void_p),
            len(call_filter) // 8,
            configuration["leave_out"],
            configuration["control"],
            configuration["may_execute"],
            ctypes.addressof(written),
            len(written) // 2,
        )
    )
    caisson_memory.use_huge_pages(library)
    try:
        os.write(configuration["control"], ready)
    except OSError:  # whoever started us is gone
        os._exit(1)
    if serve_calls(options) != 0:
        os._exit(1)
    reseed()
    enter(options)


def main():
    with open(f"{HOME}/zygote.json", "rb") as file:
        configuration = json.load(file)
    with open(f"{HOME}/call.bpf", "rb") as file:
        call_filter = file.read()
    ready = prepare(configuration)
    guard(configuration["policy"])

    def rehearsal():
        reseed()
        run((BLOCK, REHEARSAL, NO_INPUTS, b"{}"), Silent())
        for name in configuration["imports"]:
            exec(REHEARSALS.get(name, ""), {})

    serve(configuration, call_filter, ready, rehearsal)

    with open(configuration["job"], "rb") as file:
        job = read_job(file)
    run(job, Channel(configuration["channel"]))
    # The report was the last word; the supervisor ends the process.
    os._exit(0)


if __name__ == "__main__":
    main()
