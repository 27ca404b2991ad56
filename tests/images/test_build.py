# SPDX-License-Identifier: Apache-2.0
"""Builds a minimal image with the command, twice from nothing, and uses what comes out. The folder of the
programs is the first argument. Exit code 77 says that this host cannot build images, and why."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from host import obstacle

BIN = pathlib.Path(sys.argv[1]).resolve()

# Python without libraries; still everything but pip: extraction, removal, links, bytecode, manifest.
DEFINITION = {
    "format": 1, "name": "tiny", "suite": "bookworm", "architecture": "amd64", "epoch": 1767225600,
    "packages": ["python3.11-minimal"], "packages_lock": "tiny.lock",
    "python": {"program": "usr/bin/python3.11", "version": "3.11", "directory": "usr/lib/python3/dist-packages",
               "requirements": "empty.lock", "wheel_platforms": ["manylinux2014_x86_64"]},
    "remove": ["usr/share/doc/*/changelog*"],
    "files": [{"path": "etc/greeting", "text": "hello\n"}],
    "links": [{"path": "usr/bin/python3", "target": "python3.11"}],
}


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-images-"))
        cls.definitions = cls.folder / "definitions"
        cls.definitions.mkdir()
        (cls.definitions / "tiny.json").write_text(json.dumps(DEFINITION))
        (cls.definitions / "empty.lock").write_text("# nothing\n")
        built = cls.run_caisson("build", "tiny", "--update-lock", "--verify", "--bundle", str(cls.folder / "bundle"))
        cls.built = built
        assert built.returncode == 0, built.stderr
        cls.image = json.loads(built.stdout)
        cls.root = pathlib.Path(cls.image["root"])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def run_caisson(cls, action, *arguments):
        words = [str(BIN / "caisson"), "images", action, *arguments]
        if action == "build":
            words += ["--definitions", str(cls.definitions)]
        environment = os.environ | {"CAISSON_IMAGES_DIR": str(cls.folder / "store")}
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=1200, check=False)

    def python(self, program):
        done = subprocess.run(["chroot", self.root, "/usr/bin/python3", "-I", "-B", "-c", program], capture_output=True,
                              text=True, check=False, env={"PATH": "/usr/sbin:/usr/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_version_that_the_archive_no_longer_has(self):
        lock = self.definitions / "tiny.lock"
        true = lock.read_text()
        self.addCleanup(lock.write_text, true)
        lock.write_text(re.sub(r"^libexpat1=\S+", "libexpat1=0.0.1-1", true, flags=re.M))
        refused = self.run_caisson("build", "tiny")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("Version '0.0.1-1' for 'libexpat1' was not found", refused.stderr)
        self.assertIn("--allow-newer", refused.stderr)
        built = self.run_caisson("build", "tiny", "--allow-newer")
        self.assertEqual(built.returncode, 0, built.stderr)
        told = [line for line in built.stderr.split("\n") if "the lock says" in line]
        self.assertEqual(len(told), 1, built.stderr)
        self.assertRegex(told[0], "libexpat1 is .*; the lock says 0.0.1-1")

    def test_building_again_by_the_lock_gives_the_same_id(self):
        self.assertIn("libc6=", (self.definitions / "tiny.lock").read_text())
        again = self.run_caisson("build", "tiny")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(json.loads(again.stdout)["id"], self.image["id"])

    def test_a_lock_with_another_hash_is_refused(self):
        lock = self.definitions / "tiny.lock"
        good = lock.read_text()
        lines = good.splitlines()
        lines[0] = lines[0].split(" ")[0] + " " + "0" * 64
        lock.write_text("\n".join(lines) + "\n")
        try:
            refused = self.run_caisson("build", "tiny")
        finally:
            lock.write_text(good)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("images.lock", refused.stderr)
        self.assertEqual([path.name for path in (self.folder / "store").glob(".building-*")], [])

    def test_the_id_is_the_hash_of_a_manifest_that_is_true(self):
        text = (self.root.parent / "manifest.jsonl").read_bytes()
        self.assertEqual(hashlib.sha256(text).hexdigest(), self.image["id"])
        listed = {}
        for line in text.decode().splitlines()[1:]:
            entry = json.loads(line)
            listed[entry["path"]] = entry
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*")}
        self.assertEqual(found, set(listed))
        for path, entry in listed.items():
            if entry["type"] == "file":
                self.assertEqual(hashlib.sha256((self.root / path).read_bytes()).hexdigest(), entry["sha256"], path)

    def test_everything_is_roots_and_readable_by_all(self):
        for path in self.root.rglob("*"):
            info = path.lstat()
            self.assertEqual((info.st_uid, info.st_gid, int(info.st_mtime)), (0, 0, DEFINITION["epoch"]), path)
            if not path.is_symlink():
                self.assertEqual(info.st_mode & 0o4, 0o4, path)
                self.assertEqual(info.st_mode & 0o6000, 0, path)

    def test_no_trace_of_the_host_is_left(self):
        for path in ("etc/apt", "etc/hostname", "etc/resolv.conf", "etc/machine-id", "var/lib/apt", "var/log"):
            self.assertFalse((self.root / path).exists(), path)
        self.assertEqual(list((self.root / "dev").iterdir()), [])

    def test_python_runs_from_bytecode_without_looking_at_sources(self):
        self.assertEqual(self.python("print(open('/etc/greeting').read(), end='')"), "hello\n")
        pyc = self.root / "usr/lib/python3.11/__pycache__/argparse.cpython-311.pyc"
        self.assertEqual(pyc.read_bytes()[4:8], b"\x01\x00\x00\x00")  # PEP 552: hash-based, unchecked
        self.assertEqual(self.python("import argparse; print(argparse.__cached__)"),
                         "/usr/lib/python3.11/__pycache__/argparse.cpython-311.pyc\n")

    @unittest.skipUnless(shutil.which("runc"), "runc is not installed")
    def test_the_bundle_runs_with_runc(self):
        name = f"caisson-images-{os.getpid()}"
        script = "import os\nprint(os.getuid(), os.getgid(), sorted(os.environ), os.listdir('/sys'))\nopen('/x', 'w')\n"
        done = subprocess.run(["runc", "--root", self.folder / "runc", "run", "--bundle", self.folder / "bundle", name],
                              input=script, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.stdout.splitlines(), ["1001 1001 ['HOME', 'PATH'] []"], done.stderr)
        self.assertIn("Read-only file system", done.stderr)

    def test_list_shows_it_and_rm_knows_only_what_is_there(self):
        listed = json.loads(self.run_caisson("list", "--json").stdout)["images"]
        self.assertEqual([(image["names"], image["id"]) for image in listed], [(["tiny"], self.image["id"])])
        unknown = self.run_caisson("rm", "huge")
        self.assertEqual(unknown.returncode, 3)
        self.assertIn("images.unknown", unknown.stderr)


if __name__ == "__main__":
    if (why := obstacle()) is not None:
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
