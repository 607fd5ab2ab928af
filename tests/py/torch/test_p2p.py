"""Messages between ranks: tags, any source, batches, sizes on both sides of eager, and the monitored barrier."""

from __future__ import annotations

import time
from datetime import timedelta

import groups
import pytest
import torch
import torch.distributed as dist
from layouts import contiguous, same, source, strided

from data import blank

pytestmark = pytest.mark.core  # also over tcp


def ring(ctx):
    """Every size and layout around the ring, blocking and not."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    right, left = (me + 1) % n, (me - 1) % n
    for turn, count in enumerate((0, 1, 7, 1000, 70001, 700001)):
        mine = torch.arange(float(count)) + 1000 * me
        want = torch.arange(float(count)) + 1000 * left
        got = torch.zeros(count)
        work = dist.isend(mine, right, tag=turn)
        dist.recv(got, left, tag=turn)
        work.wait()
        same(got, want, f"isend/recv of {count}")
        got = strided(torch.zeros(1, count)) if count else got
        work = dist.irecv(got, left)
        dist.send(mine.view(got.shape), right) if me % 2 or n % 2 else dist.isend(mine.view(got.shape), right).wait()
        work.wait()
        same(got.reshape(-1), want, f"send/irecv of {count}")


def test_ring(pool):
    if pool.n > 1:
        pool.run(ring, world=False)


def tags(ctx):
    """Tags pick messages out of order; equal tags keep it."""
    groups.join(ctx)
    if ctx.me == 0:
        for tag in (3, 1, 2, 1):
            dist.send(torch.tensor([tag, len(str(tag))]), 1, tag=tag)
        dist.send(torch.tensor([9]), 1, tag=1)
    elif ctx.me == 1:
        got = torch.zeros(2, dtype=torch.int64)
        for tag in (1, 2, 3, 1):
            dist.recv(got, 0, tag=tag)
            assert got.tolist() == [tag, 1]
        last = torch.zeros(1, dtype=torch.int64)
        dist.recv(last, 0, tag=1)
        assert last.item() == 9
    dist.barrier()


def test_tags(pair):
    pair.run(tags, world=False)


def anyone(ctx):
    groups.join(ctx)
    if ctx.me == 0:
        seen = {}
        for _ in range(ctx.n - 1):
            got = torch.zeros(1)
            src = dist.recv(got)
            seen[src] = got.item()
        assert seen == {rank: rank * 1.5 for rank in range(1, ctx.n)}
    else:
        dist.send(torch.tensor([ctx.me * 1.5]), 0)
    dist.barrier()


def test_any_source(trio):
    trio.run(anyone, world=False)


def batch(ctx):
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    out = torch.full((5,), float(me))
    got = [torch.zeros(5) for _ in range(n)]
    peers = [rank for rank in range(n) if rank != me]
    ops = [dist.P2POp(dist.isend, out, rank) for rank in peers] + [dist.P2POp(dist.irecv, got[rank], rank) for rank in peers]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for rank in peers:
        same(got[rank], torch.full((5,), float(rank)), "batch")


def test_batch(pool):
    if pool.n > 1:
        pool.run(batch, world=False)


def sizes_differ(ctx):
    """A message that does not fit is an error of the receiver, both ways, and the group goes on."""
    groups.join(ctx)
    if ctx.me == 0:
        dist.send(torch.zeros(4), 1)
        dist.send(torch.zeros(4), 1)
    elif ctx.me == 1:
        for count in (2, 6):
            with pytest.raises(RuntimeError):
                dist.recv(torch.zeros(count), 0)
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == ctx.n


def test_sizes_differ(pair):
    pair.run(sizes_differ, world=False)


def every_dtype(ctx):
    from layouts import MOVED

    groups.join(ctx)
    for dtype in MOVED:
        if ctx.me == 0:
            dist.send(contiguous(source(dtype, 0, (4,))), 1)
        else:
            got = blank(4, dtype)
            dist.recv(got, 0)
            same(got, source(dtype, 0, (4,)), str(dtype))


def test_every_dtype(pair):
    pair.run(every_dtype, world=False)


def monitored(ctx):
    groups.join(ctx)
    pg = dist.group.WORLD
    for _ in range(2):
        pg.monitored_barrier(timedelta(seconds=120))
    if groups.NEW:
        dist.monitored_barrier(timeout=timedelta(seconds=120))
    if ctx.me == ctx.n - 1 and ctx.n > 1:
        time.sleep(3)  # is missing
    else:
        started = time.monotonic()
        with pytest.raises(RuntimeError, match=f"rank {ctx.n - 1}" if ctx.me == 0 else "rank 0"):
            pg.monitored_barrier(timedelta(seconds=2), wait_all_ranks=True)
        assert 1.9 < time.monotonic() - started < 40
    dist.barrier()


def test_monitored_barrier(trio):
    trio.run(monitored, world=False)
