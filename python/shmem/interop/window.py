"""torch's one-sided window over symmetric memory: every rank shows a tensor, and writes into the others' without their help.

The tensor must lie on the heap: pg._get_backend(...).allocate_tensor / group.allocate_tensor, shmem.empty on the group's world,
or shmem.symm.empty. Ranks may have theirs at different places of their heaps; the places are exchanged when it is registered.
"""

from __future__ import annotations

import ctypes
import weakref
from datetime import timedelta
from typing import Any, List, Optional

import torch

from .. import _abi, _block
from .._errors import InvalidArgumentError, NotSymmetricError
from .._lib import library
from .ops_buffers import direct, nbytes, plain, readable
from .tensors import make
from .window_signals import Signals, check, gather_words, pes_of
from .work import FinishedWork, Work


class Exposed:
    """A tensor of every rank of a group, in symmetric memory, and where each begins. Made collectively."""

    def __init__(self, group: Any, tensor: torch.Tensor, owning: bool = True) -> None:
        """Exchanges the places; without `owning` the memory dies with the caller's tensor. Collective. Blocks until every rank does."""
        tensor = plain(tensor)
        if not direct(tensor):
            raise InvalidArgumentError("a window needs a contiguous tensor; give its .contiguous() copy on the heap")
        self.group = group
        self.world = group._world.world
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype
        self.bytes = nbytes(tensor)
        held = _held(self.world, tensor)
        self._block = held if owning or held is None else weakref.ref(held)
        heap = self.world.heap_stats()["low"]
        mine = torch.tensor([tensor.data_ptr() - heap if self.bytes else -1, self.bytes], dtype=torch.int64, device="cpu")
        table = gather_words(group, mine)
        self.places: List[int] = [int(row[0]) + heap for row in table]
        self.sizes: List[int] = [int(row[1]) for row in table]
        self.pes = pes_of(group)

    def block(self) -> Any:
        """What keeps the memory mapped; raises when a tensor that is not owned has died."""
        held = self._block() if isinstance(self._block, weakref.ref) else self._block
        if held is None and self.bytes:
            raise NotSymmetricError("the tensor of this window has died; register with owning=True or keep it")
        return held

    def address(self, rank: int, offset: int, size: int) -> int:
        """Where byte `offset` of a rank's tensor is, as this PE's own address of it; refuses what leaves the tensor."""
        if not 0 <= rank < len(self.places):
            raise InvalidArgumentError(f"rank {rank} is not a rank of this group of {len(self.places)}")
        if offset < 0 or size < 0 or offset + size > self.sizes[rank]:
            raise InvalidArgumentError(f"bytes {offset} to {offset + size} leave the {self.sizes[rank]} bytes that rank {rank} shows")
        return self.places[rank] + offset

    def view(self, rank: int, shape: Any, dtype: torch.dtype, offset: int = 0) -> torch.Tensor:
        """A tensor over a rank's memory itself; raises UnsupportedError when that is not mapped here."""
        count = 1
        for extent in shape:
            count *= extent
        address = self.address(rank, offset, count * dtype.itemsize)
        if not count:
            return torch.empty(shape, dtype=dtype, device="cpu")
        out = ctypes.c_void_p()
        check(library().ptr(self.world.handle, address, self.pes[rank], ctypes.byref(out)), "map_remote_tensor")
        return make(self.block(), out.value or 0, shape, dtype)


def _held(world: Any, tensor: torch.Tensor) -> Any:
    if not tensor.numel():
        return None
    try:
        return _block.find(world, tensor.data_ptr())
    except NotSymmetricError as problem:
        raise NotSymmetricError(
            "the tensor is ordinary memory; make it with shmem.symm.empty(..., group=group) or group.allocate_tensor(...)"
        ) from problem


def limit_of(opts: Any) -> Optional[float]:
    """The timeout of an options object in seconds, None when it has none."""
    timeout = getattr(opts, "timeout", None)
    return timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else None


class Window:
    """torch's Window. Threads: any, one wait_signal per peer at a time."""

    def __init__(self, group: Any, tensor: Optional[torch.Tensor]) -> None:
        """Registers the tensor when there is one. Collective then."""
        self._group = group
        self._exposed: Optional[Exposed] = None
        self._signals = Signals(group)
        if tensor is not None:
            self.tensor_register(tensor)

    def tensor_register(self, tensor: torch.Tensor, owning: bool = True) -> None:
        """Shows a tensor to the other ranks. Collective. Blocks until every rank does."""
        if self._exposed is not None:
            raise InvalidArgumentError("the window shows a tensor already; call tensor_deregister first")
        self._exposed = Exposed(self._group, tensor, owning)

    def tensor_deregister(self) -> None:
        """Stops showing it, once every rank does. Collective. Blocks until every rank is here."""
        self._shown()
        self._group._channel.run(_abi.COLLECTIVE["BARRIER"], None, None, 0, sync=True)
        self._exposed = None

    def _shown(self) -> Exposed:
        if self._exposed is None:
            raise InvalidArgumentError("the window shows no tensor; call tensor_register on every rank first")
        return self._exposed

    def put(self, tensor: torch.Tensor, dst_rank: int, target_offset_nelems: int, async_op: bool = False, opts: Any = None) -> Work:
        """Writes a tensor into a rank's window, at an offset in elements; done on return, with async_op too. Collective: no. Blocks: no."""
        exposed = self._shown()
        source = readable(tensor)
        address = exposed.address(dst_rank, target_offset_nelems * source.element_size(), nbytes(source))
        if source.numel():
            put = exposed.world.put(exposed.world.handle, address, source.data_ptr(), nbytes(source), exposed.pes[dst_rank])
            check(put, "put")
        return _done(tensor)

    def map_remote_tensor(self, rank: int) -> torch.Tensor:
        """What a rank shows, over its memory itself: of the shape here when as large, else one-dimensional. Collective: no. Blocks: no."""
        exposed = self._shown()
        exposed.address(rank, 0, 0)
        if exposed.sizes[rank] == exposed.bytes:
            return exposed.view(rank, exposed.shape, exposed.dtype)
        return exposed.view(rank, (exposed.sizes[rank] // exposed.dtype.itemsize,), exposed.dtype)

    def signal(self, peer_rank: int, async_op: bool = False, opts: Any = None) -> Work:
        """Tells a rank that what was put before is there. Collective: no. Blocks: no."""
        self._signals.raise_at(peer_rank)
        return _done()

    def wait_signal(self, peer_rank: int, async_op: bool = False, opts: Any = None) -> Work:
        """Waits for one signal of a rank. Collective: no. Blocks: until it is there, unless async_op."""
        limit = limit_of(opts)
        if async_op:
            return self._signals.later(peer_rank, limit)
        self._signals.await_from(peer_rank, limit)
        return _done()

    def get_attr(self, peer_rank: int) -> Any:
        """UNIFIED, torch's default: there is one copy of the data, and no private one beside it."""
        self._shown().address(peer_rank, 0, 0)
        return torch._C._distributed_c10d.WindowAttr()


def _done(*tensors: torch.Tensor) -> Work:
    work = FinishedWork()
    work._result = tensors
    return work
