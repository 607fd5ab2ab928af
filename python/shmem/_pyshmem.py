"""The functions and classes that Ascend's binding module of this name has, over the same C functions.

Addresses and streams are ints; stream 0 is the library's default stream. A call without a result raises what it failed with.
Most names are made from the table at their first use; `dir()` lists them all.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any, Callable, Iterator, List, Optional, Tuple, Union

from . import _ascend
from ._ascend import UID_BYTES, UID_VERSION, bind

# ---- enumerations and attributes ------------------------------------------------------------------------------------


class OpEngineType(enum.IntEnum):
    """Engines that move data; a mask."""

    MTE = 1
    SDMA = 2
    ROCE = 4
    UDMA = 8


class InitStatus(enum.IntEnum):
    """How far init has come."""

    NOT_INITIALIZED = 0
    SHM_CREATED = 1
    INITIALIZED = 2
    INVALID = 2147483647


class SignalOp(enum.IntEnum):
    """How a signal changes its word."""

    SIGNAL_SET = 0
    SIGNAL_ADD = 1


class CmpOp(enum.IntEnum):
    """Comparisons of waits and tests."""

    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_GE = 3
    CMP_LT = 4
    CMP_LE = 5


class MemType(enum.IntEnum):
    """Which range of symmetric memory."""

    HOST_SIDE = 0
    DEVICE_SIDE = 1


class OptionalAttr:
    """Options of init, in seconds where they are times."""

    def __init__(self) -> None:
        """The defaults."""
        self.version = (1 << 16) + ctypes.sizeof(_ascend.OptionStruct)
        self.data_op_engine_type = OpEngineType.MTE
        self.shm_init_timeout = 120
        self.shm_create_timeout = 120
        self.control_operation_timeout = 120
        self.sockFd = -1


class InitAttr:
    """What init is told: this PE, how many there are, where they meet, how much memory each gives."""

    def __init__(self) -> None:
        """All unset but the options."""
        self.my_rank = 0
        self.n_ranks = 0
        self.ip_port = ""
        self.local_mem_size = 0
        self.option_attr = OptionalAttr()
        self.option_attr.sockFd = 0


class TeamConfig:
    """Configuration of a team."""

    def __init__(self, version: int = 0) -> None:
        """The version field, and no contexts."""
        self.version = version
        self.num_contexts = 0


class UniqueId:
    """A unique id taken apart."""

    def __init__(self) -> None:
        """An empty one of the current version."""
        self.version = UID_VERSION
        self.my_pe = 0
        self.n_pes = 0
        self._internal = bytes(124)

    @property
    def internal(self) -> bytes:
        """The 124 bytes that matter; setting another number of bytes raises ValueError."""
        return self._internal

    @internal.setter
    def internal(self, value: bytes) -> None:
        """Takes 124 bytes."""
        if len(value) != 124 or self.version != UID_VERSION:
            raise ValueError(f"internal has {len(value)} bytes and version {self.version}; it needs 124 and {UID_VERSION}")
        self._internal = bytes(value)


# ---- life -----------------------------------------------------------------------------------------------------------


def _struct(attributes: InitAttr) -> _ascend.AttrStruct:
    given, option = _ascend.AttrStruct(), attributes.option_attr
    given.my_pe, given.n_pes = attributes.my_rank, attributes.n_ranks
    given.ip_port = attributes.ip_port.encode()[:63]
    given.local_mem_size = attributes.local_mem_size
    for name in ("version", "data_op_engine_type", "shm_init_timeout", "shm_create_timeout", "control_operation_timeout", "sockFd"):
        setattr(given.option_attr, name, int(getattr(option, name)))
    return given


def aclshmem_init(attributes: InitAttr) -> int:
    """Comes up at attributes.ip_port; 0 or an error code, whose words are logged. Collective. Blocks until all PEs came."""
    given = _struct(attributes)
    init = bind("aclshmemx_init_attr", "u32 ptr")
    return int(_ascend.interruptible(lambda: init(1, ctypes.addressof(given))))


def aclshmem_get_unique_id() -> bytes:
    """The 136 bytes of a new job's unique id; this process listens for it from now on. Does not block."""
    uid = ctypes.create_string_buffer(UID_BYTES)
    if bind("aclshmemx_get_uniqueid", "ptr")(ctypes.addressof(uid)) != 0:
        raise RuntimeError(f"aclshmem_get_unique_id: {_ascend.words()}")
    return uid.raw


def aclshmem_init_using_unique_id(mype: int, npes: int, mem_size: int, uid: Union[bytes, str]) -> int:
    """Comes up with a unique id; 0 or an error code, -1 when the id is too short. Collective. Blocks until all PEs came."""
    raw = uid.encode("latin-1") if isinstance(uid, str) else bytes(uid)
    if len(raw) < UID_BYTES:
        return -1
    given, room = _struct(InitAttr()), ctypes.create_string_buffer(raw[:UID_BYTES], UID_BYTES)
    status = bind("aclshmemx_set_attr_uniqueid_args", "i32 i32 i64 ptr ptr")(mype, npes, mem_size, ctypes.addressof(room), ctypes.addressof(given))
    if status:
        return int(status)
    init = bind("aclshmemx_init_attr", "u32 ptr")
    return int(_ascend.interruptible(lambda: init(8, ctypes.addressof(given)) if room else 0))


def aclshmem_finalize() -> int:
    """Leaves the current instance; 0 or an error code. Collective. Blocks until all PEs leave."""
    return int(_ascend.interruptible(bind("aclshmem_finalize")))


def aclshmemx_finalize(instance_id: int) -> int:
    """Leaves one instance; 0 or an error code. Collective. Blocks until its PEs leave."""
    finalize = bind("aclshmemx_finalize", "u64")
    return int(_ascend.interruptible(lambda: finalize(instance_id)))


def aclshmemx_init_status() -> InitStatus:
    """How far the current instance is. Does not block."""
    return InitStatus(bind("aclshmemx_init_status")())


_DECRYPT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
_LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)
_kept: List[Any] = []  # callbacks the library may still call
_CIPHER_LIMIT = 10 << 20


def set_conf_store_tls(enable: bool, tls_info: str) -> int:
    """Whether the key of set_conf_store_tls_key is the job's secret; connections are encrypted in any case. 0. Does not block."""
    info = tls_info.encode()
    return int(bind("aclshmemx_set_conf_store_tls", "u32 ptr u32")(1 if enable else 0, info, len(info)))


def set_conf_store_tls_key(tls_pk: str, tls_pk_pw: str, py_decrypt_func: Optional[Callable[[str], str]]) -> int:
    """The key and its password, which the function decrypts during init. 0 or an error code. Does not block."""
    handler = ctypes.c_void_p()
    if py_decrypt_func is not None:
        callback = _DECRYPT(_decryptor(py_decrypt_func))
        _kept.append(callback)
        handler = ctypes.cast(callback, ctypes.c_void_p)
    key, password = tls_pk.encode(), tls_pk_pw.encode()
    return int(bind("aclshmemx_set_config_store_tls_key", "ptr u32 ptr u32 ptr")(key, len(key), password, len(password), handler))


def _decryptor(function: Callable[[str], str]) -> Callable[..., int]:
    def decrypt(cipher: int, length: int, plain: int, room: Any) -> int:
        try:
            if length > _CIPHER_LIMIT:
                return -1
            told = function(ctypes.string_at(cipher, length).decode()).encode()
            if len(told) > room[0]:
                return -1
            ctypes.memmove(plain, told, len(told))
            room[0] = len(told)
            return 0
        except Exception as problem:  # it must not travel through C; the library words the failure
            import sys

            print(f"shmem: the decrypt function raised {problem!r}", file=sys.stderr)
            return -1

    return decrypt


def set_extern_logger(func: Callable[[int, str], None]) -> int:
    """Gives every message of the library to a function, on the thread it comes from; only the first function stays. 0. Does not block."""

    def log(level: int, text: bytes) -> None:
        func(level, text.decode("utf-8", "replace"))

    callback = _LOGGER(log)
    _kept.append(callback)
    return int(bind("aclshmemx_set_extern_logger", "ptr")(ctypes.cast(callback, ctypes.c_void_p)))


def set_log_level(level: int) -> int:
    """0 debug to 4 fatal; SHMEM_LOG_LEVEL wins. 0 or an error code. Does not block."""
    return int(bind("aclshmemx_set_log_level", "i32")(level))


def aclshmem_global_exit(status: int) -> None:
    """Ends every PE of the current instance with this exit status, this process too. Does not block; returns only before init."""
    bind("aclshmem_global_exit", "i32", "none")(status)


# ---- memory ---------------------------------------------------------------------------------------------------------


def _address(name: str, arguments: str, *values: int) -> int:
    function = bind(name, arguments, "ptr")

    def call() -> Tuple[Any, str]:
        found = function(*values)
        return found, "" if found else _ascend.words()

    found, why = _ascend.interruptible(call)
    if not found:
        raise RuntimeError(f"{name}{values}: {why or 'size 0 has no address'}")
    return int(found)


def aclshmem_malloc(size: int) -> int:
    """The address of new device-side memory, all zero; RuntimeError when there is none. Collective. Blocks until all PEs call."""
    return _address("aclshmem_malloc", "size", size)


def aclshmem_calloc(nmemb: int, size: int) -> int:
    """The same for nmemb elements. Collective. Blocks until all PEs call."""
    return _address("aclshmem_calloc", "size size", nmemb, size)


def aclshmem_align(alignment: int, size: int) -> int:
    """The same at a multiple of a power of two. Collective. Blocks until all PEs call."""
    return _address("aclshmem_align", "size size", alignment, size)


def aclshmem_free(ptr: int) -> None:
    """Frees a block. Collective. Blocks until all PEs call."""
    free = bind("aclshmem_free", "ptr", "none")
    _ascend.interruptible(lambda: _ascend.checked("aclshmem_free", lambda: free(ptr)))


def aclshmem_ptr(ptr: int, peer: int) -> int:
    """The address here of a peer's copy, 0 when there is none. Does not block."""
    found = bind("aclshmem_ptr", "ptr i32", "ptr")(ptr, peer)
    _ascend.last_status()
    return int(found or 0)


def aclshmemx_get_heap_base(mem_type: Optional[MemType] = None) -> int:
    """The first address of a range, 0 when it is not set up; None means device side. Does not block."""
    side = MemType.DEVICE_SIDE if mem_type is None else mem_type
    return int(bind("aclshmemx_get_heap_base", "i32", "ptr")(int(side)) or 0)


# ---- teams and numbers ----------------------------------------------------------------------------------------------


def team_my_pe(team_id: int) -> int:
    """This PE's number in a team, -1 when it is none. Does not block."""
    return int(bind("aclshmem_team_my_pe", "i32")(team_id))


def team_n_pes(team_id: int) -> int:
    """How many members a team has, -1 when it is none. Does not block."""
    return int(bind("aclshmem_team_n_pes", "i32")(team_id))


def my_pe(team: Optional[int] = None) -> int:
    """This PE's number in the current instance, or in a team; -1 without. Does not block."""
    return int(bind("aclshmem_my_pe")()) if team is None else team_my_pe(team)


def pe_count(team: Optional[int] = None) -> int:
    """How many PEs the current instance, or a team, has; -1 without. Does not block."""
    return int(bind("aclshmem_n_pes")()) if team is None else team_n_pes(team)


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """A team of every stride-th member; -1 for a PE outside, a negative code on failure. Collective over the new team. Blocks until its members call."""
    team = ctypes.c_int(-1)
    split = bind("aclshmem_team_split_strided", "i32 i32 i32 i32 ptr")
    status = _ascend.interruptible(lambda: split(parent, start, stride, size, ctypes.addressof(team)))
    return int(status) if status else team.value


def team_split_2d(parent: int, x_range: int) -> Tuple[int, int]:
    """The row and the column of this PE in a grid x_range wide. Collective over the parent. Blocks until its members call."""
    x, y = ctypes.c_int(-1), ctypes.c_int(-1)
    split = bind("aclshmem_team_split_2d", "i32 i32 ptr ptr")

    def call() -> str:
        return _ascend.words() if split(parent, x_range, ctypes.addressof(x), ctypes.addressof(y)) else ""

    why = _ascend.interruptible(call)
    if why:
        raise RuntimeError(why)
    return x.value, y.value


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    """A member's number in another team, -1 when it is not in it. Does not block."""
    return int(bind("aclshmem_team_translate_pe", "i32 i32 i32")(src_team, src_pe, dest_team))


def team_destroy(team: int) -> None:
    """Ends a team's number here. Does not block."""
    destroy = bind("aclshmem_team_destroy", "i32", "none")
    _ascend.checked("team_destroy", lambda: destroy(team))


def aclshmem_team_get_config(team: int) -> TeamConfig:
    """A team's configuration; RuntimeError when there is no such team. Does not block."""
    given = _ascend.TeamConfigStruct()
    if bind("aclshmem_team_get_config", "i32 ptr")(team, ctypes.addressof(given)):
        raise RuntimeError(f"aclshmem_team_get_config: {_ascend.words()}")
    config = TeamConfig(given.version)
    config.num_contexts = given.num_contexts
    return config


def aclshmem_info_get_version() -> Tuple[int, int]:
    """Major and minor version of the interface. Does not block."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    bind("aclshmem_info_get_version", "ptr ptr", "none")(ctypes.addressof(major), ctypes.addressof(minor))
    return major.value, minor.value


def aclshmem_info_get_name() -> str:
    """The name of the interface with its version. Does not block."""
    name = ctypes.create_string_buffer(256)
    bind("aclshmem_info_get_name", "ptr", "none")(ctypes.addressof(name))
    return name.value.decode()


def get_ffts_config() -> int:
    """A number for kernels; 0 on hosts. Does not block."""
    return int(bind("util_get_ffts_config", "", "u64")())


# ---- the table of everything else -----------------------------------------------------------------------------------
from ._pyshmem_call import wrap  # noqa: E402
from ._pyshmem_table import signatures  # noqa: E402  (after the functions that have bodies of their own)


def __getattr__(name: str) -> Callable[..., Any]:
    """Makes a function of the table at its first use."""
    row = signatures().get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = function = wrap(name, *row)
    return function


def _all_names() -> Iterator[str]:
    yield from (n for n in globals() if not n.startswith("_"))
    yield from signatures()


def __dir__() -> List[str]:
    """Every name, made or not."""
    return sorted(set(_all_names()))
