# SPDX-License-Identifier: Apache-2.0
"""A world of the tests' own that guests may or may not reach: two public addresses, a name server and a metadata address, each of
which answers whoever gets there. Needs root."""

import os
import pathlib
import subprocess
import sys
import time

ALLOWED, OTHER, HOST, UP = "203.0.113.10", "203.0.113.20", "198.51.100.1", "198.51.100.53"
METADATA = "169.254.169.254"
SERVERS = """
import functools, http.server, socket, socketserver, struct, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'ok')
    def log_message(self, *_): pass
class Names(socketserver.BaseRequestHandler):
    def handle(self):
        question, reply = self.request
        end = question.index(b'\\0', 12) + 5
        name = question[12:end - 5]
        kind = struct.unpack('>H', question[end - 4:end - 2])[0]
        address = {b'\\7example\\3com': '203.0.113.10'}.get(name.lower(), '203.0.113.20')
        answers = [b'\\xc0\\x0c' + struct.pack('>HHIH', 1, 1, 60, 4) + socket.inet_aton(address)] if kind == 1 else []
        reply.sendto(question[:2] + struct.pack('>HHHHH', 0x8180, 1, len(answers), 0, 0) + question[12:end] + b''.join(answers), self.client_address)
class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
for number, address in enumerate(sys.argv[3:]):
    handler = functools.partial(Files, directory=sys.argv[2]) if sys.argv[2] and number == 0 else Page
    threading.Thread(target=http.server.ThreadingHTTPServer((address, 80), handler).serve_forever).start()
if sys.argv[1] == 'names':
    threading.Thread(target=socketserver.ThreadingUDPServer(('198.51.100.53', 53), Names).serve_forever).start()
print('up', flush=True)
"""


def run(*words):
    subprocess.run(words, check=True)


class Internet:
    """Two public addresses and a name server behind the host's one link; a metadata address on the host itself.

    `folder`: what the allowed address shows, instead of a page that says ok."""

    def __init__(self, folder=""):
        run("ip", "link", "add", "wan0", "type", "veth", "peer", "name", "net0")
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        pid, own = str(self.holder.pid), os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{pid}/ns/net") == own:
            time.sleep(0.02)
        run("ip", "link", "set", "net0", "netns", pid)
        run("sh", "-c", f"ip addr add {HOST}/24 dev wan0 && ip link set wan0 up && ip route add default via {UP} && "
                        f"ip addr add {METADATA}/32 dev lo")
        inside = ("nsenter", "-t", pid, "-n")
        run(*inside, "sh", "-c", f"ip link set lo up && ip link set net0 up && ip addr add {UP}/24 dev net0 && "
                                 f"ip addr add {ALLOWED}/32 dev net0 && ip addr add {OTHER}/32 dev net0")
        self.servers = [subprocess.Popen([*inside, sys.executable, "-c", SERVERS, "names", folder, ALLOWED, OTHER], stdout=subprocess.PIPE),
                        subprocess.Popen([sys.executable, "-c", SERVERS, "none", "", HOST, METADATA], stdout=subprocess.PIPE)]
        for server in self.servers:
            assert server.stdout.readline() == b"up\n"
        self.resolvers = f"/run/caisson-test-resolv-{os.getpid()}"
        pathlib.Path(self.resolvers).write_text(f"nameserver {UP}\n")
        run("mount", "--bind", self.resolvers, "/etc/resolv.conf")

    def close(self):
        run("umount", "/etc/resolv.conf")
        os.unlink(self.resolvers)
        for process in (*self.servers, self.holder):
            process.kill()
            process.wait()
        for server in self.servers:
            server.stdout.close()
