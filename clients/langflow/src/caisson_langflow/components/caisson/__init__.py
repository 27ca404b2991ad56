# SPDX-License-Identifier: Apache-2.0
from caisson_langflow.in_process import warn

from .caisson_sandbox import CaissonSandboxComponent

__all__ = ["CaissonSandboxComponent"]

warn()
