"""The shortest way through a process group: does it come up, move data and go away again."""

from __future__ import annotations

import groups
import pytest
import torch
import torch.distributed as dist

pytestmark = pytest.mark.core  # also over tcp


def all_reduce(ctx):
    groups.join(ctx)
    t = torch.arange(5.0) + 10 * ctx.me
    dist.all_reduce(t)
    return t.tolist()


def test_all_reduce(pool):
    n = pool.n
    want = [float(n * i + 10 * sum(range(n))) for i in range(5)]
    assert pool.run(all_reduce, world=False) == [want] * n


def comes_and_goes(ctx):
    for turn in range(3):
        groups.join(ctx)
        t = torch.tensor([ctx.me + turn])
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        assert t.item() == ctx.n - 1 + turn
        dist.barrier()
        groups.leave()
    return dist.is_initialized()


def test_comes_and_goes(pair):
    assert pair.run(comes_and_goes, world=False) == [False, False]
