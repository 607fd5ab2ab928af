"""Symmetric memory in the shape torch users know: empty -> rendezvous -> a handle with the peers' buffers and signals."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Dict, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from .. import _abi
from .._errors import InvalidArgumentError
from .ops_buffers import direct, nbytes, plain
from .process_group_memory import local_tensor
from .tensors import as_shape
from .window import Exposed
from .window_signals import Signals, check

_CHANNELS = 8
_PAD_BYTES = 2048


_ids = itertools.count(1)
_handles: "weakref.WeakValueDictionary[int, SymmetricMemory]" = weakref.WeakValueDictionary()


def handle_of(number: int) -> "SymmetricMemory":
    """The handle with this id; raises when it is gone."""
    found = _handles.get(number)
    if found is None:
        raise InvalidArgumentError(f"no symmetric memory handle has id {number}; give handle.id of shmem.symm.rendezvous and keep the handle")
    return found


def group_of(group: Any = None) -> Any:
    """The shmem process group behind a group, its name, or None for the default one."""
    if group is None:
        group = dist.group.WORLD
    if isinstance(group, str):
        group = torch._C._distributed_c10d._resolve_process_group(group)  # type: ignore[arg-type]  # newer stubs want a type of their own
    if not hasattr(group, "_channel"):
        raise InvalidArgumentError(
            "the group is not one of backend 'shmem' alone; create it with init_process_group('shmem') or new_group(backend='shmem')"
        )
    return group


def empty(*size: Any, dtype: Optional[torch.dtype] = None, device: Any = None, group: Any = None) -> torch.Tensor:
    """A zeroed tensor on this rank's heap in the world of a group; rendezvous() makes it known. Collective: no. Blocks: no."""
    if device is not None and torch.device(device).type != "cpu":
        from .._errors import UnsupportedError

        raise UnsupportedError(f"shmem.symm serves host memory, not {device}; shmem.empty(device={str(device)!r}) with shmem.peer, put and get serves npus")
    return local_tensor(group_of(group)._world.world, as_shape(size), dtype or torch.get_default_dtype(), zero=True)


def rendezvous(tensor: torch.Tensor, group: Any = None) -> "SymmetricMemory":
    """Exchanges where every rank's tensor is; the same handle again for the same memory. Collective. Blocks until every rank does."""
    members = group_of(group)
    tensor = plain(tensor)
    if not direct(tensor):
        raise InvalidArgumentError("rendezvous needs a contiguous tensor of symm.empty; give a contiguous one")
    known: Dict[Any, SymmetricMemory] = members.__dict__.setdefault("_symmetric", {})
    key = (tensor.untyped_storage().data_ptr(), tensor.data_ptr(), nbytes(tensor))
    found = known.get(key)
    if found is None or found._gone():
        found = known[key] = SymmetricMemory(members, tensor)
    return found


def is_symm_mem_tensor(tensor: torch.Tensor, group: Any = None) -> bool:
    """True when the tensor lies on the heap of the group's world. Collective: no. Blocks: no."""
    from .. import _block
    from .._errors import NotSymmetricError

    try:
        _block.find(group_of(group)._world.world, tensor.untyped_storage().data_ptr())
    except NotSymmetricError:
        return False
    return True


class SymmetricMemory:
    """One tensor per rank: their buffers, signals and barriers. Threads: any, one waiter per channel and rank at a time."""

    def __init__(self, group: Any, tensor: torch.Tensor) -> None:
        """Made by rendezvous. Collective."""
        self._group = group
        self._exposed = Exposed(group, tensor, owning=False)
        self._block_alive = self._exposed._block
        self._pad = local_tensor(group._world.world, (_PAD_BYTES,), torch.uint8, zero=True)
        self._pads = Exposed(group, self._pad)
        self._signals = Signals(group, _CHANNELS)
        self._barriers = Signals(group, _CHANNELS)
        self.rank = group._channel.rank
        self.world_size = group._channel.size
        self.buffer_size = self._exposed.bytes
        self.signal_pad_size = _PAD_BYTES
        self.device = torch.device("cpu")
        self.offset = 0
        self.multicast_ptr = 0
        self.id = next(_ids)  # what torch.ops.shmem.put and get name it by, in this process
        _handles[self.id] = self

    def _gone(self) -> bool:
        held = self._block_alive
        return callable(held) and held() is None

    @property
    def buffer_ptrs(self) -> Sequence[int]:
        """The address here of every rank's buffer; 0 where its memory is not mapped."""
        return [self._mapped(rank) for rank in range(self.world_size)]

    def _mapped(self, rank: int) -> int:
        from .._errors import UnsupportedError

        try:
            return self._exposed.view(rank, (self._exposed.sizes[rank],), torch.uint8).data_ptr()
        except UnsupportedError:
            return 0

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0) -> torch.Tensor:
        """A tensor over a rank's buffer itself; storage_offset in elements. Raises UnsupportedError where it is not mapped. Blocks: no."""
        return self._exposed.view(rank, tuple(sizes), dtype, storage_offset * dtype.itemsize)

    get_remote_tensor = get_buffer

    def get_signal_pad(self, rank: int, sizes: Sequence[int] = (), dtype: Optional[torch.dtype] = None, storage_offset: int = 0) -> torch.Tensor:
        """A tensor over a rank's signal pad, 2048 bytes for the program's own flags (uint32 without a dtype). Blocks: no."""
        kind = dtype or torch.uint32
        shape = tuple(sizes) or (_PAD_BYTES // kind.itemsize - storage_offset,)
        return self._pads.view(rank, shape, kind, storage_offset * kind.itemsize)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for every rank on this channel; puts before it are complete. Collective. Blocks: until all are here, or the timeout."""
        self._barriers.barrier(channel, _seconds(timeout_ms))

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Signals a rank, after everything put there before. Collective: no. Blocks: no, so timeout_ms has nothing to limit."""
        _seconds(timeout_ms)
        self._signals.raise_at(dst_rank, channel)

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Takes one signal of a rank. Collective: no. Blocks: until it is there, or the timeout (0: the group's)."""
        self._signals.await_from(src_rank, _seconds(timeout_ms), channel)

    def put(self, tensor: torch.Tensor, dst_rank: int, offset: int = 0) -> None:
        """Writes a tensor into a rank's buffer, `offset` in elements, mapped or not. Collective: no. Blocks: no."""
        from .ops_buffers import readable

        source = readable(tensor)
        address = self._exposed.address(dst_rank, offset * source.element_size(), nbytes(source))
        if source.numel():
            world = self._exposed.world
            check(world.put(world.handle, address, source.data_ptr(), nbytes(source), self._exposed.pes[dst_rank]), "put")

    def get(self, tensor: torch.Tensor, src_rank: int, offset: int = 0) -> None:
        """Reads from a rank's buffer into a tensor, `offset` in elements, mapped or not. Collective: no. Blocks: for the data."""
        from .ops_buffers import Copies, carry_out, writable

        after: Copies = []
        target = writable(tensor, after)
        address = self._exposed.address(src_rank, offset * target.element_size(), nbytes(target))
        if target.numel():
            world = self._exposed.world
            check(world.calls.get(world.handle, target.data_ptr(), address, nbytes(target), self._exposed.pes[src_rank]), "get")
        carry_out(after)

    def quiet(self) -> None:
        """Waits until what this rank put is there. Collective: no. Blocks: for the network."""
        check(self._exposed.world.calls.quiet(self._exposed.world.handle, _abi.DEFAULT_TIMEOUT), "quiet")


def _seconds(timeout_ms: int) -> Optional[float]:
    if timeout_ms < 0:
        raise InvalidArgumentError(f"timeout_ms is {timeout_ms}; give milliseconds, or 0 for the group's timeout")
    return timeout_ms / 1000 if timeout_ms else None


__all__: Tuple[str, ...] = ("SymmetricMemory", "empty", "is_symm_mem_tensor", "rendezvous")
