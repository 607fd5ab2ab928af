"""Functional collectives, autograd through them, and torch.compile over them."""

from __future__ import annotations

import groups
import pytest
import torch
import torch.distributed as dist


def functional(ctx):
    import torch.distributed._functional_collectives as fc

    groups.join(ctx)
    n, me = ctx.n, ctx.me
    group = dist.group.WORLD
    t = torch.arange(4.0) + me
    total = sum(torch.arange(4.0) + rank for rank in range(n))
    assert torch.equal(fc.all_reduce(t, "sum", group).wait(), total)
    assert torch.equal(fc.all_reduce(t, "avg", group).wait(), total / n)
    assert torch.equal(fc.all_gather_tensor(t, 0, group).wait(), torch.cat([torch.arange(4.0) + rank for rank in range(n)]))
    wide = torch.arange(2.0 * n) + me
    assert torch.equal(fc.reduce_scatter_tensor(wide, "sum", 0, group).wait(), (torch.arange(2.0 * n) * n + sum(range(n)))[2 * me : 2 * me + 2])
    out = fc.all_to_all_single(wide, None, None, group).wait()
    assert torch.equal(out, torch.cat([(torch.arange(2.0 * n) + rank)[2 * me : 2 * me + 2] for rank in range(n)]))
    out = fc.all_to_all_single(wide, [2] * n, [2] * n, group).wait()
    assert out.numel() == 2 * n
    assert torch.equal(fc.broadcast(t, 0, group).wait(), torch.arange(4.0))
    several = fc.all_reduce_coalesced([t, t * 2], "sum", group)
    assert [torch.equal(x.wait() if hasattr(x, "wait") else x, total * k) for k, x in ((1, several[0]), (2, several[1]))] == [True, True]
    lists = fc.all_gather_into_tensor_coalesced([t, t[:1]], group)
    assert [x.wait().numel() for x in lists] == [4 * n, n]
    lists = fc.reduce_scatter_tensor_coalesced([wide, wide * 2], "sum", [0, 0], group)
    assert [x.wait().numel() for x in lists] == [2, 2]
    lazy = fc.all_reduce(t, "sum", group)  # waited for at its first use
    assert torch.equal(lazy + 1, total + 1)
    dist.all_reduce(fc.all_reduce(t, "sum", group))
    for _ in range(200):
        fc.all_reduce(t, "sum", group)  # never waited for by the user
    dist.barrier()


@pytest.mark.filterwarnings("ignore")
def test_functional(pool):
    pool.run(functional, world=False)


def in_place(ctx):
    groups.join(ctx)
    ops, name = torch.ops._c10d_functional, dist.group.WORLD.group_name
    t = torch.ones(3)
    ops.wait_tensor(ops.all_reduce_(t, "sum", name))
    assert t.tolist() == [ctx.n] * 3
    if groups.NEW:
        out = torch.zeros(3 * ctx.n)
        ops.wait_tensor(ops.all_gather_into_tensor_out(t, ctx.n, name, out=out))
        assert out.tolist() == [float(ctx.n)] * 3 * ctx.n


def test_in_place(pool):
    pool.run(in_place, world=False)


def gradients(ctx):
    """dist.nn's collectives carry gradients."""
    import torch.distributed.nn.functional as nnf

    groups.join(ctx)
    n, me, world = ctx.n, ctx.me, dist.group.WORLD  # the default argument of these functions is the group of their import
    x = torch.full((3,), float(me + 1), requires_grad=True)
    (nnf.all_reduce(x, group=world) * (me + 1)).sum().backward()
    assert x.grad.tolist() == [float(sum(range(1, n + 1)))] * 3
    x = torch.full((2,), float(me), requires_grad=True)
    (torch.cat(nnf.all_gather(x, group=world)) * torch.arange(2.0 * n)).sum().backward()
    assert torch.equal(x.grad, n * torch.arange(2.0 * n)[2 * me : 2 * me + 2])
    x = torch.arange(float(n), requires_grad=True)
    (nnf.all_to_all_single(torch.zeros(n), x, group=world) * (me + 1)).sum().backward()
    assert torch.equal(x.grad, torch.arange(1.0, n + 1))


@pytest.mark.filterwarnings("ignore")
def test_gradients(pool):
    pool.run(gradients, world=False)


def compiled(ctx, backend):
    import torch.distributed._functional_collectives as fc

    groups.join(ctx)
    n, me = ctx.n, ctx.me

    def traced(x):
        y = fc.all_reduce(x * 2, "sum", dist.group.WORLD)
        z = fc.all_gather_tensor(y + 1, 0, dist.group.WORLD)
        return z.sum() + fc.reduce_scatter_tensor(z, "sum", 0, dist.group.WORLD).sum()

    x = torch.arange(4.0) + me
    torch.testing.assert_close(torch.compile(traced, backend=backend, fullgraph=True)(x), traced(x) + 0)

    def plain(t):
        dist.all_reduce(t)
        return t * 2

    want = sum(torch.arange(4.0) + rank for rank in range(n)) * 2
    assert torch.equal(torch.compile(plain, backend=backend, fullgraph=True)(x.clone()), want)
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled(pair, backend):
    pair.run(compiled, backend, world=False, timeout=500)


def compiled_ddp(ctx):
    import logging

    import test_training as training

    groups.join(ctx)
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage()) if record.levelno >= logging.ERROR else None
    logging.getLogger("torch._dynamo").addHandler(handler)
    want = training.ddp(ctx)
    net = torch.compile(torch.nn.parallel.DistributedDataParallel(training.model()), backend="aot_eager")
    got = training.steps(net, torch.optim.SGD(net.parameters(), lr=0.1), ctx)
    training.close(got, want)
    assert not said, said
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore")
def test_compiled_ddp(pair):
    pair.run(compiled_ddp, world=False, timeout=500)
