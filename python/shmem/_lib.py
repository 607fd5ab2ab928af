"""Finds and loads libshmem.so, once, at first need.

Loading starts a Go runtime in the process, so everything that would make it crash is looked at before: the address-space
limit, the C library, another package's files. It is loaded RTLD_LOCAL: its symbols meet nobody else's.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, Dict, Optional

from . import _abi
from ._errors import LibraryError

# Go reserves address space for its heap at start and dies without a word when it gets none.
_ADDRESS_SPACE_NEEDED = 1 << 30

CTYPES: Dict[str, Any] = {
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f64": ctypes.c_double,
    "ptr": ctypes.c_void_p,
    "str": ctypes.c_char_p,
}


class Options(ctypes.Structure):
    """gshmem_options."""

    _fields_ = [(name, CTYPES[kind]) for name, kind in _abi.OPTIONS.items()]


class OneSided(ctypes.Structure):
    """gshmem_one_sided."""

    _fields_ = [(name, CTYPES[kind]) for name, kind in _abi.ONE_SIDED.items()]


class HeapStat(ctypes.Structure):
    """gshmem_heap_stat."""

    _fields_ = [(name, CTYPES[kind]) for name, kind in _abi.HEAP_STAT.items()]


class Library:
    """The loaded library: every function of gshmem.h as an attribute without its gshmem_ prefix."""

    def __init__(self, path: str) -> None:
        """Opens the file and binds every prototype."""
        self.path = path
        self._dll = _open(path)
        for name, prototype in _abi.PROTOTYPES.items():
            setattr(self, name[len("gshmem_") :], _bind(self._dll, path, name, prototype))
        # Copying a few bytes takes less than giving the interpreter's lock away and getting it back.
        self.put_small = _bind(ctypes.PyDLL(path, handle=self._dll._handle), path, "gshmem_put", _abi.PROTOTYPES["gshmem_put"])
        have = self.abi_version()
        if have != _abi.ABI_VERSION:
            raise LibraryError(f"{path} has ABI version {have}, this Python package needs {_abi.ABI_VERSION}; reinstall so that both come from one build")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Tells type checkers that the bound functions exist; only a missing name comes here."""
        raise AttributeError(f"gshmem_{name} is not part of the C interface")


def _open(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path, mode=getattr(os, "RTLD_NOW", 2) | getattr(os, "RTLD_LOCAL", 0))
    except OSError as problem:
        raise LibraryError(f"cannot load {path}: {problem}") from problem


def _bind(dll: ctypes.CDLL, path: str, name: str, prototype: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = getattr(dll, name)
    except AttributeError:
        raise LibraryError(f"{path} lacks {name}; reinstall so that library and Python package come from one build") from None
    result, _, arguments = prototype.partition(":")
    function.restype = CTYPES[result]  # type: ignore[attr-defined]
    function.argtypes = [CTYPES[word] for word in arguments.split()]  # type: ignore[attr-defined]
    return function


def package_directory() -> str:
    """The folder of this package."""
    return os.path.dirname(os.path.abspath(__file__))


def library_path() -> str:
    """Where libshmem.so is: SHMEM_LIBRARY when set, else beside this package; raises LibraryError when it is not there."""
    chosen = os.environ.get("SHMEM_LIBRARY")
    path = chosen or os.path.join(package_directory(), "lib", "libshmem.so")
    if not os.path.isfile(path):
        told = "SHMEM_LIBRARY names it" if chosen else "build it with `./build.sh lib`, or install a wheel"
        raise LibraryError(f"there is no library at {path} ({told})")
    return path


def include_directory() -> str:
    """Where gshmem.h is: inside an installed package, else in the source tree."""
    inside = os.path.join(package_directory(), "include")
    if os.path.isdir(inside):
        return inside
    return os.path.abspath(os.path.join(package_directory(), "..", "..", "capi", "include"))


def obstacle() -> Optional[str]:
    """Says why the library cannot run in this process, or None."""
    return _address_space_obstacle() or _c_library_obstacle()


def _address_space_obstacle() -> Optional[str]:
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError):
        return None
    if soft == resource.RLIM_INFINITY or soft >= _ADDRESS_SPACE_NEEDED:
        return None
    return (
        f"the address space of this process is limited to {soft >> 20} MiB and the library needs at least "
        f"{_ADDRESS_SPACE_NEEDED >> 20} MiB of addresses; raise it with `ulimit -v unlimited`"
    )


def _c_library_obstacle() -> Optional[str]:
    try:
        said = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        said = None
    if said:
        return None
    return "this Python runs on a C library other than glibc (musl?), which cannot load a Go library; use a glibc-based image"


_guard = threading.Lock()
_loaded: Optional[Library] = None


def library() -> Library:
    """Loads libshmem.so at the first call and gives the same object ever after; raises LibraryError with the cure."""
    if _loaded is not None:
        return _loaded
    return _load()


def _load() -> Library:
    global _loaded
    with _guard:
        if _loaded is None:
            from . import _conflict

            reason = obstacle()
            if reason:
                raise LibraryError(reason)
            _conflict.refuse_mixed_install()
            _loaded = Library(library_path())
    return _loaded


def loaded() -> Optional[Library]:
    """The library when it is already loaded, without loading it."""
    return _loaded
