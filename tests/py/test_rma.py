"""put, get and their forms, over every distance between two PEs of a pool."""

from __future__ import annotations

import array

import pytest
import torch

import shmem
from data import MOVABLE, Guarded, here, on_host, pattern, values

SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 4097, 65536, (1 << 20) + 3]


def right(ctx):
    return (ctx.me + 1) % ctx.n


def left(ctx):
    return (ctx.me - 1) % ctx.n


def put_sizes(ctx):
    whole = shmem.empty((1 << 20) + 200, dtype=torch.uint8)
    for i, size in enumerate(SIZES):
        for offset in (0, 1, 5, 8, 15) if size < 100 else (0, 3):
            guard = Guarded(whole, 64 + offset, size)
            shmem.barrier()
            shmem.put(guard.inner, pattern(size, ctx.me, i), right(ctx))
            shmem.barrier()
            assert torch.equal(guard.inner, pattern(size, left(ctx), i)), (size, offset)
            guard.check()


def test_put_every_size_at_odd_offsets(pool):
    pool.run(put_sizes)


def get_sizes(ctx):
    whole = shmem.empty((1 << 20) + 200, dtype=torch.uint8)
    for i, size in enumerate(SIZES):
        for offset in (0, 1, 7) if size < 100 else (0, 3):
            guard = Guarded(whole, 64 + offset, size)
            guard.inner.copy_(pattern(size, ctx.me, i))
            local = torch.full((size + 32,), 0x5A, dtype=torch.uint8)
            shmem.barrier()
            shmem.get(local[16 : 16 + size], guard.inner, right(ctx))
            assert torch.equal(local[16 : 16 + size], pattern(size, right(ctx), i)), (size, offset)
            assert bool((local[:16] == 0x5A).all()) and bool((local[16 + size :] == 0x5A).all())
            shmem.barrier()


def test_get_every_size_at_odd_offsets(pool):
    pool.run(get_sizes)


def put_dtypes(ctx):
    for i, dtype in enumerate(MOVABLE):
        def mine(pe, dtype=dtype, i=i):
            with on_host():
                return values((5, 3), torch.float32, pe, i).to(dtype) if "float8" in str(dtype) else values((5, 3), dtype, pe, i)

        t = shmem.zeros(5, 3, dtype=dtype)
        shmem.put(t, here(mine(ctx.me)), right(ctx))
        shmem.barrier()
        assert torch.equal(t.view(torch.uint8).cpu(), mine(left(ctx)).view(torch.uint8)), dtype
        shmem.barrier()


def test_put_every_dtype(pair):
    pair.run(put_dtypes)


def layouts(ctx):
    t = shmem.zeros(4, 6, dtype=torch.float32)
    base = values((6, 4), torch.float32, ctx.me, 3)
    theirs = values((6, 4), torch.float32, left(ctx), 3)
    cases = [
        lambda b: b.t(),  # transposed
        lambda b: b.t().flip(0),
        lambda b: b[:1].t().expand(4, 6),  # expanded
        lambda b: torch.cat([b, b], 1).t()[::2][:4].contiguous(),
        lambda b: torch.stack([b.t(), b.t()], 2)[:, :, 1],  # strided with an offset
        lambda b: torch._neg_view(b.t()),
    ]
    for case in cases:
        shmem.put(t, case(base), right(ctx))
        shmem.barrier()
        assert torch.equal(t, case(theirs).resolve_neg())
        shmem.barrier()
    got = torch.zeros(6, 4).t()  # a target with gaps between its elements
    shmem.get(got, t, left(ctx))
    shmem.barrier()
    assert torch.equal(got, cases[-1](values((6, 4), torch.float32, (ctx.me - 2) % ctx.n, 3)).resolve_neg())
    z = shmem.zeros(3, dtype=torch.complex64)
    c = torch.tensor([1 + 2j, 3 - 1j, ctx.me + 0j], device="cpu")
    shmem.put(z, c.conj(), right(ctx))
    shmem.barrier()
    assert torch.equal(z.cpu(), torch.tensor([1 - 2j, 3 + 1j, left(ctx) + 0j], device="cpu"))
    param = torch.nn.Parameter(torch.full((4, 6), float(ctx.me)))
    shmem.put(t, param, right(ctx))
    shmem.barrier()
    assert bool((t == left(ctx)).all())


def test_any_layout_as_source(trio):
    trio.run(layouts)


def refused(ctx):
    t = shmem.zeros(4, 6)
    src = torch.ones(4, 6)
    bad = [
        (shmem.NotSymmetricError, lambda: shmem.put(src.clone(), src, 0)),
        (shmem.InvalidPEError, lambda: shmem.put(t, src, ctx.n)),
        (shmem.InvalidPEError, lambda: shmem.put(t, src, -1)),
        (shmem.InvalidArgumentError, lambda: shmem.put(t, src[:2], 0)),
        (shmem.InvalidArgumentError, lambda: shmem.put(t, src.to(torch.int32), 0)),
        (shmem.InvalidArgumentError, lambda: shmem.put(t.t(), src.t(), 0)),
        (shmem.InvalidArgumentError, lambda: shmem.put(t, src.to_sparse(), 0)),
        (shmem.InvalidArgumentError, lambda: shmem.put(t, torch.empty(4, 6, device="meta"), 0)),
        (shmem.InvalidArgumentError, lambda: shmem.get(torch.zeros(1, 6).expand(4, 6), t, 0)),
        (shmem.InvalidArgumentError, lambda: shmem.put(t, "text", 0)),
        (shmem.InvalidArgumentError, lambda: shmem.get(bytes(96), t, 0)),
        (shmem.NotSymmetricError, lambda: shmem.get(src, torch.ones(4, 6), 0)),
        (shmem.InvalidArgumentError, lambda: shmem.p(t, 1.0, 0, index=24)),
        (shmem.InvalidArgumentError, lambda: shmem.p(shmem.current() and t, "x", 0)),
        (shmem.InvalidArgumentError, lambda: shmem.quiet(timeout=-1)),
    ]
    for i, (kind, call) in enumerate(bad):
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value), i
    shmem.barrier()
    assert bool((t == 0).all())
    with pytest.raises(shmem.InvalidPEError) as caught:
        shmem.put(t, src, ctx.n)
    assert str(ctx.n) in str(caught.value)


def test_bad_arguments_raise_and_move_nothing(pair):
    pair.run(refused)


def past_the_end(ctx):
    t = shmem.zeros(8, dtype=torch.uint8)
    low = shmem.heap_stats()["low"]
    size = shmem.heap_stats()["bytes"]
    lib = shmem._lib.library()
    world = shmem.current().handle
    src = torch.ones(64, dtype=torch.uint8)
    for address, nbytes in ((low + size - 8, 64), (low - 8, 8), (low, 2**63), (2**64 - 8, 64), (low + size, 1)):
        for code in (lib.put(world, address, src.data_ptr(), nbytes, 0), lib.get(world, src.data_ptr(), address, nbytes, 0)):
            assert code in (shmem._abi.STATUS["ENOTSYM"], shmem._abi.STATUS["EINVAL"]), (address, nbytes, code)
    assert bool((t == 0).all()) and bool((src == 1).all())


def test_ranges_that_leave_the_heap_are_refused(pair):
    pair.run(past_the_end)


def strided(ctx):
    t = shmem.zeros(40, dtype=torch.int32)
    src = torch.arange(40, dtype=torch.int32) + 1000 * ctx.me
    shmem.iput(t, src, right(ctx), dst_stride=3, src_stride=2)
    shmem.barrier()
    want = torch.zeros(40, dtype=torch.int32)
    want[::3] = (torch.arange(40, dtype=torch.int32) + 1000 * left(ctx))[::2][:14]
    assert torch.equal(t, want)
    got = torch.full((20,), -1, dtype=torch.int32)
    shmem.iget(got, t, right(ctx), dst_stride=4, src_stride=3, count=5)
    expect = torch.full((20,), -1, dtype=torch.int32)
    expect[::4] = (torch.arange(40, dtype=torch.int32) + 1000 * ctx.me)[::2][:5]
    assert torch.equal(got, expect)
    for bad in ({"dst_stride": 0}, {"count": 41}, {"count": -1}, {"src_stride": -2}):
        with pytest.raises(shmem.InvalidArgumentError):
            shmem.iput(t, src, 0, **bad)
    shmem.iput(t, src, right(ctx), count=0)
    shmem.barrier()


def test_strided(pool):
    pool.run(strided)


def single_values(ctx):
    for dtype, value in (
        (torch.uint8, 200),
        (torch.int16, -3000),
        (torch.int32, -(2**31)),
        (torch.int64, 2**62 + 1),
        (torch.float32, 1.5),
        (torch.float64, -0.1),
        (torch.bool, True),
        (torch.float16, 0.25),
    ):
        t = shmem.zeros(5, dtype=dtype)
        shmem.p(t, value, right(ctx), index=3)
        shmem.barrier()
        assert t.tolist() == [0, 0, 0, value, 0], dtype
        assert shmem.g(t, right(ctx), index=3) == value
        assert shmem.g(t, right(ctx), index=2) == 0
        shmem.barrier()
    with pytest.raises(shmem.InvalidArgumentError, match="300"):
        shmem.p(shmem.current() and shmem.buffer(4), 300, 0)


def test_single_values(pool):
    pool.run(single_values)


def nonblocking(ctx):
    t = shmem.zeros(ctx.n, 1000, dtype=torch.int64)
    kept = [torch.arange(1000) + 10000 * ctx.me + 7 * pe for pe in range(ctx.n)]
    for pe in range(ctx.n):
        shmem.put_nbi(t[ctx.me], kept[pe], pe)
    shmem.quiet()
    shmem.barrier()
    for pe in range(ctx.n):
        assert torch.equal(t[pe], torch.arange(1000) + 10000 * pe + 7 * ctx.me)
    got = torch.zeros(ctx.n, 1000, dtype=torch.int64)
    for pe in range(ctx.n):
        shmem.get_nbi(got[pe], t[ctx.me], pe)
    shmem.quiet()
    for pe in range(ctx.n):
        assert torch.equal(got[pe], torch.arange(1000) + 10000 * ctx.me + 7 * pe)
    shmem.barrier()


def test_nonblocking_and_quiet(pool):
    pool.run(nonblocking)


def many(ctx):
    t = shmem.zeros(1000, 8, dtype=torch.uint8)
    src = pattern(8000, ctx.me).view(1000, 8)
    order = torch.randperm(1000, generator=torch.Generator("cpu").manual_seed(ctx.me), device="cpu")
    pieces = shmem.Pieces([(t[i], src[i], right(ctx)) for i in order.tolist()])
    assert len(pieces) == 1000
    pieces.put()
    shmem.barrier()
    assert torch.equal(t.flatten(), pattern(8000, left(ctx)))
    src.zero_()
    pieces.get()
    assert torch.equal(src.flatten(), pattern(8000, ctx.me))
    shmem.barrier()
    at = shmem.Pieces.at(t, pattern(8000, ctx.me, 9), [0, 16, 4000], array.array("q", [8, 0, 100]), torch.tensor([3, 0, 5]), [right(ctx)] * 3)
    at.put()
    shmem.barrier()
    want = pattern(8000, left(ctx)).clone()
    want[0:3] = pattern(8000, left(ctx), 9)[8:11]
    want[4000:4005] = pattern(8000, left(ctx), 9)[100:105]
    assert torch.equal(t.flatten(), want)
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.Pieces.at(t, src, [7999], [0], [2], [0])
    shmem.barrier()
    with pytest.raises(shmem.InvalidPEError, match="piece 1 of 2"):
        shmem.put_many([(t[0], src[0], 0), (t[1], src[1], ctx.n)])
    shmem.get_many([(src[1], t[1], ctx.me)])
    shmem.barrier()


def test_many_pieces(pool):
    pool.run(many)


def buffers(ctx):
    b = shmem.buffer(100)
    assert len(b) == 100 and bytes(b.data) == bytes(100)
    shmem.barrier()
    shmem.put(b, bytes(range(ctx.me, ctx.me + 100)), right(ctx))
    shmem.barrier()
    assert bytes(b.data) == bytes(range(left(ctx), left(ctx) + 100))
    out = bytearray(10)
    shmem.get(out, b.slice(20, 30), right(ctx))
    assert bytes(out) == bytes(range(ctx.me + 20, ctx.me + 30))
    shmem.barrier()
    q = shmem.buffer(64, format="q")
    shmem.barrier()
    shmem.put(q.slice(1, 3), array.array("q", [ctx.me, -ctx.me]), right(ctx))
    shmem.barrier()
    assert list(q.data) == [0, left(ctx), -left(ctx), 0, 0, 0, 0, 0]
    assert q[1] == left(ctx)
    with pytest.raises(shmem.InvalidArgumentError):
        q.slice(3, 9)
    shmem.barrier()


def test_buffers_without_torch(pool):
    pool.run(buffers)


def views(ctx):
    t = shmem.zeros(4, 5, dtype=torch.int32)
    t += ctx.me * 100 + torch.arange(20, dtype=torch.int32).view(4, 5)
    shmem.barrier()
    for pe in range(ctx.n):
        if not ctx.mapped and pe != ctx.me:
            with pytest.raises(shmem.UnsupportedError):
                shmem.peer(t, pe)
            continue
        view = shmem.peer(t, pe)
        assert torch.equal(view, pe * 100 + torch.arange(20, dtype=torch.int32).view(4, 5))
        part = shmem.peer(t[1:, 2].t(), pe)  # strided with an offset
        assert torch.equal(part, (pe * 100 + torch.arange(20, dtype=torch.int32).view(4, 5))[1:, 2])
        view[ctx.me % 4, 0] += 0  # a store through the view reaches that PE
    shmem.barrier()
    if ctx.mapped:
        shmem.peer(t, right(ctx))[3, 4] = 7000 + ctx.me
        shmem.barrier()
        assert t[3, 4] == 7000 + left(ctx)
    shmem.barrier()
    for pe in (-1, ctx.n):
        with pytest.raises(shmem.InvalidPEError):
            shmem.peer(t, pe)
    with pytest.raises(shmem.NotSymmetricError):
        shmem.peer(torch.zeros(3), 0)


def test_peer_views(pool):
    pool.run(views)


def threads(ctx):
    import threading

    t = shmem.zeros(8, 1000, dtype=torch.int64)
    src = [torch.arange(1000) + 1_000_000 * k + ctx.me for k in range(8)]
    errors = []

    def work(k):
        try:
            for i in range(1000):
                shmem.put(t[k, i : i + 1], src[k][i : i + 1], right(ctx))
        except Exception as problem:
            errors.append(problem)

    crew = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert not errors, errors
    shmem.barrier()
    assert torch.equal(t, torch.stack([torch.arange(1000) + 1_000_000 * k + left(ctx) for k in range(8)]))
    shmem.barrier()


def test_eight_threads_put_to_one_peer(pair):
    pair.run(threads)
