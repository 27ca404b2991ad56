# SPDX-License-Identifier: Apache-2.0
"""Builds the images for machines by the command and uses them in a chroot: what clients need of them is there
and works. The folder of the programs, a store and perhaps the one class to test are the arguments. Exit code 77
says that this host cannot build images, and why."""

import json
import pathlib
import subprocess
import sys
import unittest

from host import build, obstacle

BIN = pathlib.Path(sys.argv[1]).resolve()
STORE = pathlib.Path(sys.argv[2]).resolve()
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}


class Image:
    def __init__(self, name: str):
        built = build(BIN, STORE, name)
        assert built.returncode == 0, f"images build {name} ended with {built.returncode}"
        self.info = json.loads(built.stdout)
        self.root = pathlib.Path(self.info["root"])

    def run(self, *command: str) -> subprocess.CompletedProcess:
        """In a mount namespace of its own, with an empty /tmp, /proc and /dev/null; the image is not written."""
        script = ('mount -t tmpfs none "$1/tmp" && mount -t proc none "$1/proc" && mount -t tmpfs none "$1/dev" && '
                  'mknod -m 666 "$1/dev/null" c 1 3 && mount -o remount,bind,ro "$1" && root=$1 && shift && exec chroot "$root" "$@"')
        return subprocess.run(["unshare", "-mnpf", "--kill-child", "sh", "-c", f'mount --bind "$1" "$1" && {script}', "sh",
                               self.root, *command], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)


class Common:
    name = ""

    @classmethod
    def setUpClass(cls):
        cls.image = Image(cls.name)

    def test_it_has_its_name_and_no_trace_of_the_host(self):
        self.assertIn(self.name, self.image.info["names"])
        for path in ("etc/hostname", "etc/resolv.conf", "etc/machine-id", "var/log/dpkg.log", "var/cache/apt/pkgcache.bin"):
            self.assertFalse((self.image.root / path).exists(), path)

    def test_timeout_exits_with_124_when_its_deadline_fired(self):
        for options in ([], ["--signal=KILL"], ["-s", "KILL"], ["-k", "1"]):
            self.assertEqual(self.image.run("timeout", *options, "0.2", "sleep", "9").returncode, 124, options)
        self.assertEqual(self.image.run("timeout", "9", "sh", "-c", "exit 3").returncode, 3)

    def test_the_package_manager_knows_what_is_there(self):
        self.assertEqual(self.image.run("dpkg", "--audit").stdout, "")
        listed = self.image.run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n").stdout.split("\n")[:-1]
        self.assertGreater(len(listed), 80)
        self.assertEqual([line for line in listed if not line.endswith(" installed")], [])
        self.assertEqual(self.image.run("dpkg-divert", "--truename", "/usr/bin/timeout").stdout, "/usr/bin/timeout.coreutils\n")
        self.assertNotEqual(list((self.image.root / "etc/apt/sources.list.d").iterdir()), [])


class Devbox(Common, unittest.TestCase):
    name = "devbox:1"

    def test_programs_run(self):
        for command in ("bash --version", "python3 -c pass", "python -c pass", "pip --version", "git --version", "curl --version",
                        "tar --version", "gzip --version", "jq --version", "ps", "ip link", "sudo -n true"):
            done = self.image.run("bash", "-lc", command)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")

    def test_python_has_its_bytecode(self):
        done = self.image.run("python3", "-v", "-c", "import json")
        self.assertIn("matches /usr/lib/python3.11/json/__init__.py", done.stderr)

    def test_pip_needs_no_further_words(self):
        done = self.image.run("pip", "install", "--dry-run", "--no-index", "no-such-package-here")
        self.assertIn("No matching distribution", done.stderr)

    def test_archives_travel_through_tar(self):
        done = self.image.run("sh", "-c", "cd /tmp && echo x > a && tar -czf b.tgz a && tar -tzf b.tgz")
        self.assertEqual(done.stdout, "a\n", done.stderr)

    def test_bash_has_dev_tcp(self):
        done = self.image.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9")
        self.assertIn("Network is unreachable", done.stderr)


class Debian(Common, unittest.TestCase):
    name = "debian:12"

    def test_it_is_bookworm(self):
        self.assertIn("VERSION_CODENAME=bookworm", (self.image.root / "etc/os-release").read_text())
        self.assertEqual(self.image.run("sh", "-c", "exit 4").returncode, 4)


if __name__ == "__main__":
    if (why := obstacle()) is not None:
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
