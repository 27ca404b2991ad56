# SPDX-License-Identifier: Apache-2.0
"""What tools/setup.sh does on machines that lack something, played with stand-ins for apt and the tools."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REAL = ("bash", "env", "sed", "sort", "head", "grep", "cut", "sha256sum", "cat", "dirname")


class Machine:
    """A checkout without artifacts and a PATH on which only stand-ins stand, each of which notes that it was called."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in REAL:
            self.bin.joinpath(name).symlink_to(shutil.which(name))
        (folder / "checkout").mkdir()
        shutil.copytree(ROOT / "tools", folder / "checkout/tools", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "calls").write_text("")
        self.stand_in("id", "echo 0")
        self.debian(cargo="0.66.0+ds1-1", nodejs="18.20.4+dfsg-1~deb12u3", npm="9.2.0~ds1-1", python3="3.11.2-1+b1")
        self.stand_in("cmake", "echo cmake version 3.25.1")
        # Making the environment is the first step after the packages: there the play ends.
        self.stand_in("python3", 'note "python3 $*"; exit 9')

    def stand_in(self, name: str, script: str):
        path = self.bin / name
        path.write_text(f'#!{shutil.which("bash")}\nnote() {{ echo "$*" >> {self.folder}/calls; }}\n{script}\n')
        path.chmod(0o755)

    def debian(self, installs=True, **candidates):
        self.stand_in("dpkg-query", '[ "${@: -1}" = ccache ] || echo "install ok installed"')
        cases = "".join(f'{name}) echo "  Candidate: {version}" ;;\n' for name, version in candidates.items())
        self.stand_in("apt-cache", f'case $2 in\n{cases}esac')
        self.stand_in("apt-get", f'[ "$2" = -s ] && exit {0 if installs else 100}\nnote "apt-get $*"')

    def setup(self) -> tuple[int, str, list[str]]:
        done = subprocess.run(["bash", "tools/setup.sh", "build"], cwd=self.folder / "checkout", capture_output=True,
                              text=True, timeout=60, env={"PATH": str(self.bin), "HOME": str(self.folder)})
        return done.returncode, done.stderr, (self.folder / "calls").read_text().splitlines()


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-setup-"))
        self.machine = Machine(self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def refused(self) -> str:
        code, said, calls = self.machine.setup()
        self.assertEqual(code, 1, said)
        self.assertEqual([call for call in calls if "update" not in call], [], "something was installed")
        self.assertIn("nothing was installed", said)
        return said

    def installed(self) -> str:
        code, said, calls = self.machine.setup()
        self.assertIn("python3 -m venv --clear .venv", calls, said)
        return next(call for call in calls if " install " in call)

    def test_a_cargo_that_is_missing_is_told_before_anything_is_installed(self):
        said = self.refused()
        self.assertIn("cargo 1.85 or newer is needed", said)
        self.assertIn("none is here, Debian has 0.66.0", said)
        self.assertIn("rustup", said)
        self.assertNotIn("node", said)

    def test_all_that_is_missing_is_told_at_once(self):
        self.machine.debian(python3="3.11.2")
        self.machine.stand_in("cmake", "echo cmake version 3.18.4")
        self.machine.stand_in("cargo", "echo cargo 1.70.0")
        self.machine.stand_in("node", "echo v16.1.0")
        self.machine.stand_in("id", "echo 1000")
        said = self.refused()
        for expected in ("cmake 3.25 or newer is needed: version 3.18.4", "cargo 1.85 or newer is needed",
                         "version 1.70.0 is here", "node 18 or newer is needed", "version 16.1.0 is here",
                         "npm 1 or newer", "neither root nor sudo is at hand: ccache"):
            self.assertIn(expected, said)

    def test_node_and_npm_come_from_debian_where_its_version_will_do(self):
        self.machine.stand_in("cargo", "echo cargo 1.85.0")
        self.assertRegex(self.installed(), r"ccache nodejs npm$")

    def test_cargo_comes_from_debian_where_its_version_will_do(self):
        self.machine.debian(cargo="1.85.0+dfsg3-1", nodejs="20.19.2+dfsg-1", npm="9.2.0~ds1-3", python3="3.13.5-1")
        self.assertRegex(self.installed(), r"ccache cargo nodejs npm$")

    def test_npm_alone_is_added_to_a_node_that_will_do(self):
        self.machine.stand_in("cargo", "echo cargo 1.95.0")
        self.machine.stand_in("node", "echo v20.20.2")
        self.assertRegex(self.installed(), r"ccache npm$")

    def test_what_apt_cannot_install_beside_the_rest_is_told(self):
        self.machine.debian(installs=False, nodejs="18.20.4", npm="9.2.0", python3="3.11.2")
        self.machine.stand_in("cargo", "echo cargo 1.95.0")
        self.assertIn("node 18 or newer is needed", self.refused())

    def test_a_cargo_that_does_not_run_counts_as_missing(self):
        self.machine.stand_in("cargo", "echo error: no default toolchain is configured >&2; exit 1")
        self.assertIn("cargo 1.85 or newer is needed (it fetches the Wasmtime headers): none is here", self.refused())

    def test_cargo_is_found_in_the_home_folder(self):
        (self.folder / ".cargo/bin").mkdir(parents=True)
        self.machine.stand_in("cargo", "echo cargo 1.85.0")
        os.rename(self.machine.bin / "cargo", self.folder / ".cargo/bin/cargo")
        self.installed()

    def test_nothing_is_asked_for_that_only_the_artifacts_need_when_they_are_there(self):
        for name in (".deps/micropython/derived.wasm", ".deps/wasmtime/include/.version"):
            path = self.folder / "checkout" / name
            path.parent.mkdir(parents=True)
            path.write_text("")
        self.assertRegex(self.installed(), r" ccache$")


unittest.main(verbosity=2)
