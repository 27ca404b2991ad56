# SPDX-License-Identifier: Apache-2.0
"""Runs test_npm_sdk.mjs in a folder where the package is installed (argument), against a service."""

import os
import pathlib
import shutil
import subprocess
import sys

from service_under_test import Service

HERE = pathlib.Path(__file__).resolve().parent


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    service = Service()
    # Node looks for packages from where the file is.
    test = shutil.copy(HERE / "test_npm_sdk.mjs", folder)
    done = subprocess.run(["node", "--test", test], cwd=folder, timeout=600,
                          env=os.environ | {"CAISSON_URL": service.url, "CAISSON_KEY": service.key,
                                            "CAISSON_OTHER_KEY": service.other_key})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
