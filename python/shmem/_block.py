"""Blocks of symmetric memory and who keeps them.

A Block is one reference to a block of the core. Whatever shows its bytes (a tensor's storage, a Buffer, a peer view) holds
the same Block object; when the last of them dies, on whatever thread, the block is dropped: a local note in the core that
never waits and never talks to a peer.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Dict, Optional, Type

from . import _abi
from ._call import check
from ._lib import library


class Block:
    """One block of a world's heap: its first byte here and its length."""

    __slots__ = ("__weakref__", "_drop", "_getpid", "_pid", "address", "handle", "nbytes", "on_device", "team", "world")

    def __init__(self, world: Any, handle: int, address: int, nbytes: int, team: Any = None, on_device: bool = False) -> None:
        """Takes over the reference that an allocation gave."""
        self.world = world
        self.team = team
        self.on_device = on_device
        self.handle = handle
        self.address = address
        self.nbytes = nbytes
        # Kept here because module globals may be gone when the interpreter ends.
        self._drop = library().block_drop
        self._getpid = os.getpid
        self._pid = os.getpid()
        _known[handle] = self

    def __del__(self) -> None:
        """Drops the block, unless this is a forked child, whose finalizers do nothing."""
        try:
            if self._pid == self._getpid():
                self._drop(self.handle)
        except AttributeError:  # __init__ did not get far enough to own anything
            pass


_known: "weakref.WeakValueDictionary[int, Block]" = weakref.WeakValueDictionary()


def find(world: Any, address: int) -> Block:
    """The Block that holds an address of a world; raises NotSymmetricError when there is none."""
    handle, low, nbytes = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_uint64()
    status = library().block_of(world.handle, address, ctypes.byref(handle), ctypes.byref(low), ctypes.byref(nbytes))
    check(status, "block_of")
    known = _known.get(handle.value)
    if known is None:
        from ._errors import NotSymmetricError

        raise NotSymmetricError(f"the memory at 0x{address:x} is symmetric but no tensor or Buffer of this process holds it any more", operation="block_of")
    return known


def allocate_local(world: Any, nbytes: int, align: int = 0, zero: bool = False, on_device: bool = False) -> Block:
    """Makes a block of this PE alone; peers reach it by its offset."""
    handle, address = ctypes.c_uint64(), ctypes.c_void_p()
    flags = (_abi.ZERO if zero else 0) | (_abi.ON_DEVICE if on_device else 0)
    status = library().alloc_local(world.handle, nbytes, align, flags, ctypes.byref(handle), ctypes.byref(address))
    check(status, "alloc_local")
    return Block(world, handle.value, address.value or 0, nbytes, on_device=on_device)


_arrays: Dict[int, Type[Any]] = {}


def _array_type(nbytes: int) -> Type[Any]:
    """A ctypes array of at least nbytes whose instances can carry an owner; one type per power of two."""
    bits = max(nbytes - 1, 0).bit_length()
    kind = _arrays.get(bits)
    if kind is None:
        kind = type(f"Bytes{bits}", (ctypes.c_ubyte * (1 << bits),), {})
        _arrays[bits] = kind
    return kind


def exporter(address: int, nbytes: int, owner: Optional[object]) -> Any:
    """An object with the buffer protocol over [address, address + nbytes), rounded up to a power of two, that keeps its owner.

    Whoever uses it takes only the first nbytes.
    """
    span = _array_type(nbytes).from_address(address)
    span.owner = owner
    return span
