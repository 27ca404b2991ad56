# SPDX-License-Identifier: Apache-2.0
"""Runs the nodes that send requests and mail in our engine and in the peer's, against the same
servers on the loopback, and compares what the nodes give and what the servers saw. Exits with 77
where orcheo cannot be imported.

    compare_network.py --tool build/.../run_tool [--verbose]

The peer runs in its unrestricted mode, since the other one refuses the loopback; ours is granted the
servers by name and nothing else.
"""

import argparse
import email
import email.policy
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "workflow")]

from orcheo_process import SKIPPED, find_python  # noqa: E402

import cases  # noqa: E402
import compare_with_orcheo as compare  # noqa: E402
import loopback_servers  # noqa: E402
import network_cases  # noqa: E402

NOW = re.compile(r'"fetched_at": "20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00"')
ELAPSED = re.compile(r'"elapsed": \d[\d.e-]*')
MORE = re.compile(r"(\\n|\n)For more information check: \S+?(?=\"|$)")
# The words for what went wrong on the way are each side's own.
OURS_LOST = re.compile(r"(HTTP request failed: )?(cannot reach|the request to|\S+ was silent|'[^']*' is no URL|the URL|'[^']*' leads to more|"
                       r"\S+ redirects to|no trusted TLS|the name|the header|the mail server|smtp://)")
THEIRS_LOST = re.compile(r"(HTTP request failed: )?(All connection attempts failed|$|Request URL|Server disconnected|peer closed|Illegal header|"
                         r"Exceeded maximum|Invalid URL|URL|Unsupported|\[Errno|Redirect|timed out|STARTTLS|SMTP|Connection|\(5|\{')")
# Errors that nobody wrote a text for.
NO_TEXT = {"TypeError", "KeyError", "AttributeError"}


class Servers:
    def __init__(self, folder):
        certificate, key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        self.ca_file = str(certificate)
        mail = loopback_servers.MailServer
        self.named = {"WEB": loopback_servers.WebServer(), "OTHER": loopback_servers.WebServer(), "SMTP": mail(),
                      "SECURE_SMTP": mail(loopback_servers.tls_context(certificate, key)), "LOGIN_SMTP": mail(login=True)}
        self.ports = {name: server.server_address[1] for name, server in self.named.items()}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.ports["CLOSED"] = free.getsockname()[1]
        self.grants = [f"{host}:{port}" for port in self.ports.values() for host in ("127.0.0.1", "localhost")]

    def place(self, value):
        """`value` with the addresses of the servers in place of their names."""
        text = json.dumps(value)
        for name, port in sorted(self.ports.items(), key=lambda item: -len(item[0])):
            text = text.replace(f'"PORT:{name}"', str(port)).replace(f"//{name}", f"//127.0.0.1:{port}").replace(f'"{name}/', f'"127.0.0.1:{port}/')
        return json.loads(text)

    def take(self):
        return [plain_mail(seen) if "mail" in seen else seen for name in sorted(self.named) for seen in self.named[name].recorder.take()]


def plain_mail(seen):
    """What a reader of the mail sees of it."""
    message = email.message_from_bytes(seen["mail"].encode("latin-1"), policy=email.policy.default)
    headers = {name: str(message[name] or "") for name in ("Subject", "From", "To", "Cc", "MIME-Version")}
    return seen | {"mail": headers | {"type": message.get_content_type(), "charset": message.get_content_charset(), "body": message.get_content().replace("\r\n", "\n")}}


def normal(answer):
    text = NOW.sub('"fetched_at": "<now>"', compare.normal(answer))
    text = MORE.sub("", ELAPSED.sub('"elapsed": 0', text))
    answer = json.loads(text)
    results = answer.get("node_results", {}).get("n")
    for error in results.get("errors", []) if isinstance(results, dict) else []:
        if OURS_LOST.match(error["error"]) or THEIRS_LOST.match(error["error"]):
            error["error"] = "<lost>"
    return answer


def difference(ours, theirs, our_traffic, their_traffic):
    if ours["ok"] != theirs["ok"]:
        return f"ours {'runs' if ours['ok'] else 'fails'}, the peer does not agree"
    if our_traffic != their_traffic:
        return f"different traffic\n  ours    {our_traffic}\n  theirs  {their_traffic}"
    if ours["ok"]:
        return None if normal(ours["state"]) == normal(theirs["state"]) else "different states"
    theirs = theirs | {"error": MORE.sub("", theirs["error"])}
    if compare.same_error(ours, theirs):
        return None
    same_stage = ours["stage"] == theirs["stage"]
    if same_stage and theirs.get("type") in NO_TEXT:
        return None
    return None if same_stage and OURS_LOST.match(ours["error"]) and THEIRS_LOST.match(theirs["error"]) else "different errors"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    python = find_python()
    if python is None:
        print("skipped: no Python with orcheo; set CAISSON_ORCHEO_PYTHON")
        return SKIPPED
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        os.environ.pop(name, None)
    os.environ |= {"ORCHEO_POSTGRES_DSN": "postgresql://127.0.0.1:1/none", "ORCHEO_VAULT_ENCRYPTION_KEY": "a key that protects nothing", "ORCHEO_WORKFLOW_DEFINITION_MODE": "unrestricted"}
    counts, known, different = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(pathlib.Path(folder))
        ours, theirs = compare.Process([options.tool]), compare.Process([python, str(HERE / "orcheo_runs.py")])
        for kind, maker in network_cases.FAMILIES.items():
            for config, inputs, state in maker():
                counts[kind] = counts.get(kind, 0) + 1
                request = servers.place(cases.single(kind, config, inputs, state))
                our_answer = ours(request | {"loopback": servers.grants, "ca_file": servers.ca_file})
                our_traffic = servers.take()
                their_answer = theirs(request)
                found = difference(our_answer, their_answer, our_traffic, servers.take())
                if found is None:
                    continue
                if network_cases.is_known_difference(kind, config, our_answer, their_answer):
                    known += 1
                    continue
                different += 1
                if options.verbose or different <= 20:
                    print(f"{kind} {counts[kind]}: {found}\n  request {json.dumps(request)}\n  ours    {json.dumps(our_answer)}\n"
                          f"  theirs  {json.dumps(their_answer)}")
        ours.close()
        theirs.close()
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    print(f"{sum(counts.values())} cases of {len(counts)} node types: {known} known differences, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
