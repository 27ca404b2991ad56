# SPDX-License-Identifier: Apache-2.0
"""Kills `caisson serve` at random points of many lives of sandboxes, and looks whether what clients were told is so.

usage: test_crash.py BIN STORE [LIVES]. Needs root and an image with python3 in the store of images (CAISSON_TEST_ROOTFS, else
python-science, which images.native_root builds); exits with 77 without them. CAISSON_TEST_DRIVER: what machines are made with.
Leaves nothing behind, and says so.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
STORE = os.environ.get("CAISSON_IMAGES_DIR", sys.argv[2])
LIVES = int(sys.argv[3]) if len(sys.argv) > 3 else 30
ROOTFS = os.environ.get("CAISSON_TEST_ROOTFS", "python-science")
DRIVER = os.environ.get("CAISSON_TEST_DRIVER", "jail")
SETTLED_WITHIN = 10  # seconds, from the start of the next service
SEED = int(os.environ.get("CAISSON_TEST_SEED", random.randrange(1 << 30)))
SHAPE = "s-1vcpu-256mb"


class Service:
    def __init__(self, state: str):
        self.state, self.key, self.port = state, None, None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [BIN / "caisson", "serve", "--state", self.state, "--listen", "127.0.0.1:0", "--rootfs", ROOTFS,
             "--images", STORE, "--driver", DRIVER],
            stdout=subprocess.PIPE, stderr=open(f"{self.state}/log", "a"))
        text = b""
        while not text.endswith(b"}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(pathlib.Path(self.state, "log").read_text()[-2000:])
            text += line
        told = json.loads(text)
        self.key = told.get("key", self.key)
        self.port = int(told["url"].rsplit(":", 1)[1])

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"X-Api-Key": self.key})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()).get("data")
        finally:
            connection.close()


def live(service: Service, told: dict, choose: random.Random) -> None:
    """One life; `told` has what the last answer said, None while one is under way."""
    status, view = service.call("POST", "/v1/sandboxes", {"shape": SHAPE})
    if status != 200:
        return
    told[view["id"]] = "running"
    for action in choose.choice(((), ("pause",), ("pause", "resume"), ("delete",), ("pause", "delete"))):
        path = f"/v1/sandboxes/{view['id']}"
        told[view["id"]] = None
        status, answer = service.call("DELETE", path) if action == "delete" else service.call("POST", f"{path}/{action}")
        if status == 200:
            told[view["id"]] = answer["status"]


def live_until_killed(service: Service, told: dict, seed: int) -> int:
    choose, lives = random.Random(seed), 0
    while True:
        try:
            live(service, told, choose)
            lives += 1
        except (OSError, http.client.HTTPException, ValueError):
            return lives


def problems_after(service: Service, told: dict) -> list[str]:
    found = []
    for sandbox, status in told.items():
        _, view = service.call("GET", f"/v1/sandboxes/{sandbox}")
        now = view["status"] if isinstance(view, dict) else view
        if status is not None and now != status:
            found.append(f"{sandbox}: the client was told {status}, and now it is {now}")
        if status is None and now not in ("running", "paused", "error", "failed", "destroyed"):
            found.append(f"{sandbox}: is still {now}")
        if now == "running":
            code, outcome = service.call("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": "python3", "args": ["-c", "pass"], "cwd": "/"})
            if code != 200 or outcome["result"]["exit_code"] != 0:
                found.append(f"{sandbox}: is said to run, and a command says {code} {outcome}")
    _, page = service.call("GET", "/v1/sandboxes?limit=500")
    for view in page["data"]:
        service.call("DELETE", f"/v1/sandboxes/{view['id']}")
    told.clear()
    return found


def left_behind(state: str) -> list[str]:
    """The jail keeps its machines in the helper's directory itself, other drivers below it."""
    helper = pathlib.Path(state, "machines")
    found = [f"machine {path}" for pattern in ("machines/*", "*/machines/*") for path in helper.glob(pattern)]
    mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    return found + [f"mount {mount}" for mount in mounts if re.match(rf"{helper}/([a-z]+/)?machines/", mount)]


def main() -> int:
    known = subprocess.run([BIN / "caisson", "images", "list", "--json"], capture_output=True, text=True,
                           env=os.environ | {"CAISSON_IMAGES_DIR": STORE}).stdout
    if os.geteuid() != 0 or f'"{ROOTFS}"' not in known:
        print(f"skipped: this needs root and the image {ROOTFS} in {STORE} (caisson images build {ROOTFS})")
        return 77
    state = tempfile.mkdtemp(prefix="caisson-crash-", dir="/var/tmp")
    os.chmod(state, 0o755)
    service, told, lives, kills, found, choose = Service(state), {}, 0, 0, [], random.Random(SEED)
    print(f"seed {SEED}")
    service.start()
    while lives < LIVES and not found:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            running = [pool.submit(live_until_killed, service, told, choose.random()) for _ in range(3)]
            time.sleep(choose.uniform(0.2, 2))
            service.process.kill()
            service.process.wait()
            lives += sum(one.result() for one in running)
        kills += 1
        begin = time.monotonic()
        service.start()
        if time.monotonic() - begin > SETTLED_WITHIN:
            found.append(f"settled only after {time.monotonic() - begin:.1f} s")
        found += problems_after(service, told)
    time.sleep(1)
    found += left_behind(state)
    service.process.terminate()
    service.process.wait(timeout=60)
    print("\n".join(found) or f"{lives} lives, {kills} kills: what clients were told is so")
    if not found:
        subprocess.run(f"umount -l {state}/network/gateway {state}/network/machines/* 2>/dev/null", shell=True)
        shutil.rmtree(state, ignore_errors=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
