# SPDX-License-Identifier: Apache-2.0
"""The guard: what is refused and how it says so, what stays importable, and the corpus of attacks.

Each test runs in an interpreter of its own, since the guard is installed once and for good. A library
that is not installed is skipped by name.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
RUNTIMES = HERE.parent.parent / "runtimes" / "python"
CORPUS = pathlib.Path(os.environ.get("CAISSON_CORPORA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpora"))
sys.path.insert(0, str(RUNTIMES))

from make_policy import make_policy  # noqa: E402

PROGRAM = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
job = json.loads(sys.stdin.read())
for name in job["before"]:
    __import__(name)
from in_memory import run
import caisson_guard
from caisson_serializer import dumps as text_of  # the script may replace the names that it knows
caisson_guard.install(job["policy"])
channel = run(job["source"], documents=job["documents"])
sys.__stdout__.write("\\n" + text_of({"results": channel.results, "error": channel.error, "kinds": channel.kinds}))
"""


def guarded(source, runtime="native", before=(), documents=(), timeout=300, **policy):
    """What the script in `source` delivered, run under the guard; `before`: modules imported before it."""
    job = {"source": source, "before": list(before), "documents": list(documents), "policy": {**make_policy(runtime), **policy}}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(RUNTIMES), str(HERE)], input=json.dumps(job), capture_output=True, text=True, timeout=timeout,
        env={**os.environ, "HOST_CANARY_SECRET": "canary", "AWS_SECRET_ACCESS_KEY": "canary"},
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout.rpartition("\n")[2])


def settled(source, **options):
    found = guarded(source, **options)
    assert found["error"] is None, found["error"]
    return found["results"][0][0]


# Runs each expression and delivers "ok", or the type and the text of its exception.
EACH = """
import json
out = {}
for text in json.loads(documents[0]):
    try:
        exec(text, {"__name__": "script"} if "globals" in text else globals())
        out[text] = "ok"
    except BaseException as error:
        out[text] = type(error).__name__ + ": " + str(error)
done(out)
"""


def each(*texts, **options):
    return settled(EACH, documents=[json.dumps(texts)], **options)


class Functions(unittest.TestCase):
    PROCESSES = (
        "import os; os.system('true')", "import os; os.popen('true')", "import os; os.fork()", "import os; os.forkpty()", "import os; os.execv('/bin/true', ['true'])",
        "import os; os.execvp('true', ['true'])", "import os; os.execl('/bin/true', 'true')", "import os; os.spawnl(os.P_WAIT, '/bin/true', 'true')", "import os; os.spawnvp(0, 'true', ['true'])",
        "import os; os.posix_spawn('/bin/true', ['true'], {})", "import posix; posix.fork()", "import posix; posix.system('true')", "import posix; posix.execv('/bin/true', ['true'])",
        "import subprocess; subprocess.run(['true'])", "import subprocess; subprocess.call(['true'])", "import subprocess; subprocess.check_call(['true'])",
        "import subprocess; subprocess.check_output(['true'])", "import subprocess; subprocess.Popen(['true'])", "import subprocess; subprocess.getoutput('true')",
        "import subprocess\nclass P(subprocess.Popen): pass\nP(['true'])", "import pty; pty.spawn('true')", "from os import system; system('true')",
        "import os; os._wrap_close.__init__.__globals__['system']('true')", "from subprocess import Popen; Popen('true', shell=True)",
    )
    NETWORK = (
        "import socket; socket.socket()", "import socket; socket.socket(socket.AF_UNIX)", "import socket; socket.socketpair()", "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.getaddrinfo('localhost', 80)", "import socket; socket.gethostbyname('localhost')", "import socket; socket.gethostbyaddr('127.0.0.1')",
        "import socket; socket.getnameinfo(('127.0.0.1', 80), 0)", "import socket; socket.getfqdn('x')", "import _socket; _socket.socket()", "import _socket; _socket.getaddrinfo('localhost', 80)",
        "from socket import socket; socket()", "import socket; socket.fromfd(0, 1, 1)", "import socket; socket.create_server(('', 0))",
    )

    def check(self, texts, policy, before=()):
        for text, found in each(*texts, before=before).items():
            with self.subTest(text, before=before):
                self.assertTrue(found.startswith("PermissionError: "), found)
                self.assertIn(f"(policy: {policy})", found)

    def test_that_start_processes_are_refused(self):
        self.check(self.PROCESSES, "processes")

    def test_that_start_processes_are_refused_where_their_modules_were_loaded_before(self):
        self.check(self.PROCESSES, "processes", before=("subprocess", "socket", "pty"))

    def test_that_open_sockets_or_resolve_names_are_refused(self):
        self.check(self.NETWORK, "network")

    def test_that_open_sockets_are_refused_where_the_module_was_loaded_before(self):
        self.check(self.NETWORK, "network", before=("socket", "ssl", "asyncio"))

    def test_stay_where_they_do_no_harm(self):
        found = each("import os; os.getpid()", "import os; os.listdir('/')", "import socket; socket.AF_INET", "import socket; socket.inet_aton('1.2.3.4')", "import subprocess; subprocess.PIPE", "import ssl", "import asyncio", "import multiprocessing", "import urllib.request", "import http.server", "import concurrent.futures", "import tempfile; tempfile.TemporaryFile().close()")
        self.assertEqual(set(found.values()), {"ok"}, found)

    def test_are_granted_where_the_policy_says_so(self):
        found = each("import subprocess; assert subprocess.run(['true']).returncode == 0", "import os; assert os.system('true') == 0", "import socket; socket.socket()", processes=True)
        self.assertEqual([value[:15] for value in found.values()], ["ok", "ok", "PermissionError"])

    def test_of_asyncio_work_without_sockets(self):
        source = (
            "import asyncio, time\n"
            "async def slow(n):\n    await asyncio.sleep(n)\n    return n\n"
            "async def main():\n"
            "    first = await asyncio.gather(slow(0.02), slow(0.01), asyncio.to_thread(time.sleep, 0.01))\n"
            "    try:\n        await asyncio.wait_for(slow(9), 0.01)\n    except TimeoutError:\n        first.append('late')\n"
            "    try:\n        await asyncio.open_connection('127.0.0.1', 9)\n    except PermissionError as e:\n        first.append(str(e)[-17:])\n"
            "    return first\n"
        )
        for last in ("done(asyncio.run(main()))", "done(await main())"):
            for before in ((), ("asyncio",)):
                with self.subTest(last, before=before):
                    self.assertEqual(settled(source + last, before=before), [0.02, 0.01, None, "late", "(policy: network)"])

    def test_reload_is_refused(self):
        found = each("import importlib, os; importlib.reload(os)", "from importlib import reload; import json; reload(json)")
        for text, value in found.items():
            self.assertIn("PermissionError: importlib.reload is refused", value, text)


class Environment(unittest.TestCase):
    def test_holds_four_names(self):
        source = "import os\ntry:\n    import posix\n    low = sorted(k.decode() for k in posix.environ)\nexcept ImportError:\n    low = None\ndone([sorted(os.environ), low, os.environ['HOME']])"
        names = ["HOME", "LANG", "PATH", "TMPDIR"]
        self.assertEqual(settled(source), [names, names, "/tmp"])

    def test_has_the_values_of_the_policy_and_no_more(self):
        self.assertEqual(settled("import os\ndone(dict(os.environ))", environment={"HOME": "/home/x", "SECRET": "y"}), {"HOME": "/home/x", "PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "LANG": "C.UTF-8"})

    def test_is_reduced_for_c_code_too(self):
        # processes are granted so that a child can show the environment that it would inherit
        found = settled("import subprocess\ndone(subprocess.run(['env'], capture_output=True, text=True).stdout.split())", processes=True)
        self.assertNotIn("canary", str(found))


class Imports(unittest.TestCase):
    def test_of_doors_to_the_host_are_refused(self):
        names = ("js", "pyodide", "pyodide_js", "pyodide.http", "cffi", "_cffi_backend", "_posixsubprocess", "ctypes", "_ctypes", "ctypes.util", "sqlite3", "_sqlite3")
        ways = ("import {0}", "__import__('{0}')", "import importlib; importlib.import_module('{0}')", "import importlib.util; importlib.util.find_spec('{0}')", "from {0} import x", "import importlib; importlib.__import__('{0}')", "import pickle; pickle.loads(b'c{0}\\nx\\n.')")
        texts = [way.format(name) for name in names for way in ways]
        for before in ((), ("subprocess", "ctypes", "sqlite3")):
            for text, found in each(*texts, before=before).items():
                with self.subTest(text, before=before):
                    if "find_spec" in text and before and text.split("'")[1] in ("ctypes", "_ctypes", "sqlite3", "_sqlite3", "_posixsubprocess"):
                        continue  # what is loaded is found without asking; importing it is refused
                    self.assertIn("(policy: imports)", found)
                    self.assertTrue(found.startswith("ImportRefused: "), found)

    def test_that_are_refused_can_be_caught_as_import_errors(self):
        self.assertEqual(settled("try:\n    import rasterio\nexcept ImportError as e:\n    done([e.name, isinstance(e, ModuleNotFoundError)])", runtime="cpython"), ["rasterio", True])

    def test_outside_the_list_are_refused_by_name(self):
        found = each(*(f"import {name}" for name in ("duckdb", "sqlalchemy", "bokeh", "altair", "cartopy", "seaborn", "sqlite3", "requests", "torch", "joblib", "PIL", "yaml", "caisson_block", "pip")))
        for text, value in found.items():
            with self.subTest(text):
                self.assertTrue(value.startswith("ImportRefused: import of "), value)
        self.assertIn("databases are not part of a block", found["import duckdb"])
        self.assertIn("numpy, pandas", found["import torch"].replace("networkx, numpy", "numpy"))

    def test_of_what_the_runtime_lacks_name_one_that_has_it(self):
        found = each("import geopandas", "import rasterio.features", "from astropy import units", runtime="cpython")
        for text, value in found.items():
            with self.subTest(text):
                self.assertIn("the runtime cpython lacks it", value)
                self.assertIn("the runtime native or oci has it", value)

    def test_of_the_standard_library_go_on(self):
        names = "calendar datetime collections math copy statistics fractions decimal json re itertools functools dataclasses enum typing uuid random hashlib base64 csv io textwrap heapq bisect string threading time zoneinfo xml.etree.ElementTree unittest logging inspect traceback pickle gzip zlib struct array contextlib operator abc types warnings weakref pathlib tempfile platform locale"
        found = each(*(f"import {name}" for name in names.split()))
        self.assertEqual({text: value for text, value in found.items() if value != "ok"}, {})

    def test_relative_ones_fail_as_ever(self):
        self.assertTrue(each("from . import x")["from . import x"].startswith("ImportError: attempted relative import"))

    def test_of_a_module_that_does_not_exist_name_it(self):
        self.assertIn("'no_such_thing'", each("import no_such_thing")["import no_such_thing"])

    def test_are_refused_when_the_finder_is_gone(self):
        source = "import sys, importlib\nsys.meta_path[:] = sys.meta_path[1:]\nout = []\nfor n in ('ctypes', '_posixsubprocess', 'sqlite3'):\n    try:\n        importlib.import_module(n); out.append(n)\n    except ImportError:\n        pass\ndone(out)"
        self.assertEqual(settled(source), [])

    def test_are_judged_by_whose_globals_they_come_from(self):
        found = each("exec('import ctypes', {'__name__': 'numpy'})", "exec('import ctypes', {'__name__': 'subprocess'})", "import types, sys; m = types.ModuleType('evil'); sys.modules['evil'] = m; exec('import ctypes', m.__dict__)")
        for text, value in found.items():
            self.assertTrue(value.startswith("ImportRefused"), (text, value))

    def test_the_guard_is_installed_once(self):
        self.assertIn("RuntimeError", each("import sys; sys.modules['caisson_guard'].install({})")["import sys; sys.modules['caisson_guard'].install({})"])


class Libraries(unittest.TestCase):
    """A use of each, under the guard, nothing imported before."""

    USES = {
        "numpy": "import numpy as np\nimport numpy.ctypeslib\ndone(float(np.linalg.inv(np.eye(2) * 2)[0, 0]))",
        "pandas": "import pandas as pd\ndf = pd.DataFrame({'t': pd.to_datetime(['2024-01-01', '2024-02-01'], utc=True), 'v': [1.0, 2.0]})\ndone(float(df.set_index('t')['v'].resample('MS').sum().sum()))",
        "scipy": "import scipy.optimize, scipy.stats, scipy.interpolate, scipy.integrate, scipy.sparse.linalg, scipy.signal, scipy.spatial\ndone(float(scipy.optimize.brentq(lambda x: x - 1, 0, 3)))",
        "sympy": "import sympy as sp\nx = sp.Symbol('x')\ndone(sp.integrate(x, x))",
        "sklearn": "import sklearn.ensemble, sklearn.cluster\nm = sklearn.ensemble.RandomForestRegressor(n_estimators=3, random_state=0, n_jobs=2).fit([[0], [1], [2]], [0, 1, 2])\nk = sklearn.cluster.KMeans(2, n_init=1, random_state=0).fit([[0.0], [1.0], [9.0]])\ndone([len(m.predict([[1]])), len(k.labels_)])",
        "matplotlib": "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt, io\nplt.plot([1, 2])\nb = io.BytesIO()\nplt.savefig(b)\ndone(b.getvalue()[1:4])",
        "networkx": "import networkx as nx\ndone(nx.pagerank(nx.path_graph(3))[1] > 0.3)",
        "xarray": "import xarray as xr\ndone(float(xr.DataArray([1.0, 2.0]).mean()))",
        "statsmodels": "import statsmodels.api as sm, statsmodels.formula.api as smf, pandas as pd\ndone(round(float(smf.ols('y ~ x', pd.DataFrame({'x': [1, 2, 3], 'y': [2, 4, 6.5]})).fit().params['x']), 3))",
        "pint": "import pint\ndone(pint.UnitRegistry().Quantity(1, 'km').to('m').magnitude)",
        "cftime": "import cftime\ndone(cftime.num2date(1, 'days since 2000-01-01', calendar='noleap'))",
        "astropy": "from astropy import units as u\nfrom astropy.time import Time\ndone((1 * u.km).to(u.m).value)",
        "shapely": "from shapely.geometry import Point\ndone(round(Point(0, 0).buffer(1).area, 1))",
        "geopandas": "import geopandas as gpd\nfrom shapely.geometry import Point\ndone(gpd.GeoSeries([Point(0, 0)], crs=4326).to_crs(3857).iloc[0].x)",
        "dateutil": "from dateutil import parser\ndone(parser.parse('2024-01-02'))",
        "six": "import six\ndone(six.PY3)",
        "rasterio": "import rasterio.features\nfrom shapely.geometry import box\ndone(int(rasterio.features.rasterize([box(0, 0, 2, 2)], out_shape=(4, 4)).sum()))",
        "rioxarray": "import rioxarray, xarray as xr\ndone(xr.DataArray([[1.0]], dims=('y', 'x')).rio.write_crs(4326).rio.crs.to_epsg())",
    }


def use(library):
    def test(self):
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"{library} is not installed")
        found = guarded(self.USES[library])
        self.assertIsNone(found["error"], found["error"])
        self.assertEqual(found["kinds"].count("done"), 1)

    return test


for name in Libraries.USES:
    setattr(Libraries, f"test_{name}", use(name))


class Loaded(unittest.TestCase):
    def test_before_the_guard_a_library_still_works_and_ctypes_stays_refused(self):
        if importlib.util.find_spec("sklearn") is None:
            self.skipTest("sklearn is not installed")
        found = guarded("import sklearn.linear_model as m\nr = m.LinearRegression().fit([[1], [2]], [2, 4])\nok = 'ctypes' in __import__('sys').modules\ntry:\n    import ctypes\nexcept ImportError:\n    done([ok, round(r.coef_[0], 6)])", before=("sklearn.linear_model", "pandas"))
        self.assertIsNone(found["error"])
        self.assertEqual(found["results"][0][0], [True, 2.0])


class Attacks(unittest.TestCase):
    """Those attacks of the corpus that the guard alone is to answer, and those on the protocol; what
    needs a wall (files, memory, signals) is tested where the wall is."""

    GUARD = (
        "ct_cffi_dlopen ct_syscall_batch env_c_level_getenv net_listen_and_serve net_raw_socket_module net_udp_loopback "
        "proc_posixsubprocess_direct proc_subprocess_run intro_importlib_tricks proc_child_double_done"
    ).split()
    FORGERY = "intro_builtins_tamper proto_forge_done_stdout proto_line_injection_in_value proto_rebind_helpers proc_child_double_done".split()

    def script(self, name):
        path = CORPUS / "attacks" / f"{name}.py"
        if not path.is_file():
            self.skipTest(f"no corpus in {CORPUS}")
        return path.read_text()

    def test_by_import_network_and_process_have_no_effect(self):
        for name in self.GUARD:
            with self.subTest(name):
                found = guarded(self.script(name), documents=[{"canary_port": 9, "armed": False}])
                self.assertIsNone(found["error"])
                result = found["results"][0][0]
                self.assertFalse(result.get("escaped"), result)

    def test_on_the_protocol_forge_nothing(self):
        for name in self.FORGERY:
            with self.subTest(name):
                found = guarded(self.script(name))
                self.assertIsNone(found["error"])
                self.assertEqual([value["real"] for value, _ in found["results"]], [True])

    def test_with_frames_find_no_way_to_speak_as_the_host(self):
        found = guarded(self.script("intro_frames_and_tracebacks"))
        # It may call its own done by another way; an error or an end it cannot make.
        self.assertEqual(found["kinds"].count("end"), 1)

    def test_with_hostile_values_give_valid_json(self):
        found = guarded(self.script("proto_hostile_str_and_dict"))
        self.assertEqual(found["results"][0][0], {"__proto__": {"forged_proto": True}, "constructor": 1, "s": "a", "n": 3, "f": 2.5, "d": {"a": 1}, "k": 1})

    def test_by_exit_and_recursion_are_survived(self):
        source = self.script("res_deep_recursion").replace("sys.setrecursionlimit(10 ** 8)", "sys.setrecursionlimit(5000)")
        self.assertEqual(guarded(source)["results"][0][0]["error"], "RecursionError")


if __name__ == "__main__":
    unittest.main()
