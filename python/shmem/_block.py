"""Blocks of symmetric memory and who keeps them.

A Block is one reference to a block of the core. Whatever shows its bytes (a tensor's storage, a Buffer, a peer view) holds
the same Block object; when the last of them dies, on whatever thread, the block is dropped: a local note in the core that
never waits and never talks to a peer. A storage that cannot hold a Python object is lent the Block instead, and what has come back
is let go at the next allocation, collect, look at the heap or finalize, after the streams that may still use it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

from . import _abi
from ._call import check
from ._lib import library


class Block:
    """One block of a world's heap: its first byte here and its length."""

    __slots__ = ("__weakref__", "_drop", "_getpid", "_pid", "address", "handle", "in_use", "nbytes", "on_device", "team", "world")

    def __init__(self, world: Any, handle: int, address: int, nbytes: int, team: Any = None, on_device: bool = False) -> None:
        """Takes over the reference that an allocation gave."""
        self.world = world
        self.team = team
        self.on_device = on_device
        self.handle = handle
        self.address = address
        self.nbytes = nbytes
        # On a device: marks what is queued now, and gives what says whether that is over.
        self.in_use: Optional[Callable[[], Callable[[bool], bool]]] = None
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


_Passed = Callable[[bool], bool]

_lent: Dict[int, Optional[Block]] = {}  # by the DLManagedTensor of the storage
_pending: List[Tuple[Block, _Passed]] = []  # came back while streams may still use them
_guard = threading.Lock()  # of _pending
_CONTEXT = 48  # a DLManagedTensor's manager_ctx: the link of the list of those that came back

raw_malloc = ctypes.pythonapi.PyMem_RawMalloc
raw_malloc.restype, raw_malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
raw_free = ctypes.pythonapi.PyMem_RawFree
raw_free.restype, raw_free.argtypes = None, [ctypes.c_void_p]


def lend(managed: int, block: Optional[Block]) -> int:
    """Keeps a Block until the deleter, whose address this gives, has been called with `managed`: raw_malloc's, and freed then."""
    take_back()
    _lent[managed] = block
    deleter: Any = library().dlpack_delete
    return ctypes.cast(deleter, ctypes.c_void_p).value or 0


def not_lent(managed: int) -> None:
    """Undoes a lend whose tensor was not made."""
    _lent.pop(managed, None)
    raw_free(managed)


def lent() -> List[Block]:
    """The Blocks that are out, or not free yet."""
    return [block for block in [*_lent.values(), *(block for block, _ in list(_pending))] if block is not None]


def take_back(wait: bool = False) -> None:
    """Lets the Blocks go whose storages have died, when the streams that used them are past that or, with `wait`, as soon as they are.

    Any thread; in a forked child it does nothing. Blocks: only with `wait`, for the device.
    """
    if not _lent and not _pending:
        return
    came = _came_back()
    if came is not None:
        _let_go(came, wait)


def let_go(block: Block) -> None:
    """Drops a Block that was not lent, when the streams that use it are past that. The caller's is the last reference."""
    if block._pid == os.getpid():
        _let_go([block], False)


def _let_go(came: List[Block], wait: bool) -> None:
    passed: Dict[Callable[[], _Passed], _Passed] = {}
    for block in came:
        if block.in_use is not None and block.in_use not in passed:
            passed[block.in_use] = block.in_use()
    with _guard:
        _pending.extend((block, passed[block.in_use]) for block in came if block.in_use is not None)
        _pending[:] = [(block, done) for block, done in _pending if not done(wait)]


def _came_back() -> Optional[List[Block]]:
    """The Blocks whose storages have died; None in a forked child."""
    first, came = ctypes.c_void_p(), []
    if library().dlpack_deleted(ctypes.byref(first)) != _abi.STATUS["OK"]:
        return None
    managed = first.value
    while managed:
        following = ctypes.c_void_p.from_address(managed + _CONTEXT).value
        block = _lent.pop(managed, None)
        if block is not None:
            came.append(block)
        raw_free(managed)
        managed = following
    return came


def allocate_local(world: Any, nbytes: int, align: int = 0, zero: bool = False, on_device: bool = False) -> Block:
    """Makes a block of this PE alone; peers reach it by its offset."""
    take_back()
    handle, address = ctypes.c_uint64(), ctypes.c_void_p()
    flags = (_abi.ZERO if zero else 0) | (_abi.ON_DEVICE if on_device else 0)
    arguments = (world.handle, nbytes, align, flags, ctypes.byref(handle), ctypes.byref(address))
    status = library().alloc_local(*arguments)
    if status == _abi.STATUS["EHEAPFULL"] and _pending:
        take_back(wait=True)
        status = library().alloc_local(*arguments)
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
