# SPDX-License-Identifier: Apache-2.0
"""Runs schemathesis on api/openapi.yaml against a service. Arguments: the folder of schemathesis (prepare.py), how many
examples of each operation (30).

Ids are those of a sandbox and a process that live, or of nothing. Streams that do not end by themselves are left out, and
so are upgrades, which are no HTTP afterwards.
"""

import pathlib
import subprocess
import sys
import tempfile

import httpx
import yaml

from service_under_test import Service

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENDLESS = ("events", "connectProcess", "tunnel", "waitProcess")
# What would end the sandbox that all others use.
ENDING = (("/v1/sandboxes/{id}", "delete"), ("/v1/sandboxes/{id}/pause", "post"))
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def with_ids(sandbox: str, process: str) -> str:
    """The API's description with ids that exist."""
    document = yaml.safe_load((ROOT / "api/openapi.yaml").read_text())
    parameters = document["components"]["parameters"]
    parameters["SandboxId"]["schema"]["enum"] = [sandbox, "nothing"]
    parameters["ProcessId"]["schema"]["enum"] = [process, "nothing"]
    nothing = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "enum": ["nothing"]}}
    for path, method in ENDING:
        document["paths"][path][method]["parameters"] = [nothing]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        yaml.safe_dump(document, file, sort_keys=False)
    return file.name


def main() -> int:
    service = Service()
    examples = sys.argv[2] if len(sys.argv) > 2 else "30"
    with httpx.Client(base_url=service.url, headers={"X-Api-Key": service.key}, timeout=60) as http:
        sandbox = http.post("/v1/sandboxes", json={"shape": "s-1vcpu-256mb"}).json()["data"]["id"]
        process = http.post(f"/v1/sandboxes/{sandbox}/processes", json={"cmd": "cat", "pty": {}}).json()["data"]["process_id"]
        left_out = [word for name in ENDLESS for word in ("--exclude-operation-id", name)]
        done = subprocess.run(
            [pathlib.Path(sys.argv[1]) / "bin/st", "run", with_ids(sandbox, process), "--base-url", service.url,
             "--header", f"X-Api-Key: {service.key}", "--checks", CHECKS, "--hypothesis-max-examples", examples,
             "--hypothesis-seed", "1", "--request-timeout", "20000", "--hypothesis-suppress-health-check", "all", *left_out],
            timeout=1500, cwd=tempfile.mkdtemp(prefix="caisson-schemathesis-"))
        http.delete(f"/v1/sandboxes/{sandbox}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
