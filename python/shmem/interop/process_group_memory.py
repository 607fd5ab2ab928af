"""Communication buffers on the symmetric heap, for FSDP2 and whoever asks a backend for memory."""

from __future__ import annotations

from typing import Any

import torch

from .. import _block
from .process_group_world import GroupWorld
from .tensors import make, nbytes_of


class Memory:
    """Mixed into the group and the backend."""

    _world: GroupWorld

    def supports_tensor_alloc(self, device: Any) -> bool:
        """True for cpu, and for npu when the group's world has a heap on it. FSDP2 gives a torch.device, C++ an index."""
        return not isinstance(device, torch.device) or device.type == "cpu" or self._is_mine(device)

    def _is_mine(self, device: torch.device) -> bool:
        index = self._world.world.device_index
        return device.type == "npu" and index is not None and device.index in (None, index)

    def allocate_tensor(self, *size: Any, dtype: torch.dtype = torch.float32, device: Any = None) -> torch.Tensor:
        """A tensor on this rank's heap, not initialised; peers are not asked. It gives its memory back when it dies.

        Raises HeapExhaustedError when the heap has no room (SHMEM_SYMMETRIC_SIZE sets its size). Collective: no. Blocks: no.
        """
        on_device = device is not None and torch.device(device).type != "cpu"
        if on_device and not self._is_mine(torch.device(device)):
            from .._errors import UnsupportedError

            raise UnsupportedError(f"allocate_tensor: this group has no heap on {device}; SHMEM_DEVICE=npu or pg_options={{'device': 'npu'}} gives it one")
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return local_tensor(self._world.world, tuple(int(extent) for extent in shape), dtype, on_device=on_device)

    allocateTensor = allocate_tensor


def local_tensor(world: Any, shape: Any, dtype: torch.dtype, zero: bool = False, on_device: bool = False) -> torch.Tensor:
    """A tensor over a block of this rank alone."""
    block = _block.allocate_local(world, max(nbytes_of(shape, dtype), 1), zero=zero, on_device=on_device)
    return make(block, block.address, shape, dtype)
