# SPDX-License-Identifier: Apache-2.0
"""The units of packaging/systemd: systemd takes them, the API's is walled in, and their command lines work, with the helper
as root and the API as a user that has no rights. The folders of the programs and of the images are the arguments."""

import configparser
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

UNITS = pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd"
BIN, STORE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
USER = 60_901  # nobody's
INSTALLED = "/usr/bin/caisson"
MOST_EXPOSED = 20  # tenths, as systemd-analyze counts


class Unit(configparser.RawConfigParser):
    """Just enough of the format: sections, keys that may come several times."""

    def __init__(self, name: str):
        super().__init__(strict=False, delimiters="=", comment_prefixes="#", interpolation=None)
        self.optionxform = str
        self.read(UNITS / name)

    def command(self, folder: pathlib.Path) -> list[str]:
        """The words of ExecStart, with what stands on this machine in place of what an installation has."""
        words = shlex.split(self["Service"]["ExecStart"])
        known = {INSTALLED: str(BIN / "caisson"), "caisson": str(USER), "$CAISSON_SERVE_OPTIONS": None,
                 "$CAISSON_MACHINED_OPTIONS": None}
        moved = [known.get(word, re.sub(r"^/(var/lib|run)/caisson", str(folder), word)) for word in words]
        return [word for word in moved if word is not None]


def has(program: str):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Systemd(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-units-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for unit in UNITS.glob("*.service"):
            (self.folder / unit.name).write_text(unit.read_text().replace(INSTALLED, str(BIN / "caisson")))

    @has("systemd-analyze")
    def test_takes_the_units(self):
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *self.folder.glob("*.service")],
                                 capture_output=True, text=True, check=False)
        self.assertEqual((checked.returncode, [line for line in checked.stderr.splitlines() if "caisson" in line]), (0, []))

    @has("systemd-analyze")
    def test_finds_the_api_walled_in(self):
        checked = subprocess.run(["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}",
                                  self.folder / "caisson-serve.service"], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout[-300:] + checked.stderr)

    @has("systemd-sysusers")
    @has("systemd-tmpfiles")
    def test_makes_the_user_and_the_directories(self):
        root = self.folder / "root"
        for name in ("etc", "usr/lib"):
            (root / name).mkdir(parents=True)
        subprocess.run(["systemd-sysusers", f"--root={root}", UNITS / "caisson.sysusers"], check=True, capture_output=True)
        user = next(line.split(":") for line in (root / "etc/passwd").read_text().splitlines() if line.startswith("caisson:"))
        self.assertTrue(user[6].endswith("nologin"), user)
        subprocess.run(["systemd-tmpfiles", f"--root={root}", "--create", UNITS / "caisson.tmpfiles"], check=True)
        owner = {path: (os.stat(root / path).st_uid, os.stat(root / path).st_mode & 0o777)
                 for path in ("var/lib/caisson", "var/lib/caisson/service", "run/caisson")}
        self.assertEqual(owner, {"var/lib/caisson": (0, 0o755), "var/lib/caisson/service": (int(user[2]), 0o700),
                                 "run/caisson": (0, 0o755)})


class Installing(unittest.TestCase):
    def test_puts_everything_where_it_is_looked_for(self):
        with tempfile.TemporaryDirectory(prefix="caisson-install-") as folder:
            subprocess.run(["cmake", "--install", BIN.parent, "--prefix", folder], check=True, capture_output=True)
            root = pathlib.Path(folder)
            for name in ("bin/caisson", "bin/caisson-isolate", "bin/caisson-agent", "lib/caisson/caisson-vmm",
                         "lib/caisson/caisson-guest-init", "lib/caisson/caisson-container-init", "lib/caisson/caisson-private-memory.so"):
                self.assertTrue((root / name).exists(), name)
            for name in ("caisson-machined.service", "caisson-serve.service"):
                self.assertTrue((root / "lib/systemd/system" / name).exists(), name)
            said = subprocess.run([root / "bin/caisson", "--version"], capture_output=True, text=True, check=True)
            self.assertIn("caisson", said.stdout)


class Manager:
    """Starts what a unit says and waits until it says that it is ready, as systemd does."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.log = folder, open(folder / "log", "ab")
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(str(folder / "notify"))
        os.chmod(folder / "notify", 0o666)
        self.heard.settimeout(60)

    def start(self, words: list[str], before: list[str] = ()) -> subprocess.Popen:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": str(self.folder / "notify"),
                       "CAISSON_IMAGES_DIR": str(STORE)}
        process = subprocess.Popen([*before, *words], env=environment, stdout=subprocess.PIPE, stderr=self.log)
        try:
            said = self.heard.recv(100)
        except TimeoutError:
            process.kill()
            raise AssertionError((self.folder / "log").read_text()[-2000:]) from None
        assert said == b"READY=1", said
        return process

    @staticmethod
    def stop(process: subprocess.Popen) -> int:
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=60)


@unittest.skipUnless(os.geteuid() == 0, "the helper is root's")
@unittest.skipUnless((STORE / "names/python-science").exists(), "there is no image; the test images.native_root says why")
@has("setpriv")
class CommandLines(unittest.TestCase):
    def test_helper_and_api_apart(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-units-", dir="/var/tmp"))
        os.chmod(folder, 0o755)
        (folder / "service").mkdir(mode=0o700)
        os.chown(folder / "service", USER, USER)
        manager = Manager(folder)
        helper = manager.start(Unit("caisson-machined.service").command(folder))
        rights = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                  "--inh-caps=-all"]
        options = ["--listen", "127.0.0.1:0", "--rootfs", "python-science"]
        api = manager.start(Unit("caisson-serve.service").command(folder) + options, rights)
        told = b""
        while not told.rstrip().endswith(b"}"):
            told += api.stdout.readline()
        told = json.loads(told)
        connection = http.client.HTTPConnection("127.0.0.1", int(told["url"].rsplit(":", 1)[1]), timeout=60)

        def call(method, path, body=None):
            connection.request(method, path, None if body is None else json.dumps(body), {"X-Api-Key": told["key"]})
            answer = connection.getresponse()
            data = json.loads(answer.read())
            self.assertEqual(answer.status, 200, data)
            return data["data"]

        sandbox = call("POST", "/v1/sandboxes", {"shape": "s-1vcpu-256mb"})
        run = {"cmd": "python3", "args": ["-c", "print(6 * 7)"], "cwd": "/"}
        self.assertEqual(call("POST", f"/v1/sandboxes/{sandbox['id']}/exec", run)["result"]["stdout"], "42\n")
        # Both can be restarted, one after the other, and the machine lives on.
        self.assertEqual(manager.stop(helper), 0)
        helper = manager.start(Unit("caisson-machined.service").command(folder))
        self.assertEqual(call("POST", f"/v1/sandboxes/{sandbox['id']}/exec", run)["result"]["stdout"], "42\n")
        call("DELETE", f"/v1/sandboxes/{sandbox['id']}")
        connection.close()
        status = pathlib.Path(f"/proc/{api.pid}/status").read_text()
        self.assertRegex(status, rf"Uid:\t{USER}\t{USER}\t{USER}")
        self.assertRegex(status, r"CapEff:\t0+\n")
        self.assertEqual((manager.stop(api), manager.stop(helper)), (0, 0))
        subprocess.run(f"umount -l {folder}/network/gateway {folder}/network/machines/* 2>/dev/null", shell=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
