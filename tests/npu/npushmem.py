"""torch_npu's own symmetric memory, NPUSHMEM, served by our libshmem.so; test_npushmem.py starts one process per rank.

    python npushmem.py RANK SIZE PORT CASE      (LD_LIBRARY_PATH: the emulator's folder and the one with libshmem.so)
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm
import torch_npu  # noqa: F401


def mapped(name):
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if os.path.basename(line.split()[-1]).startswith(name)}


def buffers(rank, size):
    """empty, rendezvous, every rank's buffer read and written through get_buffer and get_remote_tensor."""
    assert symm.get_backend("npu") == "NPUSHMEM"
    symm.enable_symm_mem_for_group("0")
    t = symm.empty(257, dtype=torch.float32, device=torch.device("npu", rank))
    t.copy_(torch.arange(257.0) + 1000 * rank)
    torch.npu.synchronize()
    handle = symm.rendezvous(t, dist.group.WORLD.group_name)
    assert (handle.rank, handle.world_size) == (rank, size)
    dist.barrier()
    for peer in range(size):
        got = handle.get_buffer(peer, (257,), torch.float32)
        assert torch.equal(got.cpu(), torch.arange(257.0) + 1000 * peer), peer
    dist.barrier()
    right = (rank + 1) % size
    view = handle.get_remote_tensor(right, (4,), torch.float32) if hasattr(handle, "get_remote_tensor") else handle.get_buffer(right, (4,), torch.float32)
    view.fill_(float(-1 - rank))
    torch.npu.synchronize()
    dist.barrier()
    left = (rank - 1) % size
    assert t.cpu().tolist()[:5] == [float(-1 - left)] * 4 + [4.0 + 1000 * rank]
    return t, handle


def transfers(rank, size):
    """torch.ops.symm_mem.nvshmem_put and nvshmem_get: on the stream, into the caller's own address at the peer."""
    symm.enable_symm_mem_for_group("0")
    t = symm.empty(64, dtype=torch.float32, device=torch.device("npu", rank))
    t.fill_(float(rank))
    torch.npu.synchronize()
    symm.rendezvous(t, dist.group.WORLD.group_name)
    dist.barrier()
    out = symm.empty(64, dtype=torch.float32, device=torch.device("npu", rank))
    symm.rendezvous(out, dist.group.WORLD.group_name)
    if rank == 0:
        torch.ops.symm_mem.nvshmem_get(t, 1)
    torch.npu.synchronize()
    dist.barrier()
    assert t.cpu().tolist() == [1.0 if rank == 0 else float(rank)] * 64, t
    out.fill_(10.0 + rank)
    torch.npu.synchronize()
    dist.barrier()
    if rank == 0:
        torch.ops.symm_mem.nvshmem_put(out, 1)
    torch.npu.synchronize()
    dist.barrier()
    assert out.cpu().tolist() == [10.0 if rank == 1 else 10.0 + rank] * 64, out
    return t, out


def beside(rank, size):
    """The user's own world comes up first, NPUSHMEM joins it, and torch_npu's finalize at exit must not end it under the user's feet."""
    import ctypes

    import shmem

    world = shmem.init(rank, size, store=dist.FileStore(os.environ["T_MEET"], size), device="npu", device_heap="64M")
    mine = shmem.full((8,), float(rank), device="npu")
    kept = buffers(rank, size)
    shmem.barrier()
    assert shmem.peer(mine, (rank + 1) % size).cpu().tolist() == [float((rank + 1) % size)] * 8
    (path,) = mapped("libshmem.so")  # one library, so one world
    assert ctypes.CDLL(path).aclshmem_finalize() == 0  # what torch_npu does at exit, once more
    shmem.barrier()
    shmem.put(mine, torch.full((8,), 5.0, device="npu"), (rank + 1) % size)
    shmem.barrier()
    assert mine.cpu().tolist() == [5.0] * 8
    return kept, world


def main(rank, size, port, case):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.npu.set_device(rank)
    torch.ones(1, device="npu").cpu()
    dist.init_process_group("cpu:gloo", rank=rank, world_size=size)
    kept = globals()[case](rank, size)
    assert any(os.path.realpath(path) == os.path.realpath(os.environ["T_LIBRARY"]) for path in mapped("libshmem.so")), mapped("libshmem")
    dist.barrier()
    print("ok", flush=True)
    return kept


if __name__ == "__main__":
    KEPT = main(*map(int, sys.argv[1:4]), sys.argv[4])
