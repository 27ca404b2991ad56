# SPDX-License-Identifier: Apache-2.0
"""Kills `caisson serve` at random points of many lives of sandboxes, and looks whether what clients were told is so.

usage: test_crash.py [LIVES]. Needs root and an image with python3 in the store of images (CAISSON_TEST_ROOTFS, else python-science,
which images.native_root builds); exits with 77 without them. CAISSON_TEST_DRIVER: what machines are made with (jail, else as in
tests/machine/real_service.py). CAISSON_TEST_MINUTES: goes on for so long at most, and says how many lives there were. Leaves nothing
behind, and says so.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "machine"))

import real_service

LIVES = int(sys.argv[1]) if len(sys.argv) > 1 else 30
MINUTES = float(os.environ.get("CAISSON_TEST_MINUTES", "inf"))
ROOTFS = os.environ.get("CAISSON_TEST_ROOTFS", "python-science")
DRIVER = os.environ.get("CAISSON_TEST_DRIVER", "jail")
SETTLED_WITHIN = 10  # seconds, from the start of the next service
SEED = int(os.environ.get("CAISSON_TEST_SEED", random.randrange(1 << 30)))
SHAPE = "s-1vcpu-256mb"
POLICIES = (["240.0.0.0/4"], ["*"], ["203.0.113.10:443", "example.com", "*.example.com"])


class Service(real_service.RealService):
    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=120)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"X-Api-Key": self.key})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()).get("data")
        finally:
            connection.close()


def live(service: Service, told: dict, rules: dict, choose: random.Random) -> None:
    """One life; `told` has what the last answer said, None while one is under way, and `rules` its network policy."""
    policy = choose.choice(POLICIES)
    status, view = service.call("POST", "/v1/sandboxes", {"shape": SHAPE, "egress": policy})
    if status != 200:
        return
    told[view["id"]], rules[view["id"]] = "running", policy
    for action in choose.choice(((), ("pause",), ("pause", "resume"), ("delete",), ("pause", "delete"))):
        path = f"/v1/sandboxes/{view['id']}"
        told[view["id"]] = None
        status, answer = service.call("DELETE", path) if action == "delete" else service.call("POST", f"{path}/{action}")
        if status == 200:
            told[view["id"]] = answer["status"]


def live_until_killed(service: Service, told: dict, rules: dict, seed: int) -> int:
    choose, lives = random.Random(seed), 0
    while True:
        try:
            live(service, told, rules, choose)
            lives += 1
        except (OSError, http.client.HTTPException, ValueError):
            return lives


def problems_after(service: Service, told: dict, rules: dict) -> list[str]:
    found = []
    for sandbox, status in told.items():
        _, view = service.call("GET", f"/v1/sandboxes/{sandbox}")
        now = view["status"] if isinstance(view, dict) else view
        if status == "destroying":  # that is done by who comes after
            status = "destroyed"
        if status is not None and now != status:
            found.append(f"{sandbox}: the client was told {status}, and now it is {now}")
        if status is None and now not in ("running", "paused", "error", "failed", "destroyed"):
            found.append(f"{sandbox}: is still {now}")
        if now == "running":
            _, network = service.call("GET", f"/v1/sandboxes/{sandbox}/egress")
            if network["egress"] != rules[sandbox]:
                found.append(f"{sandbox}: its policy was {rules[sandbox]}, and now it is {network}")
            code, outcome = service.call("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": "python3", "args": ["-c", "pass"], "cwd": "/"})
            if code != 200 or outcome["result"]["exit_code"] != 0:
                found.append(f"{sandbox}: is said to run, and a command says {code} {outcome}")
    _, page = service.call("GET", "/v1/sandboxes?limit=500")
    for view in page["data"]:
        service.call("DELETE", f"/v1/sandboxes/{view['id']}")
    told.clear()
    return found


def main() -> int:
    if why := real_service.why_not(DRIVER, ROOTFS):
        print(f"skipped: {why}")
        return 77
    real_service.enter_own_world()
    service, told, rules, lives, kills, found, choose = Service(DRIVER, ROOTFS), {}, {}, 0, 0, [], random.Random(SEED)
    print(f"seed {SEED}", flush=True)
    service.start()
    real_service.prepare(service.url, service.key, {"shape": SHAPE})
    # How long a life takes here: an emulated machine on a busy host needs seconds to be made, and would never live.
    begin = time.monotonic()
    real_service.prepare(service.url, service.key, {"shape": SHAPE})
    slowness = max(1, 2 * (time.monotonic() - begin))
    begin = time.monotonic()
    while lives < LIVES and not found and time.monotonic() - begin < 60 * MINUTES:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            running = [pool.submit(live_until_killed, service, told, rules, choose.random()) for _ in range(3)]
            time.sleep(choose.uniform(0.2, 2) * slowness)
            service.kill()
            lives += sum(one.result() for one in running)
        kills += 1
        started = time.monotonic()
        service.start()
        if time.monotonic() - started > SETTLED_WITHIN:
            found.append(f"settled only after {time.monotonic() - started:.1f} s")
        found += problems_after(service, told, rules)
        rules.clear()
    real_service.empty(service.url, service.key)  # what is deleted goes after its answer
    service.stop()
    found += service.left_behind()
    if lives == 0:
        found.append("no life was seen: nothing is shown by that")
    took = time.monotonic() - begin
    print("\n".join(found) or f"{DRIVER}: {lives} lives, {kills} kills in {took:.0f} s: what clients were told is so")
    if not found:
        service.remove()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
