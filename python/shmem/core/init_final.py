"""Coming up and leaving."""

from __future__ import annotations

import os
from typing import Any, Optional

from .. import _ascend, _pyshmem
from .._pyshmem import UniqueId as UniqueID
from .utils import LEVELS, AclshmemError, AclshmemInvalid, setup_aclshmem_logger

__all__ = ["UniqueID", "finalize", "get_unique_id", "get_version", "init"]


def get_version() -> str:
    """The interface's version, as libaclshmem_version=1.1. Does not block."""
    major, minor = _pyshmem.aclshmem_info_get_version()
    return f"libaclshmem_version={major}.{minor}"


def get_unique_id(empty: bool = False) -> bytes:
    """The 136 bytes of a new job's unique id; with empty, as many zero bytes to receive one into. Does not block."""
    if empty:
        return bytes(_ascend.UID_BYTES)
    try:
        return _pyshmem.aclshmem_get_unique_id()
    except RuntimeError as problem:
        raise AclshmemError(f"get_unique_id: {problem}") from problem


def init(
    device: Any = None,
    uid: Optional[bytes] = None,
    rank: Optional[int] = None,
    nranks: Optional[int] = None,
    mpi_comm: Any = None,
    initializer_method: str = "",
    mem_size: Optional[int] = None,
) -> None:
    """Comes up with a unique id (initializer_method "uid"). Collective. Blocks until all PEs came.

    device names where the caller's own tensors are and changes nothing here; mpi_comm is refused, since the method is "uid".
    """
    level = os.environ.get("SHMEM_LOG_LEVEL", "ERROR")
    setup_aclshmem_logger(level if level in LEVELS else "ERROR")
    if initializer_method != "uid":
        raise AclshmemInvalid(f"init: initializer_method is {initializer_method!r}; there is 'uid' (use shmem.init for others)")
    if mpi_comm is not None:
        raise AclshmemInvalid("init: mpi_comm has no meaning with initializer_method='uid'")
    if uid is None or rank is None or nranks is None or mem_size is None:
        missing = [name for name, value in (("uid", uid), ("rank", rank), ("nranks", nranks), ("mem_size", mem_size)) if value is None]
        raise AclshmemInvalid(f"init: {', '.join(missing)} must be given")
    status = _pyshmem.aclshmem_init_using_unique_id(rank, nranks, mem_size, uid)
    if status != 0:
        raise AclshmemError(f"init: failed with {status} as PE {rank} of {nranks}; the log has the reason")


def finalize() -> None:
    """Leaves. Collective. Blocks until all PEs leave."""
    status = _pyshmem.aclshmem_finalize()
    if status != 0:
        raise AclshmemError(f"finalize: failed with {status}; the log has the reason")
