# SPDX-License-Identifier: Apache-2.0
from .caisson_sandbox import CaissonSandboxComponent

__all__ = ["CaissonSandboxComponent"]
