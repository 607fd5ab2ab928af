"""Buffers of symmetric memory."""

from __future__ import annotations

from .. import _pyshmem
from .utils import AclshmemError, AclshmemInvalid, Buffer

__all__ = ["buffer", "free", "get_peer_buffer"]


def buffer(size: int, release: bool = False, except_on_del: bool = True) -> Buffer:
    """New symmetric memory of size bytes, all zero, until free. Collective. Blocks until all PEs call.

    release (freeing by the garbage collector) is refused: freeing is collective. except_on_del speaks of that and changes nothing.
    """
    if release:
        raise AclshmemInvalid("buffer: release=True would free at a moment that PEs cannot agree on; call free, or use shmem.buffer")
    try:
        return Buffer(_pyshmem.aclshmem_malloc(size), size)
    except RuntimeError as problem:
        raise AclshmemError(f"buffer: {problem}") from problem


def free(buf: Buffer) -> None:
    """Frees a buffer. Collective. Blocks until all PEs call."""
    _pyshmem.aclshmem_free(buf.addr)


def get_peer_buffer(buf: Buffer, pe: int) -> Buffer:
    """A peer's copy of a buffer as memory of this process. Does not block."""
    address = _pyshmem.aclshmem_ptr(buf.addr, pe)
    if not address:
        raise AclshmemError(f"get_peer_buffer: {buf!r} of PE {pe} has no address here: no such PE, not symmetric, or not mapped")
    return Buffer(address, buf.length)
