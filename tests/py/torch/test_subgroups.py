"""Groups of groups: new_group, meshes, names, timeouts, sequence numbers, other backends beside, mixed strings."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import groups
import pytest
import torch
import torch.distributed as dist

from data import DEVICE, blocking, host_memory

pytestmark = pytest.mark.core  # also over tcp


def subsets(ctx):
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    made = [dist.new_group([rank for rank in range(n) if rank != out]) for out in range(n)] if n > 1 else [dist.new_group([0])]
    for out, group in enumerate(made):
        if n > 1 and me == out:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            continue
        t = torch.tensor([float(me)])
        dist.all_reduce(t, group=group)
        assert t.item() == sum(r for r in range(n) if r != out or n == 1)
        dist.broadcast(t, src=dist.get_global_rank(group, 0), group=group)
    backwards = dist.new_group(list(reversed(range(n))))
    out = [torch.zeros(1) for _ in range(n)]
    dist.all_gather(out, torch.tensor([float(me)]), group=backwards)
    for k in range(n):
        assert out[k].item() == dist.get_global_rank(backwards, k)
    same, _ = dist.new_subgroups(1) if hasattr(dist, "new_subgroups") else (None, None)
    t = torch.ones(1)
    dist.all_reduce(t, group=same)
    assert t.item() == 1
    dist.destroy_process_group(backwards)
    dist.barrier()


def test_subsets(pool):
    pool.run(subsets, world=False)


def local_only(ctx):
    """Members alone make a group; the others do not even know."""
    groups.join(ctx)
    if ctx.me < 2:
        group = dist.new_group([0, 1], use_local_synchronization=True)
        t = torch.ones(2)
        dist.all_reduce(t, group=group)
        assert t.tolist() == [2.0, 2.0]
    dist.barrier()


def test_local_synchronization(trio):
    trio.run(local_only, world=False)


def two_at_once(ctx):
    """Overlapping groups in different order on different ranks do not disturb each other."""
    groups.join(ctx)
    a, b = dist.new_group(), dist.new_group()
    ts = torch.ones(1000), torch.full((1000,), 2.0)
    order = [(a, ts[0]), (b, ts[1])]
    works = [dist.all_reduce(t, group=g, async_op=True) for g, t in (order if ctx.me % 2 else reversed(order))]
    for work in works:
        work.wait()
    assert (ts[0][0].item(), ts[1][0].item()) == (ctx.n, 2.0 * ctx.n)


def test_independent(pool):
    pool.run(two_at_once, world=False)


def mesh(ctx):
    from torch.distributed.device_mesh import init_device_mesh

    groups.join(ctx)
    flat = init_device_mesh("cpu", (ctx.n,))
    assert flat.get_group().name() is not None
    t = torch.ones(1)
    dist.all_reduce(t, group=flat.get_group())
    grid = init_device_mesh("cpu", (1, ctx.n), mesh_dim_names=("outer", "inner"))
    dist.all_reduce(t, group=grid.get_group("inner"))
    dist.all_reduce(t, group=grid.get_group("outer"))
    assert t.item() == ctx.n * ctx.n


def test_device_mesh(pool):
    pool.run(mesh, world=False)


def names(ctx):
    groups.join(ctx)
    pg = dist.group.WORLD
    assert dist.get_backend() == "shmem" and dist.is_backend_available("shmem")
    assert pg.rank() == ctx.me and pg.size() == ctx.n and isinstance(pg.group_name, str)
    assert torch._C._distributed_c10d._resolve_process_group(pg.group_name) is pg
    before = pg._get_sequence_number_for_group()
    dist.barrier()
    assert pg._get_sequence_number_for_group() == before + 1
    if groups.NEW:
        assert {d.type for d in pg._device_types} == {"cpu", DEVICE}
        backend = pg._get_backend(torch.device("cpu"))
        assert backend.options is not None and backend.supports_coalescing is False
    assert pg.supports_tensor_alloc(torch.device("cpu"))
    t = pg.allocate_tensor(10, dtype=torch.bfloat16, device=torch.device("cpu"))
    assert t.shape == (10,) and t.dtype is torch.bfloat16
    t.fill_(1)
    dist.all_reduce(t)
    assert t.tolist() == [float(ctx.n)] * 10


def test_names(pool):
    pool.run(names, world=False)


@blocking
def timeouts(ctx):
    """A rank that does not come is an error within the group's, or the call's, timeout; another group is not harmed."""
    groups.join(ctx)
    quick = dist.new_group(timeout=timedelta(seconds=0.6))
    if ctx.me == 0:
        started = time.monotonic()
        with pytest.raises(RuntimeError):
            dist.all_reduce(torch.ones(1), group=quick)
        assert 0.5 < time.monotonic() - started < 30
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == ctx.n
    other = dist.new_group()
    if groups.NEW:
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=0.5), other)
        if ctx.me == 0:
            started = time.monotonic()
            with pytest.raises(RuntimeError):
                dist.barrier(other)
            assert 0.4 < time.monotonic() - started < 30
    dist.barrier()


def test_timeouts(pair):
    pair.run(timeouts, world=False)


@host_memory
def beside_gloo(ctx):
    """A shmem group in a gloo job has a world of its own."""
    groups.join(ctx, "gloo")
    group = dist.new_group(backend="shmem")
    t = torch.ones(3)
    dist.all_reduce(t, group=group)
    dist.all_reduce(t)
    assert t.tolist() == [float(ctx.n**2)] * 3
    groups.leave()
    groups.join(ctx)
    group = dist.new_group(backend="gloo")
    t = torch.ones(3)
    dist.all_reduce(t, group=group)
    dist.all_reduce(t)
    assert t.tolist() == [float(ctx.n**2)] * 3


def test_beside_gloo(pool):
    pool.run(beside_gloo, world=False)


@host_memory
def mixed(ctx):
    """cpu:shmem,cuda:gloo creates both, or raises; it never drops one."""
    groups.leave()
    if not groups.NEW:
        with pytest.raises(RuntimeError, match="several backends"):
            groups.join(ctx, "cpu:shmem,cuda:gloo")
        dist.destroy_process_group() if dist.is_initialized() else None
        return
    groups.join(ctx, "cpu:shmem,cuda:gloo")
    devices = {str(d) for d in dist.group.WORLD._device_types}
    assert devices == {"cpu", "cuda"}, devices
    t = torch.arange(4.0) + ctx.me
    dist.all_reduce(t)
    assert t.tolist() == [ctx.n * k + sum(range(ctx.n)) for k in range(4)]
    work = dist.all_reduce(t, async_op=True)
    work.wait()
    out = [torch.zeros(4) for _ in range(ctx.n)]
    dist.all_gather(out, t)
    dist.barrier()
    everything = [None] * ctx.n
    dist.all_gather_object(everything, ctx.me)
    assert everything == list(range(ctx.n))
    if ctx.n > 1:
        if ctx.me == 0:
            dist.send(torch.ones(2), 1)
        elif ctx.me == 1:
            got = torch.zeros(2)
            dist.recv(got, 0)
            assert got.tolist() == [1.0, 1.0]
    assert dist.group.WORLD._get_backend(torch.device("cpu")).getBackendName() == "shmem"
    groups.leave()


def test_mixed(pool):
    pool.run(mixed, world=False)


def explicit(ctx):
    """cpu:shmem alone is not mixed."""
    groups.leave()
    groups.join(ctx, "cpu:shmem")
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == ctx.n
    groups.leave()


def test_explicit_device(pair):
    pair.run(explicit, world=False)


@host_memory
def detail(ctx):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    for backend in ["shmem"] + ["cpu:shmem,cuda:gloo"] * groups.NEW:
        groups.leave()
        groups.join(ctx, backend)
        t = torch.ones(2)
        dist.all_reduce(t)
        dist.broadcast(t, 0)
        dist.barrier()
        assert t.tolist() == [ctx.n, ctx.n]
        groups.leave()
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "OFF"
    dist.set_debug_level_from_env()


def test_detail(pair):
    pair.run(detail, world=False)


def borrowed(ctx):
    """A group over the world of shmem.init() uses it and leaves it up."""
    import shmem

    groups.leave()
    groups.join(ctx)
    t = torch.ones(2)
    dist.all_reduce(t)
    assert t.tolist() == [ctx.n, ctx.n]
    pg = dist.group.WORLD
    assert pg._world.world is shmem.current()
    groups.leave()
    assert shmem.is_initialized()
    shmem.barrier()


def test_borrowed_world(pool):
    pool.run(borrowed)


def borrowed_twice(ctx):
    """Several groups over one borrowed world, beside gloo and one after the other, keep their operations apart."""
    import shmem

    groups.leave()
    groups.join(ctx, "gloo")
    a, b = dist.new_group(backend="shmem"), dist.new_group(backend="shmem")
    assert a._world is b._world and a._world.world is shmem.current()
    for turn in range(20):
        ts = [torch.full((5,), float(turn + ctx.me)), torch.ones(7)]
        works = [dist.all_reduce(t, group=g, async_op=True) for t, g in zip(ts, (a, b))]
        done = [work.get_future() for work in works]
        assert done[1].wait()[0].tolist() == [ctx.n] * 7
        assert done[0].wait()[0].tolist() == [float(ctx.n * turn + sum(range(ctx.n)))] * 5
    groups.leave()
    groups.join(ctx)
    t = torch.ones(2)
    dist.all_reduce(t, async_op=True).wait()
    assert t.tolist() == [ctx.n] * 2
    groups.leave()


def test_borrowed_twice(pair):
    pair.run(borrowed_twice)


def alone(ctx):
    """A group of one needs nobody."""
    groups.join(ctx)
    t = torch.ones(3)
    for op in (dist.all_reduce, lambda x: dist.broadcast(x, 0), lambda x: dist.all_gather([torch.zeros(3)], x)):
        op(t)
    dist.all_reduce(t, async_op=True).wait()
    dist.barrier()
    assert t.tolist() == [1.0] * 3
    groups.leave()


def test_alone():
    from pool import pools

    pools.get(1).run(alone, world=False)


@blocking
def aborted(ctx):
    """abort() ends what is pending here and at the peers; a new group works afterwards."""
    groups.leave()
    groups.join(ctx)
    if ctx.me == 0:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        dist.group.WORLD.abort()
        groups.tell(ctx, "aborted")
        with pytest.raises(RuntimeError):
            work.wait()
        with pytest.raises(RuntimeError, match="gone"):
            dist.all_reduce(torch.ones(1))
    else:
        groups.told(ctx, "aborted", [0])  # so that the first's operation cannot be over before it aborts
        with pytest.raises(RuntimeError):
            for _ in range(2):
                dist.all_reduce(torch.ones(1))
    groups.leave()
    groups.join(ctx)
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == ctx.n


def test_abort(pair):
    pair.run(aborted, world=False)
