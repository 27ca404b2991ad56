# SPDX-License-Identifier: Apache-2.0
"""What a logic block's script is refused, in every runtime: the layer that gives clear errors.

It is never the boundary. Script and guard share an interpreter, and a script that tries hard enough
finds what is hidden here; the walls around the process are what holds it. The guard is for everyone
else: a script that starts a program, opens a socket or imports what is not there learns at once which
rule says no, by a PermissionError or an ImportError that names the policy.

    install(policy)      once, in the interpreter of the run, before the script, after the libraries
                         of a prepared interpreter have been imported

The policy is data that the host passes in (make_policy.py makes it of python-packages.toml):

    runtime        "cpython", "native" or "oci"
    libraries      top-level module -> {"package", "runtimes": those that have it, "missing": why not here}
    dependencies   top-level modules that come with the libraries: theirs to import, not the script's
    refused        top-level module -> reason, refused by name
    processes      True when the operator's policy lets a script start processes
    environment    values for HOME, PATH, TMPDIR and LANG (optional)

Whose import it is, is judged by the nearest code on the stack that is not of the standard library. Its
globals must be those of the module in sys.modules that they say they are; whatever is not, is the
script's.
"""

import builtins
import importlib
import os
import sys

import caisson_loop

ENVIRONMENT = {"HOME": "/tmp", "PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}

# Never for a script, whatever the list says.
_HOST_DOORS = {
    "js": "it leads to the host's JavaScript",
    "pyodide": "it leads to the host's JavaScript",
    "pyodide_js": "it leads to the host's JavaScript",
    "cffi": "it calls native code past Python",
    "_cffi_backend": "it calls native code past Python",
    "_posixsubprocess": "it starts processes",
}
# Only for libraries of the list, which need it.
_NATIVE_CALLS = {"ctypes": "it calls native code past Python", "_ctypes": "it calls native code past Python"}
# These modules of the standard library must be importable, and import a door themselves.
_DOORKEEPERS = {"_posixsubprocess": ("subprocess", "multiprocessing.util")}

_BUILD_SETTINGS = "_sysconfigdata_"  # a module of the standard library whose name ends in the machine's

_PROCESSES = "a script starts no programs and no processes"
_NETWORK = "a script has no network; what it needs comes in its documents"
_RELOAD = "a script reloads no modules"

_PROCESS_FUNCTIONS = (
    "system popen fork forkpty vfork startfile posix_spawn posix_spawnp fork_exec "
    "execl execle execlp execlpe execv execve execvp execvpe "
    "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe"
).split()
_SOCKET_FUNCTIONS = (
    "socketpair fromfd fromshare create_connection create_server dup getaddrinfo gethostbyaddr gethostbyname "
    "gethostbyname_ex getnameinfo getfqdn getservbyname getservbyport getprotobyname"
).split()
_SUBPROCESS_FUNCTIONS = "run call check_call check_output getoutput getstatusoutput _fork_exec".split()


class ImportRefused(ModuleNotFoundError):
    """A subclass of what a missing module raises, so that a library that can do without goes on."""


def _refusal(name, policy, reason):
    def refused(*_args, **_kwargs):
        raise PermissionError(f"{name} is refused: {reason} (policy: {policy})")

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    return refused


# --- Imports --------------------------------------------------------------------------------------


def _module_of(scope):
    """The name of the module whose globals `scope` are; None when they are no module's, or made up."""
    name = scope.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return name if module is not None and getattr(module, "__dict__", None) is scope else None


class _Imports:
    """The policy's rules for imports."""

    def __init__(self, policy):
        self.runtime = policy["runtime"]
        self.libraries = policy["libraries"]
        self.here = frozenset(name for name, entry in self.libraries.items() if self.runtime in entry["runtimes"])
        self.trusted = self.here | frozenset(policy["dependencies"])
        self.refused = dict(policy["refused"])
        self.doors = dict(_HOST_DOORS)
        if policy.get("processes"):
            del self.doors["_posixsubprocess"]
        self.standard = frozenset(sys.stdlib_module_names) | {"__main__"}
        # What everyone may import without a question asked.
        self.free = (self.standard | self.here) - set(self.refused) - set(self.doors) - set(_NATIVE_CALLS)

    def importers(self, frame):
        """(the module whose code imports, the module on whose behalf it does), None for the script's.
        The second one is the nearest that is not of the standard library."""
        direct = owner = None
        while frame is not None:
            owner = _module_of(frame.f_globals)
            root = owner.partition(".")[0] if owner else None
            if root not in ("importlib", __name__):
                direct = direct or owner
                if root is None or root not in self.standard:
                    return direct, owner
            frame = frame.f_back
        return direct, None

    def reason_against(self, name, frame):
        """Why the code that `frame` runs may not import `name`; None when it may, or when nobody has it."""
        root = name.partition(".")[0]
        direct, owner = self.importers(frame)
        by = owner.partition(".")[0] if owner else None
        if by and by == root:
            return None
        if root in self.doors:
            return None if direct in _DOORKEEPERS.get(root, ()) else self.doors[root]
        if root in _NATIVE_CALLS:
            return None if by in self.trusted else _NATIVE_CALLS[root]
        if by:
            return self.refused[root] if root in self.standard else None
        return self.reason_for_script(root)

    def reason_for_script(self, root):
        if root in self.refused:
            return self.refused[root]
        entry = self.libraries.get(root)
        if entry is None:
            return f"it is neither in the standard library nor among the libraries of a block: {', '.join(sorted(self.libraries))}"
        having = entry["runtimes"]
        where = f"the runtime {' or '.join(having)} has it" if having else "no runtime has it"
        return f"the runtime {self.runtime} lacks it ({entry.get('missing', 'it is not installed')}); {where}"

    def check(self, name, frame):
        """Raises ImportRefused where the code that `frame` runs may not import `name`."""
        if type(name) is not str:
            return
        root = name.partition(".")[0]
        if root in self.free or root.startswith(_BUILD_SETTINGS):
            return
        reason = self.reason_against(name, frame)
        if reason is not None:
            raise ImportRefused(f"import of {name[:100]!r} is refused: {reason} (policy: imports)", name=name)


class _Finder:
    """First on sys.meta_path: sees what reaches the import system by other ways than `import`."""

    def __init__(self, imports):
        self._imports = imports

    def find_spec(self, name, path=None, target=None):
        self._imports.check(name, sys._getframe(1))
        return None

    def invalidate_caches(self):
        pass


def _guard_imports(imports, patches):
    original_import, original_module = builtins.__import__, importlib.import_module

    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0:
            imports.check(name, sys._getframe(1))
        module = original_import(name, globals, locals, fromlist, level)
        if patches.waiting:
            patches.apply()
        return module

    def import_module(name, package=None):
        if not name.startswith("."):
            imports.check(name, sys._getframe(1))
        module = original_module(name, package)
        if patches.waiting:
            patches.apply()
        return module

    builtins.__import__ = importlib.__import__ = __import__
    importlib.import_module = import_module
    importlib.reload = _refusal("importlib.reload", "imports", _RELOAD)
    sys.meta_path.insert(0, _Finder(imports))


# --- Functions ------------------------------------------------------------------------------------


class _Patches:
    """Replaces functions of modules, at once or as soon as they have been imported."""

    def __init__(self, patches):
        self.waiting = dict(patches)
        self._busy = False

    def apply(self):
        if self._busy or not self._due():
            return
        self._busy = True
        try:
            for name in list(self.waiting):
                module = sys.modules.get(name)
                if module is not None and not _is_being_imported(module):
                    self.waiting.pop(name)(module)
        finally:
            self._busy = False


    def _due(self):  # asked after every import statement
        for name in self.waiting:
            if name in sys.modules:
                return True
        return False


def _is_being_imported(module):
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _replace(module, names, policy, reason):
    for name in names:
        if hasattr(module, name):
            setattr(module, name, _refusal(f"{module.__name__}.{name}", policy, reason))


def _patch_os(module):
    _replace(module, _PROCESS_FUNCTIONS, "processes", _PROCESSES)
    if module is os:  # the same error where a platform lacks them; libraries ask whether there is a fork
        for name in _PROCESS_FUNCTIONS:
            if name.startswith(("system", "exec", "spawn")) and not hasattr(module, name):
                setattr(module, name, _refusal(f"os.{name}", "processes", _PROCESSES))


def _patch_subprocess(module):
    _replace(module, _SUBPROCESS_FUNCTIONS, "processes", _PROCESSES)
    # The class stays one that libraries can name and inherit from.
    module.Popen.__init__ = _refusal("subprocess.Popen", "processes", _PROCESSES)


def _patch_raw_socket(module):
    base = module.socket
    refused = _refusal("socket.socket", "network", _NETWORK)
    module.socket = module.SocketType = type("socket", (base,), {"__init__": refused, "__module__": module.__name__, "__slots__": ()})
    _replace(module, _SOCKET_FUNCTIONS, "network", _NETWORK)


def _patch_socket(module):
    module.socket.__init__ = _refusal("socket.socket", "network", _NETWORK)
    _replace(module, _SOCKET_FUNCTIONS, "network", _NETWORK)


def _function_patches(policy):
    patches = {"_socket": _patch_raw_socket, "socket": _patch_socket, "asyncio.selector_events": caisson_loop.patch}
    if not policy.get("processes"):
        patches |= {"os": _patch_os, "posix": _patch_os, "_posixsubprocess": _patch_os, "subprocess": _patch_subprocess, "pty": _patch_os}
    return patches


# --- Environment ----------------------------------------------------------------------------------


def _reduce_environment(chosen):
    """HOME, PATH, TMPDIR and LANG, nothing else: also where C code and module posix look."""
    values = {**ENVIRONMENT, **{name: value for name, value in chosen.items() if name in ENVIRONMENT}}
    os.environ.clear()
    os.environ.update(values)
    posix = sys.modules.get("posix")
    if posix is not None and hasattr(posix, "environ"):
        posix.environ.clear()
        posix.environ.update({os.fsencode(name): os.fsencode(value) for name, value in values.items()})


_installed = False


def install(policy):
    global _installed
    if _installed:
        raise RuntimeError("the guard is installed already; an interpreter runs one script")
    _installed = True
    _reduce_environment(policy.get("environment", {}))
    patches = _Patches(_function_patches(policy))
    patches.apply()
    _guard_imports(_Imports(policy), patches)
