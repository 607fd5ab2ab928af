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
        """True for cpu: the heap is host memory. FSDP2 gives a torch.device, C++ an index."""
        return not isinstance(device, torch.device) or device.type == "cpu"

    def allocate_tensor(self, *size: Any, dtype: torch.dtype = torch.float32, device: Any = None) -> torch.Tensor:
        """A tensor on this rank's heap, not initialised; peers are not asked. It gives its memory back when it dies.

        Raises HeapExhaustedError when the heap has no room (SHMEM_SYMMETRIC_SIZE sets its size). Collective: no. Blocks: no.
        """
        if device is not None and torch.device(device).type != "cpu":
            from .._errors import UnsupportedError

            raise UnsupportedError(f"allocate_tensor: the heap of this group is host memory, not {device}; ask for cpu")
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return local_tensor(self._world.world, tuple(int(extent) for extent in shape), dtype)

    allocateTensor = allocate_tensor


def local_tensor(world: Any, shape: Any, dtype: torch.dtype, zero: bool = False) -> torch.Tensor:
    """A tensor over a block of this rank alone."""
    block = _block.allocate_local(world, max(nbytes_of(shape, dtype), 1), zero=zero)
    return make(block, block.address, shape, dtype)
