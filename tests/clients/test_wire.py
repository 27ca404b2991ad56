# SPDX-License-Identifier: Apache-2.0
"""What real clients were seen to send, and the shape of what they were answered: one row each of route, status and
response. A shape is the keys that must be there with their types; more keys do no harm. What this server answers
otherwise stands in EXCEPTIONS."""

import unittest
import uuid

import httpx

from service_under_test import Service

SERVICE = Service()
SHAPE = "s-1vcpu-256mb"

T, I, F, B = str, int, (int, float), bool
SANDBOX = {"id": T, "name": T, "status": T, "ip": T, "vcpu": I, "mem_mib": I, "disk_mib": I, "created_at": T, "running_at": T,
           "ingress_enabled": B, "spawn_ms": F, "shape": T, "rootfs": T, "region": T, "egress": [T], "envs": [T],
           "ssh_pubkeys": [T], "created_by": T, "bandwidth_ingress_bytes": I}
CREATED = SANDBOX | {"bandwidth_quota_bytes": I}
PAGE = {"total": I, "limit": I, "offset": I, "count": I}
BANDWIDTH = {"id": T, "quota_bytes": I, "used_bytes": I, "ingress_bytes": I, "remaining_bytes": I, "capped": B}
PROCESS = {"process_id": T, "kind": T, "pid": I, "state": T, "leader_exited": B, "tree_exited": B, "created_at": T, "cmd": T,
           "args": [T], "cwd": T, "output": {"oldest_seq": I, "newest_seq": I, "bytes": I}}
EXEC = {"result": {"stdout": T, "stderr": T, "exit_code": I}, "exec_ms": F}
NETWORK = {"id": T, "name": T, "created_at": T, "member_count": I}
TOKEN = {"token": T, "enabled": B, "created_at": T}

EXCEPTIONS = {
    # Parts that do not exist here.
    "disks": 501, "ssh-pubkeys": 501, "computer": 501,
    # A rule that cannot be read: the peer answered 400 or 422.
    "egress": 422,
}


def page(item):
    return {"data": [item], "pagination": PAGE}


def field(name):
    return {name: T}


# who (owner, nobody, wrong, other, token), method, route, body, status, data. {sb} is a running sandbox, {paused} a
# paused one, {gone} a deleted one, {p} a managed process; a dict is JSON, bytes are a file.
ROWS = [
    ("nobody", "GET", "/healthz", None, 200, {"up": B}),
    ("nobody", "GET", "/readyz", None, 200, {"ready": B, "scheduler_last_ok_ms_ago": I}),
    ("owner", "GET", "/v1/whoami", None, 200, {"user_id": T, "stats": {"running": I, "paused": I, "other": I, "total": I}}),
    ("nobody", "GET", "/v1/whoami", None, 401, T),
    ("token", "GET", "/v1/sandboxes?limit=500&offset=0", None, 403, T),
    ("nobody", "GET", "/v1/shapes?limit=500&offset=0", None, 200,
     page({"id": T, "vcpu": I, "mem_mib": I, "default_disk_mib": I})),
    ("nobody", "GET", "/v1/rootfs", None, 200, {"rootfs": [T], "default": T, "entries": [{"name": T}]}),
    ("owner", "GET", "/v1/hosts?limit=500&offset=0", None, 200,
     page({"id": T, "status": T, "free_mib": I, "vm_count": I, "rootfses": [T]})),
    ("owner", "GET", "/v1/sandboxes", None, 200, page(SANDBOX)),
    ("nobody", "GET", "/v1/sandboxes", None, 401, T),
    ("owner", "GET", "/v1/sandboxes?limit=500", None, 200, page(SANDBOX)),
    ("owner", "GET", "/v1/sandboxes?limit=50&offset=0&status=running", None, 200, page(SANDBOX)),
    ("owner", "POST", "/v1/sandboxes", {"shape": SHAPE, "egress": ["240.0.0.0/4"], "auto_pause_after_seconds": 300,
                                        "envs": {"TOKEN": "x", "EMPTY": ""}, "ingress_enabled": False}, 200,
     CREATED | {"auto_pause_after_seconds": I}),
    ("owner", "POST", "/v1/sandboxes", {"shape": SHAPE, "rootfs": "nothing:0"}, 400, field("rootfs")),
    ("owner", "POST", "/v1/sandboxes", {"shape": "nothing"}, 400, field("shape")),
    ("owner", "POST", "/v1/sandboxes", {"shape": SHAPE, "bandwidth_quota_bytes": 5}, 400, field("bandwidth_quota_bytes")),
    ("owner", "POST", "/v1/sandboxes", {"shape": SHAPE, "name": "{name}"}, 409, T),
    ("owner", "POST", "/v1/sandboxes", {"shape": SHAPE, "egress": ["*.example..org"]}, 422, {"egress": T, "code": T}),
    ("nobody", "POST", "/v1/sandboxes", {"shape": SHAPE}, 401, T),
    ("token", "POST", "/v1/sandboxes", {"shape": SHAPE}, 403, T),
    ("owner", "GET", "/v1/sandboxes/{sb}", None, 200, SANDBOX),
    ("owner", "GET", "/v1/sandboxes/nothing", None, 404, T),
    ("other", "GET", "/v1/sandboxes/{sb}", None, 404, T),
    ("owner", "GET", "/v1/sandboxes/by-ip/{ip}", None, 200, SANDBOX),
    ("owner", "GET", "/v1/sandboxes/by-ip/192.0.2.1", None, 404, T),
    ("owner", "PUT", "/v1/sandboxes/by-name/files", {"shape": SHAPE}, 200, CREATED | {"created": B}),
    ("owner", "PUT", "/v1/sandboxes/by-name/files", {"shape": SHAPE, "name": "other"}, 400, field("name")),
    ("owner", "PUT", "/v1/sandboxes/by-name/files", {"shape": SHAPE, "egress": ["10.0.0.0/8"]}, 409, {"egress": T, "code": T}),
    ("nobody", "PUT", "/v1/sandboxes/by-name/files", {"shape": SHAPE}, 401, T),
    ("owner", "PATCH", "/v1/sandboxes/{sb}", {"auto_pause_after_seconds": 60, "ingress_enabled": True}, 200,
     SANDBOX | {"auto_pause_after_seconds": I, "ingress_url_template": T}),
    ("owner", "PATCH", "/v1/sandboxes/{sb}", {"disable_auto_pause": True, "ingress_enabled": False}, 200, SANDBOX),
    ("owner", "PATCH", "/v1/sandboxes/{sb}", {"auto_pause_after_seconds": 5}, 400, field("auto_pause_after_seconds")),
    ("owner", "GET", "/v1/sandboxes/{sb}/bandwidth", None, 200, BANDWIDTH),
    ("owner", "POST", "/v1/sandboxes/{sb}/bandwidth/recharge", {"add_bytes": 5}, 200, BANDWIDTH),
    ("owner", "POST", "/v1/sandboxes/{sb}/bandwidth/recharge", {"add_bytes": -5}, 400, field("add_bytes")),
    ("owner", "GET", "/v1/sandboxes/{sb}/egress", None, 200, {"id": T, "egress": [T]}),
    ("owner", "PUT", "/v1/sandboxes/{sb}/egress", {"egress": ["240.0.0.0/4"]}, 200, {"id": T, "egress": [T]}),
    ("owner", "PUT", "/v1/sandboxes/{sb}/egress", {"egress": ["no rule"]}, EXCEPTIONS["egress"], field("egress")),
    ("owner", "POST", "/v1/sandboxes/{sb}/exec", {"cmd": "bash", "args": ["-c", "cat"], "stdin": "x", "env": {"A": "2"}}, 200, EXEC),
    ("owner", "POST", "/v1/sandboxes/{sb}/exec", {"cmd": "true", "env": {"UNDECLARED": "1"}}, 400, field("env")),
    ("nobody", "POST", "/v1/sandboxes/{sb}/exec", {"cmd": "true"}, 401, T),
    ("owner", "POST", "/v1/sandboxes/{paused}/exec", {"cmd": "true"}, 409, T),
    ("owner", "POST", "/v1/sandboxes/{paused}/exec?stream=true", {"cmd": "true", "args": [], "stream": True}, 409, T),
    ("owner", "POST", "/v1/sandboxes/{sb}/exec?stream=true", {"cmd": "true", "stream": True}, 200, None),
    ("owner", "PUT", "/v1/sandboxes/{sb}/files?path=/tmp/a/b", b"bytes", 200, {"path": T, "bytes": I}),
    ("owner", "GET", "/v1/sandboxes/{sb}/files?path=/tmp/a/b", None, 200, None),
    ("owner", "PUT", "/v1/sandboxes/{sb}/files?path=relative", b"bytes", 400, field("path")),
    ("owner", "GET", "/v1/sandboxes/{sb}/files?path=relative", None, 400, field("path")),
    ("owner", "GET", "/v1/sandboxes/{sb}/files?path=/tmp/nothing", None, 404, T),
    ("owner", "PUT", "/v1/sandboxes/{paused}/files?path=/tmp/a", b"bytes", 409, T),
    ("owner", "GET", "/v1/sandboxes/{paused}/files?path=/tmp/a", None, 409, T),
    ("owner", "GET", "/v1/sandboxes/{sb}/processes", None, 200, {"processes": [PROCESS]}),
    ("owner", "POST", "/v1/sandboxes/{sb}/processes", {"cmd": "sleep", "args": ["60"], "cwd": "/tmp", "env": {"A": "2"}}, 200, PROCESS),
    ("owner", "POST", "/v1/sandboxes/{sb}/processes", {"cmd": "cat", "pty": {"rows": 24, "cols": 80}}, 200, PROCESS),
    ("owner", "GET", "/v1/sandboxes/{sb}/processes/{p}", None, 200, PROCESS),
    ("owner", "GET", "/v1/sandboxes/{sb}/processes/nothing", None, 404, T),
    ("owner", "POST", "/v1/sandboxes/{sb}/processes/{p}/input", {"data_base64": "aGkK"}, 200, {"input_seq": I}),
    ("owner", "POST", "/v1/sandboxes/{sb}/processes/{p}/resize", {"rows": 30, "cols": 90}, 200, {"ok": B}),
    ("owner", "POST", "/v1/sandboxes/{sb}/processes/{p}/signal", {"signal": "SIGWINCH"}, 200, {"ok": B}),
    ("owner", "POST", "/v1/sandboxes/{sb}/processes/{p}/signal", {"signal": "SIGODD"}, 400, field("signal")),
    ("owner", "GET", "/v1/sandboxes/{sb}/processes/{p}/wait?scope=leader&timeout_ms=50", None, 200, PROCESS),
    ("owner", "DELETE", "/v1/sandboxes/{sb}/processes/{p}?grace_ms=100", None, 200, PROCESS | {"finished_at": T, "signal": T}),
    ("owner", "POST", "/v1/sandboxes/{sb}/fork", {}, 409, T),
    ("owner", "POST", "/v1/sandboxes/{paused}/fork", {"start_paused": True, "envs": {"WHO": "x"}}, 200, SANDBOX | {"forked_from": T}),
    ("owner", "POST", "/v1/sandboxes/{sb}/resize", {"disk_mib": 11264}, 200, {"id": T, "disk_mib": I}),
    ("owner", "POST", "/v1/sandboxes/{sb}/resize", {"disk_mib": 1}, 400, field("disk_mib")),
    ("owner", "GET", "/v1/sandboxes/{sb}/access-token", None, 200, {"enabled": B}),
    ("token", "POST", "/v1/sandboxes/{sb}/access-token/rotate", None, 403, T),
    ("owner", "POST", "/v1/sandboxes/{sb}/access-token", None, 409, T),
    ("owner", "POST", "/v1/sandboxes/{sb}/access-token/rotate", None, 200, TOKEN | {"rotated_at": T}),
    ("owner", "DELETE", "/v1/sandboxes/{sb}/access-token", None, 200, {"enabled": B}),
    ("owner", "POST", "/v1/sandboxes/{sb}/access-token/rotate", None, 409, T),
    ("owner", "POST", "/v1/sandboxes/{sb}/access-token", None, 200, TOKEN),
    ("owner", "POST", "/v1/sandboxes/{sb}/pause", None, 200, SANDBOX | {"paused_at": T}),
    ("owner", "POST", "/v1/sandboxes/{sb}/resume", None, 200, SANDBOX | {"paused_at": T, "last_resumed_at": T}),
    ("owner", "POST", "/v1/sandboxes/{gone}/pause", None, 409, T),
    ("owner", "POST", "/v1/sandboxes/{gone}/resume", None, 409, T),
    ("owner", "DELETE", "/v1/sandboxes/{gone}", None, 200, {"id": T, "status": T}),
    ("owner", "GET", "/v1/templates?limit=500&offset=0", None, 200, {"data": [], "pagination": PAGE}),
    ("owner", "POST", "/v1/templates", {"name": "bad", "dockerfile": "FROM nowhere\nCOPY a b\n"}, 400, field("dockerfile")),
    ("owner", "GET", "/v1/templates/nothing", None, 404, T),
    ("owner", "DELETE", "/v1/templates/nothing", None, 404, T),
    ("owner", "POST", "/v1/networks", {"name": "net"}, 200, NETWORK),
    ("owner", "POST", "/v1/networks", {"name": "net"}, 400, field("name")),
    ("owner", "GET", "/v1/networks?limit=500&offset=0", None, 200, page(NETWORK)),
    ("owner", "GET", "/v1/networks/nothing", None, 404, T),
    ("owner", "DELETE", "/v1/networks/nothing", None, 404, T),
    ("owner", "POST", "/v1/sandboxes/{sb}/networks", {"id": "net"}, 200, {"ok": B}),
    ("owner", "GET", "/v1/networks/net", None, 200, NETWORK | {"members": [{"sandbox_id": T, "status": T, "ip": T, "name": T}]}),
    ("owner", "DELETE", "/v1/networks/net", None, 409, T),
    ("owner", "DELETE", "/v1/sandboxes/{sb}/networks/net", None, 200, {"ok": B}),
    ("owner", "DELETE", "/v1/networks/net", None, 200, {"ok": B}),
    ("owner", "GET", "/v1/disks?limit=500&offset=0", None, EXCEPTIONS["disks"], None),
    ("owner", "POST", "/v1/disks", {"name": "d", "kind": "s3"}, EXCEPTIONS["disks"], None),
    ("owner", "GET", "/v1/disks/d", None, EXCEPTIONS["disks"], None),
    ("owner", "POST", "/v1/sandboxes/{sb}/ssh-pubkeys", {"keys": ["ssh-ed25519 A"]}, EXCEPTIONS["ssh-pubkeys"], None),
    ("owner", "GET", "/v1/sandboxes/{sb}/computer/screen?screen_id=screen-0", None, EXCEPTIONS["computer"], None),
]


def mismatch(value, shape, path="data"):
    """What is wrong with `value`, or None."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{path} is no object: {value!r}"
        for key, inner in shape.items():
            if key not in value:
                return f"{path}.{key} is missing in {sorted(value)}"
            if problem := mismatch(value[key], inner, f"{path}.{key}"):
                return problem
        return None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{path} is no list: {value!r}"
        return next(filter(None, (mismatch(item, shape[0], f"{path}[]") for item in value[:3] if shape)), None)
    return None if isinstance(value, shape) else f"{path} has the wrong type: {value!r}"


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = []
        cls.values = {}
        name = f"w-{uuid.uuid4().hex[:10]}"
        running = cls.create(name=name, envs={"A": "1"})
        paused, gone = cls.create(), cls.create()
        cls.send("owner", "POST", f"/v1/sandboxes/{paused['id']}/pause")
        cls.send("owner", "DELETE", f"/v1/sandboxes/{gone['id']}")
        process = cls.data(cls.send("owner", "POST", f"/v1/sandboxes/{running['id']}/processes", {"cmd": "cat", "pty": {}}))
        cls.token = cls.data(cls.send("owner", "POST", f"/v1/sandboxes/{running['id']}/access-token"))["token"]
        cls.values = {"sb": running["id"], "ip": running["ip"], "paused": paused["id"], "gone": gone["id"],
                      "p": process["process_id"], "name": name}

    @classmethod
    def tearDownClass(cls):
        for row in cls.data(cls.send("owner", "GET", "/v1/sandboxes?limit=500"))["data"]:
            if row["id"] in cls.made or row.get("forked_from") in cls.made:
                cls.send("owner", "DELETE", f"/v1/sandboxes/{row['id']}")

    @staticmethod
    def data(answer):
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    @classmethod
    def create(cls, **fields):
        row = cls.data(cls.send("owner", "POST", "/v1/sandboxes", {"shape": SHAPE} | fields))
        cls.made.append(row["id"])
        return row

    @classmethod
    def send(cls, who, method, route, body=None):
        keys = {"owner": SERVICE.key, "other": SERVICE.other_key, "wrong": "wrong", "token": getattr(cls, "token", "")}
        headers = {"X-Api-Key": keys[who]} if who in keys else {}
        for name, value in cls.values.items():
            route = route.replace("{%s}" % name, value)
            if isinstance(body, dict):
                body = {key: value if inner == "{%s}" % name else inner for key, inner in body.items()}
        sent = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        return httpx.request(method, SERVICE.url + route, headers=headers, timeout=60, **sent)

    def test_rows(self):
        for who, method, route, body, status, shape in ROWS:
            with self.subTest(row=f"{who} {method} {route} {status}", body=str(body)[:80]):
                answer = self.send(who, method, route, body)
                self.assertEqual(answer.status_code, status, answer.text[:500])
                if answer.headers["content-type"].startswith("application/json"):
                    envelope = answer.json()
                    expected = "success" if status == 200 else "fail" if status < 500 else "error"
                    self.assertEqual(envelope["status"], expected)
                    if "id" in (envelope.get("data") or {}) and method == "POST" and route == "/v1/sandboxes":
                        self.made.append(envelope["data"]["id"])
                if shape is not None:
                    self.assertIsNone(mismatch(answer.json()["data"], shape))


if __name__ == "__main__":
    unittest.main(verbosity=2)
