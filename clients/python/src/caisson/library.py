# SPDX-License-Identifier: Apache-2.0
"""libcaisson.so by ctypes: its functions, their answers as values, their failures as CaissonError."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
from typing import Any

API_VERSION = 1
ON_EVENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)

_TEXT, _SIZE, _HANDLE = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
# An answer is a void pointer: as a char pointer ctypes would copy it and lose what must be freed.
_ANSWERS = {
    "compile": [_TEXT, _SIZE, _TEXT],
    "check_ir": [_TEXT, _SIZE, _TEXT],
    "engine_create": [_TEXT, ctypes.POINTER(_HANDLE)],
    "engine_describe": [_HANDLE],
    "run": [_HANDLE, _TEXT, _SIZE, _TEXT, _SIZE, _TEXT, _HANDLE, ON_EVENT, _HANDLE],
    "resume": [_HANDLE, _TEXT, _TEXT, _SIZE, _TEXT, _HANDLE, ON_EVENT, _HANDLE],
    "call": [_HANDLE, _TEXT, _SIZE, _TEXT, _SIZE, _TEXT, _HANDLE],
    "cancel_create": [],
}
_ACTIONS = ("free", "engine_destroy", "cancel_request", "cancel_destroy")


class CaissonError(Exception):
    """Caisson failed, or refused what it was given. `code` is one of the catalogue api/errors.yaml; `hint` and `diagnostics` may be
    empty."""

    def __init__(self, code: str, message: str, hint: str = "", diagnostics: list[dict[str, Any]] | None = None) -> None:
        super().__init__(f"{message} [{code}]" + (f"\n{hint}" if hint else ""))
        self.code, self.message, self.hint = code, message, hint
        self.diagnostics = diagnostics or []


def library_path() -> str:
    """CAISSON_LIBRARY, else what the wheel brought."""
    named = os.environ.get("CAISSON_LIBRARY")
    if named:
        return named
    return str(pathlib.Path(__file__).resolve().parent / "_native" / "lib" / "libcaisson.so")


@functools.cache
def load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise CaissonError("library.missing", f"the library cannot be loaded: {error}",
                           "install a wheel of caisson, or name a libcaisson.so with CAISSON_LIBRARY") from error
    library.caisson_version.restype = _TEXT
    library.caisson_version.argtypes = []
    for name, arguments in _ANSWERS.items():
        function = getattr(library, f"caisson_{name}")
        function.argtypes, function.restype = arguments, _HANDLE
    for name in _ACTIONS:
        function = getattr(library, f"caisson_{name}")
        function.argtypes, function.restype = [_HANDLE], None
    found = library.caisson_api_version()
    if found != API_VERSION:
        raise CaissonError("library.missing", f"{path} has version {found} of the interface, but this package needs {API_VERSION}",
                           "install the package and the library of one version")
    return library


def version() -> str:
    return load().caisson_version().decode()


def answer(pointer: int | None) -> dict[str, Any]:
    """The answer behind the pointer, which is given back. A failure is raised."""
    if not pointer:
        raise MemoryError("libcaisson had no memory for its answer")
    try:
        text = ctypes.string_at(pointer)
    finally:
        load().caisson_free(pointer)
    value = json.loads(text)
    if value["ok"]:
        return value
    error = value["error"]
    raise CaissonError(error["code"], error["message"], error.get("hint", ""), value.get("diagnostics"))


def options_text(options: dict[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in options.items() if value is not None}).encode()
