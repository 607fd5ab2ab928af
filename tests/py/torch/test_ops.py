"""Every collective, dtype and layout against the same computation on one process."""

from __future__ import annotations

import groups
import pytest
import torch
import torch.distributed as dist
from layouts import COMPLEX, LAYOUTS, MOVED, OPERATORS, REDUCED, contiguous, defined, operator_of, reference, same, source, strided, transposed

from data import DEVICE, here

pytestmark = pytest.mark.core  # also over tcp
MADE_ON = "cpu"  # values and what is expected; what is communicated goes where here() and the layouts put it


def reductions(ctx, operator):
    """all_reduce, reduce, reduce_scatter, reduce_scatter_tensor of one operator over every dtype and layout."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    ran = 0
    for dtype in REDUCED + (COMPLEX if operator in ("SUM", "AVG") else ()):
        if not defined(dtype, operator):
            refused(dtype, operator)
            continue
        for salt, layout in enumerate(LAYOUTS):
            parts = [source(dtype, rank, (n * 2, 5), salt) for rank in range(n)]
            want = reference(operator, parts)
            name = f"{operator} {dtype} {layout.__name__}"
            t = layout(parts[me])
            dist.all_reduce(t, op=operator_of(operator))
            same(t, want, "all_reduce " + name)
            t = layout(parts[me])
            dist.reduce(t, dst=n - 1, op=operator_of(operator))
            same(t, want if me == n - 1 else parts[me], "reduce " + name)
            out = layout(torch.zeros((2, 5), dtype=dtype))
            dist.reduce_scatter_tensor(out, layout(parts[me]), op=operator_of(operator))
            same(out, want[2 * me : 2 * me + 2], "reduce_scatter_tensor " + name)
            out = layout(torch.zeros((2, 5), dtype=dtype))
            dist.reduce_scatter(out, [layout(piece) for piece in parts[me].chunk(n)], op=operator_of(operator))
            same(out, want[2 * me : 2 * me + 2], "reduce_scatter " + name)
            ran += 4
    return ran


def refused(dtype, operator):
    t = source(dtype, 0)
    with pytest.raises((RuntimeError, NotImplementedError)):
        dist.all_reduce(t, op=operator_of(operator))


@pytest.mark.parametrize("operator", OPERATORS)
def test_reductions(pool, operator):
    ran = pool.run(reductions, operator, world=False)
    assert min(ran) > 0


def movements(ctx):
    """Everything that only moves data, over every dtype and layout."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    for dtype in MOVED:
        for salt, layout in enumerate(LAYOUTS):
            parts = [source(dtype, rank, (n, 3), salt) for rank in range(n)]
            empty = torch.zeros((n, 3), dtype=dtype)
            name = f"{dtype} {layout.__name__}"
            root = salt % n
            t = layout(parts[me])
            dist.broadcast(t, src=root)
            same(t, parts[root], "broadcast " + name)
            outs = [layout(empty) for _ in range(n)]
            dist.all_gather(outs, layout(parts[me]))
            for rank in range(n):
                same(outs[rank], parts[rank], "all_gather " + name)
            out = layout(torch.zeros((n * n, 3), dtype=dtype))
            dist.all_gather_into_tensor(out, layout(parts[me]))
            for rank in range(n):
                same(out[rank * n : rank * n + n], parts[rank], "all_gather_into_tensor " + name)
            outs = [layout(empty) for _ in range(n)] if me == root else None
            dist.gather(layout(parts[me]), outs, dst=root)
            for rank in range(n if me == root else 0):
                same(outs[rank], parts[rank], "gather " + name)
            out = layout(torch.zeros(3, dtype=dtype))
            dist.scatter(out, [layout(row) for row in parts[root]] if me == root else None, src=root)
            same(out, parts[root][me], "scatter " + name)
            out = layout(empty)
            dist.all_to_all_single(out, layout(parts[me]))
            for rank in range(n):
                same(out[rank], parts[rank][me], "all_to_all_single " + name)
            outs = [layout(torch.zeros(3, dtype=dtype)) for _ in range(n)]
            dist.all_to_all(outs, [layout(row) for row in parts[me]])
            for rank in range(n):
                same(outs[rank], parts[rank][me], "all_to_all " + name)


def test_movements(pool):
    pool.run(movements, world=False, timeout=300)


def splits(ctx):
    """all_to_all with sizes that differ per pair, empty ones among them."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    rows = [[(i * 3 + j * 2) % 4 for j in range(n)] for i in range(n)]  # rows[i][j]: rows that i sends to j
    parts = [source(torch.float32, rank, (sum(rows[rank]), 2)) for rank in range(n)]
    incoming = [rows[rank][me] for rank in range(n)]
    want = [parts[rank].split(rows[rank])[me] for rank in range(n)]
    for layout in (contiguous, transposed):
        out = layout(torch.zeros((sum(incoming), 2)))
        dist.all_to_all_single(out, layout(parts[me]), incoming, rows[me])
        same(out, torch.cat(want), f"all_to_all_single {layout.__name__}")
        outs = [layout(torch.zeros((count, 2))) for count in incoming]
        dist.all_to_all(outs, [layout(piece) for piece in parts[me].split(rows[me])])
        for rank in range(n):
            same(outs[rank], want[rank], f"all_to_all {layout.__name__}")
    outs = [here(torch.zeros((rank + 1, 2))) for rank in range(n)]
    dist.all_gather(outs, here(torch.full((me + 1, 2), float(me))))
    for rank in range(n):
        same(outs[rank], torch.full((rank + 1, 2), float(rank)), "uneven all_gather")
    out = here(torch.zeros(me + 1))
    dist.reduce_scatter(out, [here(torch.arange(rank + 1.0) + me) for rank in range(n)])
    same(out, torch.arange(me + 1.0) * n + sum(range(n)), "uneven reduce_scatter")


def test_splits(pool):
    pool.run(splits, world=False)


def edges(ctx):
    """Empty, 0-dimensional, expanded, conjugate and negative tensors; outputs that overlap themselves; inputs inside outputs."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    for shape in ((0,), (3, 0)):
        t = here(torch.zeros(shape))
        dist.all_reduce(t)
        dist.broadcast(t, 0)
        dist.all_gather([here(torch.zeros(shape)) for _ in range(n)], t)
        dist.reduce_scatter_tensor(here(torch.zeros(0)), here(torch.zeros(0)))
    t = here(torch.tensor(float(me)))
    dist.all_reduce(t)
    assert t.item() == sum(range(n)) and t.dim() == 0
    wide = here(torch.tensor([[float(me)]])).expand(3, 4)
    outs = [here(torch.zeros(3, 4)) for _ in range(n)]
    dist.all_gather(outs, wide)
    assert [o.cpu().unique().item() for o in outs] == list(map(float, range(n)))
    with pytest.raises(ValueError, match="one place in memory"):
        dist.all_reduce(wide)
    turned = here(torch.complex(torch.tensor([1.0, me]), torch.tensor([2.0, 3.0]))).conj()
    sign = turned.imag  # a negative view
    assert sign.is_neg()
    dist.all_reduce(sign)
    same(torch._neg_view(sign), torch.tensor([2.0 * n, 3.0 * n]), "negative view")
    wholes = [torch.complex(torch.tensor([1.0, rank + 0.5]), torch.tensor([2.0, -3.0])) for rank in range(n)]
    turned = here(wholes[me].conj().resolve_conj()).conj() if me % 2 else here(wholes[me].clone())  # the same number, not the same bits
    dist.group.WORLD.allreduce([turned]).wait()
    same(turned.conj().cpu().conj() if me % 2 else turned.cpu(), sum(wholes), "conjugate view")
    inside = here(torch.zeros(n, 4))
    inside[me] = torch.arange(4.0) + me
    dist.all_gather_into_tensor(inside, inside[me])
    same(inside, torch.stack([torch.arange(4.0) + rank for rank in range(n)]), "all_gather in place")
    inside = here(torch.stack([torch.arange(4.0) + rank for rank in range(n)]))
    dist.reduce_scatter_tensor(inside[me], inside)
    same(inside[me], (torch.arange(4.0) + me) * n, "reduce_scatter in place")
    lonely = strided(torch.arange(6.0).view(2, 3) + me)
    dist.broadcast(lonely, n - 1)
    same(lonely, torch.arange(6.0).view(2, 3) + n - 1, "strided broadcast")
    p = torch.nn.Parameter(here(torch.full((3,), float(me))))
    dist.all_reduce(p.data)
    dist.broadcast(p, 0)
    same(p.detach(), torch.full((3,), float(sum(range(n)))), "parameter")


def test_edges(pool):
    pool.run(edges, world=False)


def premultiplied(ctx):
    groups.join(ctx)
    make = dist._make_nccl_premul_sum
    for dtype in (torch.float32, torch.float64, torch.float16):
        parts = [source(dtype, rank, (7,)) for rank in range(ctx.n)]
        want = sum(part * 0.5 for part in parts)
        t = contiguous(parts[ctx.me])
        dist.all_reduce(t, op=make(0.5))
        same(t, want, f"factor {dtype}")
        t = contiguous(parts[ctx.me])
        dist.all_reduce(t, op=make(here(torch.tensor([0.5], dtype=dtype))))
        same(t, want, f"tensor factor {dtype}")


def test_premultiplied(pool):
    pool.run(premultiplied, world=False)


def sparse(ctx):
    groups.join(ctx)
    dense = [torch.diag(torch.arange(4.0) + rank) if rank % 2 else torch.eye(4) for rank in range(ctx.n)]
    t = here(dense[ctx.me].to_sparse())
    dist.all_reduce(t)
    same(t.cpu().to_dense(), sum(dense), "sparse sum")


def test_sparse(pool):
    pool.run(sparse, world=False)


def objects(ctx):
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    everything = [{"rank": rank, "text": "x" * rank, "none": None} for rank in range(n)]
    got = [None] * n
    dist.all_gather_object(got, everything[me])
    assert got == everything
    got = [None] * n if me == n - 1 else None
    dist.gather_object(everything[me], got, dst=n - 1)
    assert got == (everything if me == n - 1 else None)
    got = [everything[0], 17] if me == 0 else [None, None]
    dist.broadcast_object_list(got, src=0)
    assert got == [everything[0], 17]
    got = [None]
    dist.scatter_object_list(got, everything if me == 0 else None, src=0)
    assert got == [everything[me]]
    if n > 1 and me < 2:
        if me == 0:
            dist.send_object_list([everything[0]], dst=1)
        else:
            got = [None]
            dist.recv_object_list(got, src=0)
            assert got == [everything[0]]


def test_objects(pool):
    pool.run(objects, world=False)


def coalesced(ctx):
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    manager = dist.distributed_c10d._coalescing_manager
    ts = [here(torch.full((k + 1,), float(me + k))) for k in range(3)]
    with manager():
        for t in ts:
            dist.all_reduce(t)
    for k, t in enumerate(ts):
        same(t, torch.full((k + 1,), float(sum(range(n)) + k * n)), "coalesced all_reduce")
    outs = [here(torch.zeros(n * (k + 1))) for k in range(3)]
    with manager(async_ops=True) as work:
        for k, out in enumerate(outs):
            dist.all_gather_into_tensor(out, here(torch.full((k + 1,), float(me))))
    work.wait()
    for k, out in enumerate(outs):
        same(out, torch.arange(float(n)).repeat_interleave(k + 1), "coalesced all_gather")
    outs = [here(torch.zeros(k + 1)) for k in range(3)]
    with manager():
        for k, out in enumerate(outs):
            dist.reduce_scatter_tensor(out, here(torch.arange(float(n * (k + 1)))))
    for k, out in enumerate(outs):
        same(out, n * torch.arange(float(n * (k + 1)))[me * (k + 1) : (me + 1) * (k + 1)], "coalesced reduce_scatter")
    t, u = here(torch.tensor([float(me)])), here(torch.tensor([me]))
    with manager(device=torch.device(DEVICE), async_ops=True) as work:
        dist.broadcast(t, 0)
        dist.broadcast(u, n - 1)
    work.wait()
    assert (t.item(), u.item()) == (0.0, n - 1)
    if hasattr(dist, "all_reduce_coalesced"):
        ts = [here(torch.tensor([me, 1])), here(torch.tensor([2 * me]))]
        dist.all_reduce_coalesced(ts)
        assert [x.tolist() for x in ts] == [[sum(range(n)), n], [2 * sum(range(n))]]
    if hasattr(dist, "all_gather_coalesced"):
        lists = [[here(torch.zeros(2)), here(torch.zeros(1))] for _ in range(n)]
        dist.all_gather_coalesced(lists, [here(torch.full((2,), float(me))), here(torch.tensor([me + 0.5]))])
        for rank in range(n):
            assert [x.tolist() for x in lists[rank]] == [[rank, rank], [rank + 0.5]]


@pytest.mark.filterwarnings("ignore:torch.distributed.all")
def test_coalesced(pool):
    pool.run(coalesced, world=False)


def wrong_arguments(ctx):
    """Refused here, with words, before any peer is bothered; the group goes on."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    with pytest.raises(ValueError, match="elements"):
        dist.all_gather_into_tensor(here(torch.zeros(n * 3 + 1)), here(torch.zeros(3)))
    with pytest.raises(ValueError, match="elements"):
        dist.reduce_scatter_tensor(torch.zeros(3), here(torch.zeros(3 * n + 1)))
    with pytest.raises((ValueError, RuntimeError), match="dtype"):
        dist.all_gather_into_tensor(torch.zeros(n * 3, dtype=torch.int32), here(torch.zeros(3)))
    with pytest.raises(ValueError, match="tensors"):
        dist.all_gather([here(torch.zeros(3))] * (n + 1), here(torch.zeros(3)))
    with pytest.raises(ValueError, match="split"):
        dist.all_to_all_single(torch.zeros(n), here(torch.zeros(n)), [1] * n, [2] * n)
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match="meta|cpu"):
        dist.all_reduce(torch.zeros(3, device="meta"))
    t = torch.tensor([float(me)])
    dist.all_reduce(t)
    assert t.item() == sum(range(n))


def test_wrong_arguments(pool):
    pool.run(wrong_arguments, world=False)
