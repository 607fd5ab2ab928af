"""The Ascend face of the library as Python calls it: binding, structures, interruptible calls, errors.

Calls that can wait run on a helper thread while the main thread looks at signals, so that Ctrl-C works; the call itself goes on
until its own limit.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _call
from ._lib import library, loaded

UID_BYTES = 136
UID_VERSION = (1 << 16) + UID_BYTES
WORLD = 0

KINDS: Dict[str, Any] = {
    "ptr": ctypes.c_void_p,
    "size": ctypes.c_size_t,
    "diff": ctypes.c_ssize_t,
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "char": ctypes.c_char,
    "none": None,
}


class OptionStruct(ctypes.Structure):
    """aclshmem_init_optional_attr_t."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("data_op_engine_type", ctypes.c_int),
        ("shm_init_timeout", ctypes.c_uint32),
        ("shm_create_timeout", ctypes.c_uint32),
        ("control_operation_timeout", ctypes.c_uint32),
        ("sockFd", ctypes.c_int32),
    ]


class AttrStruct(ctypes.Structure):
    """aclshmemx_init_attr_t."""

    _fields_ = [
        ("my_pe", ctypes.c_int),
        ("n_pes", ctypes.c_int),
        ("ip_port", ctypes.c_char * 64),
        ("local_mem_size", ctypes.c_uint64),
        ("option_attr", OptionStruct),
        ("comm_args", ctypes.c_void_p),
        ("instance_id", ctypes.c_uint64),
    ]


class TeamConfigStruct(ctypes.Structure):
    """aclshmem_team_config_t."""

    _fields_ = [("version", ctypes.c_int32), ("num_contexts", ctypes.c_int32), ("uniqueid", ctypes.c_uint64), ("padding", ctypes.c_char * 48)]


_bound: Dict[str, Callable[..., Any]] = {}


def bind(name: str, arguments: str = "", result: str = "i32") -> Callable[..., Any]:
    """A function of aclshmem.h; the kinds of its arguments separated by spaces."""
    function = _bound.get(name)
    if function is None:
        # An object of its own: ctypes keeps one set of argument types per function object.
        function = library()._dll[name]
        function.restype = KINDS[result]
        function.argtypes = [KINDS[kind] for kind in arguments.split()]
        _bound[name] = function
    return function


def last_status() -> int:
    """The first failure of this thread's calls that have no result, 0 without one; asking clears it."""
    return int(bind("aclshmem_cpu_last_status")())


def interruptible(call: Callable[[], Any]) -> Any:
    """Runs a call that can wait. On the main thread, signal handlers run meanwhile; what they raise leaves the call behind."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    box: List[Tuple[Any, Optional[BaseException]]] = []
    done = threading.Event()

    def run() -> None:
        try:
            box.append((call(), None))
        except BaseException as problem:
            box.append((None, problem))
        done.set()

    threading.Thread(target=run, name="shmem-call", daemon=True).start()
    while not done.wait(0.05):
        pass
    answer, problem = box[0]
    if problem is not None:
        raise problem
    return answer


def checked(what: str, call: Callable[[], Any]) -> Any:
    """Runs a call without a status of its own and raises what it failed with."""
    last_status()
    answer = call()
    status = last_status()
    if status:
        _call.fail(status, what)
    return answer


def words() -> str:
    """Why this thread's last call failed."""
    text = library().last_error()
    return text.decode("utf-8", "replace") if text else ""


def pe_numbers() -> Optional[Tuple[int, int]]:
    """This PE and how many there are in the current instance; None when none is up. Loads nothing."""
    if loaded() is None or bind("aclshmemx_init_status")() != 2:
        return None
    return int(bind("aclshmem_my_pe")()), int(bind("aclshmem_n_pes")())
