# SPDX-License-Identifier: Apache-2.0
"""`caisson serve` with real machines, for suites that take the driver as a parameter.

A driver is jail, microvm (its processor emulated where there is no other), oci, oci:runc, oci:runsc, oci:podman
or oci:docker. CAISSON_BUILD names
the build, CAISSON_IMAGES_DIR the store of images, CAISSON_GUEST_KERNEL the kernel of virtual machines.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD", ROOT / "build/release"))
BIN = BUILD / "bin"
STORE = os.environ.get("CAISSON_IMAGES_DIR", str(ROOT / ".deps/images"))
KERNEL = os.environ.get("CAISSON_GUEST_KERNEL", str(ROOT / ".deps/guest-kernel"))
PREPARED_WITHIN = 600  # seconds
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000


def driver_words(driver: str) -> list[str]:
    name, _, runtime = driver.partition(":")
    words = ["--driver", name]
    if runtime:
        words += ["--oci-runtime", runtime]
    if name == "microvm":
        words += ["--kernel", KERNEL, "--allow-emulation"]
    return words


def why_not(driver: str, image: str) -> str:
    """Why there can be no such machines here; empty when there can."""
    if os.geteuid() != 0:
        return "machines are made by root"
    known = subprocess.run([BIN / "caisson", "images", "list", "--json"], capture_output=True, text=True,
                           env=os.environ | {"CAISSON_IMAGES_DIR": STORE}).stdout
    if f'"{image}"' not in known:
        return f"there is no image {image} in {STORE} (caisson images build {image})"
    if driver == "microvm" and not pathlib.Path(KERNEL, "vmlinuz").exists():
        return f"there is no kernel for guests in {KERNEL} (caisson images kernel)"
    needed = {"microvm": "qemu-system-x86_64", "oci:runsc": "runsc", "oci:runc": "runc",
              "oci:podman": "podman", "oci:docker": "docker"}.get(driver)
    if needed and shutil.which(needed) is None:
        return f"there is no {needed}"
    return ""


def enter_own_world() -> None:
    """Network and mounts of this process's own, in which the gateway of machines stands: they go with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def call(url: str, key: str, method: str, path: str, body=None):
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(),
                                     {"X-Api-Key": key, "Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def prepare(url: str, key: str, kind: dict) -> None:
    """Until there is a machine of it: the first one of an image and a shape boots the template of a virtual one, and who
    asks meanwhile may be told to come again (503)."""
    begin = time.monotonic()
    sandbox = None
    while sandbox is None:
        try:
            sandbox = call(url, key, "POST", "/v1/sandboxes", kind)["data"]["id"]
        except urllib.error.HTTPError as error:
            told = error.read().decode(errors="replace")
            if error.code != 503 or "Retry-After" not in error.headers or time.monotonic() > begin + PREPARED_WITHIN:
                raise SystemExit(f"no machine of {kind}: {error.code} {told}") from error
            time.sleep(int(error.headers["Retry-After"]))
    call(url, key, "DELETE", f"/v1/sandboxes/{sandbox}")
    print(f"the first machine of {kind} took {time.monotonic() - begin:.1f} s", flush=True)


LIVE = re.compile(r'^caisson_sandboxes\{state="(?!destroyed|failed)\w+"\} ([0-9.]+)$', re.MULTILINE)


def empty(url: str, key: str, patience: float = 60) -> None:
    """Deletes the tenant's pools and sandboxes, and waits until there is none of anybody: what is deleted goes without its caller."""
    for view in call(url, key, "GET", "/v1/pools?limit=500")["data"]["data"]:
        call(url, key, "DELETE", f"/v1/pools/{view['name']}")
    for view in call(url, key, "GET", "/v1/sandboxes?limit=500")["data"]["data"]:
        call(url, key, "DELETE", f"/v1/sandboxes/{view['id']}")
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        with urllib.request.urlopen(url + "/metrics", timeout=30) as answer:
            if not sum(float(count) for count in LIVE.findall(answer.read().decode())):
                return
        time.sleep(0.1)


class RealService:
    def __init__(self, driver: str, rootfs: str):
        self.driver, self.rootfs, self.listen = driver, rootfs, "127.0.0.1:0"
        self.state = tempfile.mkdtemp(prefix="caisson-service-", dir="/var/tmp")
        os.chmod(self.state, 0o755)
        self.key = self.url = self.process = None

    def start(self) -> None:
        with open(f"{self.state}/log", "ab") as log:
            self.process = subprocess.Popen(
                [BIN / "caisson", "serve", "--state", self.state, "--listen", self.listen, "--rootfs", self.rootfs,
                 "--images", STORE, *driver_words(self.driver)], stdout=subprocess.PIPE, stderr=log)
        text = b""
        while not text.endswith(b"}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("caisson serve has ended: " + self.last_words())
            text += line
        told = json.loads(text)
        self.key, self.url = told.get("key", self.key), told["url"]

    def last_words(self) -> str:
        return pathlib.Path(self.state, "log").read_text(errors="replace")[-4000:]

    def new_key(self, tenant: str) -> str:
        made = subprocess.run([BIN / "caisson", "keys", "create", "--state", self.state, "--tenant", tenant],
                              capture_output=True, text=True, check=True)
        return json.loads(made.stdout)["key"]

    def kill(self) -> None:
        """Its helper ends with it; machines live on."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self) -> None:
        """And waits for its helper, which removes what waits ready when the service has gone."""
        self.process.terminate()
        self.process.wait(timeout=120)
        self.process.stdout.close()
        deadline = time.monotonic() + 30
        while self.left_behind() and time.monotonic() < deadline:
            time.sleep(0.1)

    def left_behind(self) -> list[str]:
        """What is left of machines; the jail keeps its own in the helper's directory itself, other drivers below it."""
        helper = pathlib.Path(self.state, "machines")
        found = [f"machine {path}" for pattern in ("machines/*", "*/machines/*") for path in helper.glob(pattern)]
        mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        found += [f"mount {mount}" for mount in mounts if mount.startswith(str(helper)) and "/machines/" in mount[len(str(helper)):]]
        return found

    def remove(self) -> None:
        subprocess.run(f"umount -l {self.state}/network/gateway {self.state}/network/machines/* 2>/dev/null", shell=True)
        shutil.rmtree(self.state, ignore_errors=True)
