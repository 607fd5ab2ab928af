"""Symmetric memory of a process group, in the shape of torch.distributed._symmetric_memory.

    t = shmem.symm.empty(1024)                 # on this rank's heap
    handle = shmem.symm.rendezvous(t)          # collective: now the others' are known
    handle.get_buffer(peer, (1024,), t.dtype)  # a tensor over the peer's memory
    handle.put_signal(peer); handle.wait_signal(peer); handle.barrier()

The group is one of backend "shmem": given as a ProcessGroup, by name, or the default group.
"""

from __future__ import annotations

from .interop.window_symm import SymmetricMemory, empty, is_symm_mem_tensor, rendezvous

__all__ = ["SymmetricMemory", "empty", "is_symm_mem_tensor", "rendezvous"]
