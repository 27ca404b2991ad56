# SPDX-License-Identifier: Apache-2.0
"""Fetches the kernel of virtual machines for the tests that boot one. Exit code 77 says that this host cannot,
and why.

usage: guest_kernel.py FOLDER_OF_PROGRAMS FOLDER
"""

import pathlib
import shutil
import subprocess
import sys


def main() -> int:
    programs, folder = map(pathlib.Path, sys.argv[1:])
    missing = [tool for tool in ("apt-get", "apt-cache", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        print(f"skipped: there is no {', '.join(missing)}")
        return 77
    fetched = subprocess.run([programs / "caisson", "images", "kernel", "--directory", folder], check=False)
    if fetched.returncode != 0:
        return fetched.returncode
    order = (folder / "modules/order").read_text().split()
    for needed in ("virtio_mmio.ko", "virtio_blk.ko", "virtio_console.ko", "erofs.ko", "overlay.ko"):
        if needed not in order:
            print(f"{needed} is missing; the kernel has {order}")
            return 1
    if order.index("virtio_ring.ko") > order.index("virtio.ko"):
        print(f"modules come before what they depend on: {order}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
