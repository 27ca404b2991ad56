#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a flow of two vertices by our executor and, in the same run against the same server, by that of
langflow-sandbox-createos, unchanged.

usage: bench/langflow_executor.py BUILD [--driver jail|microvm] [--runs N] [--image NAME] [--without-peer]

Needs root, the image langflow:1 (caisson images build langflow:1) and BUILD/clients/langflow (tests/clients/prepare.py
langflow, then caisson-langflow), in which it runs itself again. Each of ours waits until the pool has a machine ready,
outside the time that is measured; "without a pool" imports lfx in each run.
"""

import argparse
import asyncio
import json
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
READY_WITHIN = 1200


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", default="jail")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--image", default="langflow:1")
    parser.add_argument("--without-peer", action="store_true")
    return parser.parse_args()


def tell(what, times, control=None):
    row = {"what": what, "value": statistics.median(times), "unit": "ms"}
    if control:
        row |= {"control": statistics.median(control), "control_name": "langflow-sandbox-createos 0.2.0",
                "ratio": statistics.median(control) / row["value"], "target": ">= 5 times as fast", "ok": statistics.median(control) / row["value"] >= 5}
    print(json.dumps(row), flush=True)


def main():
    given = arguments()
    python = given.build.resolve() / "clients/langflow/bin/python"
    if not python.exists() or os.geteuid() != 0:
        print("langflow_executor: needs root and the clients' environment (tests/clients/prepare.py)", file=sys.stderr)
        return 77
    if pathlib.Path(sys.prefix) != python.parents[1]:
        os.execv(python, [python, "-W", "ignore", *sys.argv])
    os.environ |= {"CAISSON_BUILD": str(given.build.resolve()), "CAISSON_TEST_DRIVER": given.driver, "LFX_LOG_LEVEL": "ERROR"}
    sys.path.insert(0, str(ROOT / "tests/clients"))
    from service_under_test import Service

    service = Service()
    service.warm({"shape": "s-2vcpu-4gb", "rootfs": given.image})
    for prefix in ("CAISSON", "CREATEOS"):
        os.environ |= {f"{prefix}_SANDBOX_BASE_URL": service.url, f"{prefix}_SANDBOX_API_KEY": service.key, f"{prefix}_EXECUTOR_ROOTFS": given.image,
                       f"{prefix}_EXECUTOR_SHAPE": "s-2vcpu-4gb", f"{prefix}_EXECUTOR_TIMEOUT_SECONDS": "900"}
    os.environ |= {"CAISSON_EXECUTOR_EGRESS": "none", "CREATEOS_EXECUTOR_EGRESS": ",", "LANGFLOW_SANDBOX_CREATEOS_ACCEPT_EGRESS_EXCEPTIONS": "true"}

    import httpx
    from caisson_langflow.executor import CaissonExecutor
    from langflow_sandbox_createos.executor import CreateOSExecutor
    from lfx.components.input_output import ChatInput, ChatOutput
    from lfx.execution.types import RunComplete, Unit
    from lfx.graph.graph.base import Graph

    def flow():
        asked = ChatInput(_id="asked")
        return Graph(asked, ChatOutput(_id="answered").set(input_value=asked.message_response))

    async def run(executor):
        async for item in executor.execute(Unit(graph=flow(), inputs=[{"input_value": "hello"}], runtime_options={"_use_arun_legacy": True})):
            if isinstance(item, RunComplete):
                assert "hello" in str(item.outputs), item

    def timed(executor):
        begin = time.perf_counter()
        asyncio.run(run(executor))
        took = (time.perf_counter() - begin) * 1e3
        print(f"{executor.kind} {took:.0f} ms", file=sys.stderr, flush=True)
        return took

    def wait_for_pool():
        end = time.monotonic() + READY_WITHIN
        while time.monotonic() < end:
            pools = httpx.get(service.url + "/v1/pools", headers={"X-Api-Key": service.key}, timeout=60).json()["data"]["data"]
            if pools and pools[0]["ready"] >= 1:
                return
            time.sleep(0.2)
        raise SystemExit(f"langflow_executor: no machine became ready: {pools}")

    ours, cold, peer = [], [], []
    timed(CaissonExecutor())  # defines the pool
    for _ in range(given.runs):
        wait_for_pool()
        ours.append(timed(CaissonExecutor()))
    for pool in httpx.get(service.url + "/v1/pools", headers={"X-Api-Key": service.key}, timeout=60).json()["data"]["data"]:
        httpx.delete(f"{service.url}/v1/pools/{pool['name']}", headers={"X-Api-Key": service.key}, timeout=120)
    os.environ["CAISSON_EXECUTOR_POOL"] = "0"
    for _ in range(max(1, given.runs // 2)):
        cold.append(timed(CaissonExecutor()))
    if not given.without_peer:
        for _ in range(max(1, given.runs // 2)):
            peer.append(timed(CreateOSExecutor()))
    tell(f"executor, two vertices, {given.driver}, a machine ready, p50", ours, peer)
    tell(f"executor, two vertices, {given.driver}, without a pool, p50", cold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
