# SPDX-License-Identifier: Apache-2.0
"""Images on this host: whether it can build them, and by the command that users have."""

import os
import pathlib
import shutil
import subprocess


def obstacle() -> str | None:
    if os.geteuid() != 0:
        return "building an image needs root"
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed"
    return None


def build(programs: pathlib.Path, store: pathlib.Path, name: str) -> subprocess.CompletedProcess:
    """Unless the store has it. An archive that has dropped a locked version hinders no test: --allow-newer."""
    store.mkdir(parents=True, exist_ok=True)
    return subprocess.run([programs / "caisson", "images", "build", name, "--unless-built", "--allow-newer"],
                          env=os.environ | {"CAISSON_IMAGES_DIR": str(store)}, stdout=subprocess.PIPE, check=False)
