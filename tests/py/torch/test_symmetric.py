"""One-sided torch: windows, symmetric memory handles, and the operators with fake kernels and gradients."""

from __future__ import annotations

import gc

import groups
import pytest
import torch
import torch.distributed as dist

from data import DEVICE, host_memory

pytestmark = pytest.mark.core  # also over tcp


@host_memory
def windows(ctx, mapped):
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    c10d, pg = dist.distributed_c10d, dist.group.WORLD
    keep = [pg.allocate_tensor(100 + k) for k in range(me)]  # heaps differ: every rank has its tensor elsewhere
    t = pg.allocate_tensor(n * 4, dtype=torch.float32)
    t.fill_(-1)
    window = c10d._new_window(t) if groups.NEW else pg.new_window(t)
    dist.barrier()
    right, left = (me + 1) % n, (me - 1) % n
    for rank in range(n):
        window.put(torch.full((4,), float(me)), rank, me * 4, False).wait()
    for rank in range(n):
        window.signal(rank, False).wait()
    for rank in range(n):
        window.wait_signal(rank, rank % 2 == 1).wait()
    assert t.tolist() == [float(k // 4) for k in range(4 * n)]
    with pytest.raises(ValueError, match="leave"):
        window.put(torch.zeros(4), right, n * 4 - 3, False)
    if mapped:
        view = window.map_remote_tensor(right)
        assert view.tolist() == t.tolist()
        dist.barrier()
        view[0] = 100.0 + me
        dist.barrier()
        assert t[0].item() == 100.0 + left
    elif n > 1:
        with pytest.raises(NotImplementedError):
            window.map_remote_tensor(right)
    assert window.get_attr(right) is not None if groups.NEW else True
    window.tensor_deregister()
    assert len(keep) == me
    with pytest.raises(ValueError, match="no tensor"):
        window.put(torch.zeros(1), right, 0, False)
    with pytest.raises((TypeError, RuntimeError), match="ordinary memory"):
        pg.new_window(torch.zeros(4))
    dist.barrier()


def test_window(pool):
    pool.run(windows, pool.transport != "tcp", world=False)


def first_values(ctx):
    """A member that is slow to fill its tensor does not overwrite what a fast one has put there."""
    import time

    import shmem

    size, whole = 50000, torch.int64
    make = [lambda: shmem.full((size,), -1, dtype=whole), lambda: shmem.symmetric_copy(torch.full((size,), -1)), lambda: shmem.ones(size, dtype=whole)]
    for turn in range(24):
        if ctx.me == turn % ctx.n:
            time.sleep(0.003)
        t = make[turn % 3]()
        for pe in range(ctx.n):
            shmem.p(t, 100 + ctx.me, pe, index=ctx.me)
        shmem.barrier()
        assert t[: ctx.n].tolist() == [100 + pe for pe in range(ctx.n)], turn


def test_first_values(pool):
    pool.run(first_values)


@host_memory
def handles(ctx, mapped):
    import shmem

    groups.join(ctx)
    n, me = ctx.n, ctx.me
    t = shmem.symm.empty(8, dtype=torch.int64)
    assert t.tolist() == [0] * 8 and shmem.symm.is_symm_mem_tensor(t) and not shmem.symm.is_symm_mem_tensor(torch.zeros(2))
    handle = shmem.symm.rendezvous(t, dist.group.WORLD.group_name)
    assert shmem.symm.rendezvous(t) is handle
    if DEVICE != "cpu":
        with pytest.raises(shmem.UnsupportedError, match="shmem.peer, put and get serves npus"):
            shmem.symm.empty(8, device=DEVICE)
        with pytest.raises(shmem.UnsupportedError, match="symmetric tensor of shmem.empty"):
            handle.put(torch.arange(4, device=DEVICE), 0)
    assert (handle.rank, handle.world_size, handle.buffer_size) == (me, n, 64)
    right, left = (me + 1) % n, (me - 1) % n
    handle.put(torch.arange(4) + 10 * me, right, offset=2)
    handle.put_signal(right)
    handle.wait_signal(left)
    assert t.tolist() == [0, 0, *(10 * left + k for k in range(4)), 0, 0]
    got = torch.zeros(4, dtype=torch.int64)
    handle.barrier(channel=3)
    handle.get(got, right, offset=2)
    assert got.tolist() == [10 * me + k for k in range(4)]
    handle.barrier()
    for channel in range(4):  # channels do not mix
        for _ in range(channel + 1):
            handle.put_signal(right, channel)
    for channel in reversed(range(4)):
        for _ in range(channel + 1):
            handle.wait_signal(left, channel)
    with pytest.raises(RuntimeError):
        handle.wait_signal(left, 0, timeout_ms=100)
    if mapped:
        peer = handle.get_buffer(right, (4,), torch.int64, storage_offset=2)
        assert peer.tolist() == [10 * me + k for k in range(4)]
        assert handle.get_signal_pad(right).dtype is torch.uint32
        assert all(handle.buffer_ptrs)
    handle.barrier()
    first = t.data_ptr()
    del t
    gc.collect()
    dist.barrier()
    assert first


def test_handles(pool):
    pool.run(handles, pool.transport != "tcp", world=False)


def operators(ctx):
    import shmem.interop.functional as sf

    groups.join(ctx)
    n, me = ctx.n, ctx.me
    x = (torch.arange(2.0 * n) + me).requires_grad_()
    total = torch.arange(2.0 * n) * n + sum(range(n))
    y = sf.all_reduce(x)
    assert torch.equal(y, total)
    (y * (me + 1)).sum().backward()
    assert torch.equal(x.grad, torch.full((2 * n,), float(sum(range(1, n + 1)))))
    x.grad = None
    y = sf.reduce_scatter(x)
    assert torch.equal(y, total[2 * me : 2 * me + 2])
    (y * (me + 1)).sum().backward()
    assert torch.equal(x.grad, torch.arange(1.0, n + 1).repeat_interleave(2))
    x.grad = None
    y = sf.all_gather(x)
    assert torch.equal(y, torch.cat([torch.arange(2.0 * n) + rank for rank in range(n)]))
    (y * torch.arange(2.0 * n * n)).sum().backward()
    assert torch.equal(x.grad, n * torch.arange(2.0 * n * n)[2 * n * me : 2 * n * (me + 1)])
    x.grad = None
    (sf.all_to_all(x) * (me + 1)).sum().backward()
    assert torch.equal(x.grad, torch.arange(1.0, n + 1).repeat_interleave(2))
    torch.library.opcheck(torch.ops.shmem.all_reduce, (torch.ones(2), "sum", dist.group.WORLD.group_name), test_utils=("test_schema", "test_faketensor"))


@host_memory
def one_sided_operators(ctx):
    import shmem
    import shmem.interop.functional as sf

    groups.join(ctx)
    n, me = ctx.n, ctx.me
    buffer = shmem.symm.empty(4)
    handle = shmem.symm.rendezvous(buffer)
    sf.put(torch.full((2,), float(me)), handle, (me + 1) % n, 1)
    sf.barrier(handle)
    assert buffer.tolist() == [0, (me - 1) % n, (me - 1) % n, 0]
    assert sf.get(torch.zeros(2), handle, (me + 1) % n, 1).tolist() == [me, me]
    with pytest.raises(ValueError, match="rendezvous"):
        sf.put(torch.zeros(2), 0, 0)


@pytest.mark.filterwarnings("ignore")
def test_operators(pool):
    pool.run(operators, world=False, timeout=300)
    pool.run(one_sided_operators, world=False, timeout=300)


@host_memory
def compiled(ctx):
    import shmem
    import shmem.interop.functional as sf

    groups.join(ctx)
    n, me = ctx.n, ctx.me
    buffer = shmem.symm.empty(3)
    handle = shmem.symm.rendezvous(buffer)
    group, number = dist.group.WORLD.group_name, handle.id

    def step(x):
        y = torch.ops.shmem.all_reduce(x * 2, "sum", group)
        torch.ops.shmem.put(y, number, (me + 1) % n, 0)
        torch.ops.shmem.barrier(number, 0)
        return torch.ops.shmem.get(x, number, me, 0) + 1

    for backend in ("aot_eager", "inductor"):
        for k in range(3):
            got = torch.compile(step, backend=backend, fullgraph=True)(torch.full((3,), float(k)))
            assert got.tolist() == [2.0 * n * k + 1] * 3
            dist.barrier()
        torch._dynamo.reset()
    assert sf is not None


@pytest.mark.filterwarnings("ignore")
def test_compiled_operators(pair):
    pair.run(compiled, world=False, timeout=300)
