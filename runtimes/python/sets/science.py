# SPDX-License-Identifier: Apache-2.0
# The set `science`: what the list of libraries has beside pandas and this artifact can run.
import dateutil.parser
import networkx
import pint
import scipy.optimize
import scipy.stats
import six
import sklearn.cluster
import sklearn.ensemble
import sklearn.linear_model
import statsmodels.api
import sympy
import xarray


def _work():
    import numpy

    x = numpy.arange(12.0).reshape(6, 2)
    y = x @ [1.0, 2.0] + 0.5
    sklearn.linear_model.LinearRegression().fit(x, y).predict(x)
    scipy.stats.ttest_ind([1.0, 2.0, 3.0], [2.0, 3.0, 5.0])
    scipy.optimize.minimize(lambda v: (v[0] - 1) ** 2, [0.0])
    statsmodels.api.OLS(y, statsmodels.api.add_constant(x)).fit().params.tolist()
    graph = networkx.path_graph(4)
    networkx.shortest_path(graph, 0, 3)
    networkx.node_link_data(graph)
    symbol = sympy.Symbol("x")
    str(sympy.solve(symbol**2 - 2, symbol))
    str((pint.UnitRegistry()("3 km") / 2).to("m"))
    xarray.DataArray([1.0, 2.0], dims="t").mean().item()
    dateutil.parser.parse("2024-01-02")


_work()
del _work
