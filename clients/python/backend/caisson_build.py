# SPDX-License-Identifier: Apache-2.0
"""Build backend of the package `caisson`. A wheel holds the Python modules and what CMake installs as the component `library` of the
build directory that the variable CAISSON_BUILD names: libcaisson.so, caisson-isolate, and what the isolate needs."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import subprocess
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "caisson"
NEEDED = ("lib/libcaisson.so", "bin/caisson-isolate", "lib/caisson/libwasmtime.so", "share/caisson/micropython/derived.wasm")
EPOCH = (1980, 1, 1, 0, 0, 0)


def project():
    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def metadata(about):
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {about['version']}", f"Summary: {about['description']}",
             f"License-Expression: {about['license']}", f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {each}" for each in about["dependencies"]]
    for extra, needs in about["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {each} ; extra == '{extra}'" for each in needs)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (HERE / about["readme"]).read_text()])


def build_directory():
    named = os.environ.get("CAISSON_BUILD")
    if not named:
        raise SystemExit("caisson: CAISSON_BUILD is not set. Build the repository (`./dev build release`) and name its build directory: "
                         "CAISSON_BUILD=/path/to/caisson/build/release pip install …")
    directory = pathlib.Path(named)
    if not (directory / "cmake_install.cmake").is_file():
        raise SystemExit(f"caisson: CAISSON_BUILD={named} is no build directory: it has no cmake_install.cmake. `./dev build release` "
                         "makes build/release.")
    return directory


def install_library(stage):
    directory = build_directory()
    command = ["cmake", "--install", str(directory), "--strip", "--component", "library", "--prefix", str(stage)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit("caisson: the program cmake is needed to take the library out of CAISSON_BUILD; install it") from None
    missing = [name for name in NEEDED if not (stage / name).is_file()]
    if ended.returncode or missing:
        said = f"{', '.join(missing)} missing; " if missing else ""
        raise SystemExit(f"caisson: CAISSON_BUILD={directory} does not hold the whole library ({said}{ended.stderr.strip()[-500:]}). "
                         "Build it: `./dev build release`, or the target caisson_programs.")


def wheel_files(stage):
    """(name in the wheel, content, executable)"""
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"caisson/{path.relative_to(PACKAGE)}", path.read_bytes(), False
    for name in NEEDED:
        yield f"caisson/_native/{name}", (stage / name).read_bytes(), name.startswith("bin/") or name.endswith(".so")


def add(archive, name, content, executable=False):
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", len(content)


def tag():
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def wheel_text():
    return f"Wheel-Version: 1.0\nGenerator: caisson_build\nRoot-Is-Purelib: false\nTag: {tag()}\n"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    about = project()
    information = f"{about['name']}-{about['version']}.dist-info"
    folder = pathlib.Path(metadata_directory, information)
    folder.mkdir()
    (folder / "METADATA").write_text(metadata(about))
    (folder / "WHEEL").write_text(wheel_text())
    return information


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    about = project()
    name = f"{about['name']}-{about['version']}"
    information = f"{name}.dist-info"
    file_name = f"{name}-{tag()}.whl"
    with tempfile.TemporaryDirectory(prefix="caisson-wheel-") as folder:
        stage = pathlib.Path(folder)
        install_library(stage)
        with zipfile.ZipFile(pathlib.Path(wheel_directory, file_name), "w") as archive:
            record = [add(archive, *each) for each in wheel_files(stage)]
            record.append(add(archive, f"{information}/METADATA", metadata(about).encode()))
            record.append(add(archive, f"{information}/WHEEL", wheel_text().encode()))
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([*record, (f"{information}/RECORD", "", "")])
            add(archive, f"{information}/RECORD", text.getvalue().encode())
    return file_name


def build_sdist(sdist_directory, config_settings=None):
    about = project()
    name = f"{about['name']}-{about['version']}"
    files = [HERE / "pyproject.toml", HERE / "README.md", pathlib.Path(__file__), *PACKAGE.rglob("*.py"), PACKAGE / "py.typed"]
    with tarfile.open(pathlib.Path(sdist_directory, f"{name}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            archive.add(path, f"{name}/{path.relative_to(HERE)}", recursive=False)
        content = metadata(about).encode()
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return f"{name}.tar.gz"
