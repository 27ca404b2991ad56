# SPDX-License-Identifier: Apache-2.0
"""Whether this host can build images."""

import os
import shutil


def obstacle() -> str | None:
    if os.geteuid() != 0:
        return "building an image needs root"
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed"
    return None
