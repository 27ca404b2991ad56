# SPDX-License-Identifier: Apache-2.0
"""What lfx loads when the operator has named our backend. At that time, once, the log says what no backend moves."""

from .backend import make_backend
from .in_process import warn

__all__ = ["make_backend"]

warn()
