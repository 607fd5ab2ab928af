"""Collectives against what torch computes in one process: dtypes, operators, sizes, layouts, symmetric and ordinary memory."""

from __future__ import annotations

import functools
import time

import pytest
import torch
from interrupts import control_c_once_begun

import shmem
from data import COMPLEX, FLOATS, INTEGERS, blank, here, host_memory, on_host, pattern, values

COUNTS = [0, 1, 2, 3, 17, 24, 25, 97, 1000, 4099, 65536, 300_007]
REDUCTIONS = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


def defined(op, dtype):
    if op in ("band", "bor", "bxor"):
        return not dtype.is_floating_point and not dtype.is_complex
    if op in ("min", "max"):
        return not dtype.is_complex
    if op == "avg":
        return dtype.is_floating_point or dtype.is_complex
    return True


def reference(inputs, op):
    dtype = inputs[0].dtype
    if dtype == torch.bool and op in ("sum", "max", "min", "prod"):
        op = {"sum": "bor", "max": "bor", "min": "band", "prod": "band"}[op]
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    wider = [t.to(wide) for t in inputs]
    if op == "avg":
        return (functools.reduce(REDUCTIONS["sum"], wider) / len(wider)).to(dtype)
    return functools.reduce(REDUCTIONS[op], wider).to(dtype)


def made(count, symmetric, dtype=torch.uint8):
    return shmem.zeros(count, dtype=dtype) if symmetric else torch.zeros(count, dtype=dtype)


def reduce_table(ctx):
    for dtype in INTEGERS + FLOATS + COMPLEX + (torch.bool,):
        for op in (*REDUCTIONS, "avg"):
            with on_host():
                want = [values((37,), dtype, pe, 1) for pe in range(ctx.n)]
            mine = here(want[ctx.me].clone())
            if not defined(op, dtype):
                with pytest.raises(shmem.InvalidArgumentError, match=op):
                    shmem.all_reduce(mine, op)
                continue
            shmem.all_reduce(mine, op)
            want = reference(want, op)
            mine = mine.cpu()
            if (dtype.is_floating_point or dtype.is_complex) and op in ("avg", "prod"):
                torch.testing.assert_close(mine, want, msg=lambda m, o=op, d=dtype: f"{o} {d}: {m}")
            else:
                assert torch.equal(mine, want), (op, dtype, mine, want)


def test_every_dtype_and_operator(pool):
    pool.run(reduce_table, timeout=300)


def reduce_sizes(ctx, symmetric):
    for i, count in enumerate(COUNTS):
        for dtype in (torch.float32, torch.int64, torch.uint8):
            t = made(count + 5, symmetric, dtype)
            t[1 : 1 + count].copy_(values((count,), dtype, ctx.me, i))
            t[:1], t[1 + count :] = 77, 78
            shmem.all_reduce(t[1 : 1 + count])
            want = reference([values((count,), dtype, pe, i) for pe in range(ctx.n)], "sum")
            assert torch.equal(t[1 : 1 + count], want), (count, dtype)
            assert bool((t[:1] == 77).all()) and bool((t[1 + count :] == 78).all())
            out = made(count, symmetric, dtype)
            given = values((count,), dtype, ctx.me, i + 50)
            shmem.all_reduce(given, "max", out=out)
            assert torch.equal(out, reference([values((count,), dtype, pe, i + 50) for pe in range(ctx.n)], "max"))
            assert torch.equal(given, values((count,), dtype, ctx.me, i + 50))


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "ordinary"])
def test_all_reduce_sizes(pool, symmetric):
    pool.run(reduce_sizes, symmetric, timeout=300)


def moves(ctx, symmetric):
    n = ctx.n
    for i, count in enumerate([0, 1, 5, 96, 97, 1000, 4099, 70_001]):
        for root in {0, n - 1}:
            t = made(count, symmetric)
            t.copy_(pattern(count, ctx.me, i))
            shmem.broadcast(t, root)
            assert torch.equal(t, pattern(count, root, i)), ("broadcast", count)
            r = values((count,), torch.float32, ctx.me, i)
            shmem.reduce(r, root)
            want = reference([values((count,), torch.float32, pe, i) for pe in range(n)], "sum")
            assert torch.equal(r, want if ctx.me == root else values((count,), torch.float32, ctx.me, i)), ("reduce", count)
            out = made(n * count, symmetric)
            shmem.gather(out if ctx.me == root else None, pattern(count, ctx.me, i), root)
            if ctx.me == root:
                assert torch.equal(out, torch.cat([pattern(count, pe, i) for pe in range(n)])), ("gather", count)
            part = made(count, symmetric)
            shmem.scatter(part, pattern(n * count, 9, i) if ctx.me == root else None, root)
            assert torch.equal(part, pattern(n * count, 9, i)[ctx.me * count : (ctx.me + 1) * count]), ("scatter", count)
        out = made(n * count, symmetric)
        shmem.all_gather(out, pattern(count, ctx.me, i))
        assert torch.equal(out, torch.cat([pattern(count, pe, i) for pe in range(n)])), ("all_gather", count)
        shmem.all_to_all(out, pattern(n * count, ctx.me, i))
        want = torch.cat([pattern(n * count, pe, i)[ctx.me * count : (ctx.me + 1) * count] for pe in range(n)])
        assert torch.equal(out, want), ("all_to_all", count)
        part = made(count, symmetric, torch.float32)
        shmem.reduce_scatter(part, values((n * count,), torch.float32, ctx.me, i))
        whole = reference([values((n * count,), torch.float32, pe, i) for pe in range(n)], "sum")
        assert torch.equal(part, whole[ctx.me * count : (ctx.me + 1) * count]), ("reduce_scatter", count)


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "ordinary"])
def test_moving_collectives(pool, symmetric):
    pool.run(moves, symmetric, timeout=300)


def per_peer(ctx):
    n, me = ctx.n, ctx.me
    counts = [(3 * pe + 1) % 5 for pe in range(n)]  # some are 0
    out = torch.zeros(sum(counts), dtype=torch.int16)
    shmem.all_gather_v(out, values((counts[me],), torch.int16, me, 4), counts)
    assert torch.equal(out, torch.cat([values((counts[pe],), torch.int16, pe, 4) for pe in range(n)]))
    table = [[(a * 7 + b * 3) % 6 for b in range(n)] for a in range(n)]  # a sends table[a][b] to b
    to, of = table[me], [table[a][me] for a in range(n)]
    src = pattern(sum(to), me, 8)
    out = torch.zeros(sum(of), dtype=torch.uint8)
    shmem.all_to_all_v(out, src, of, to)
    want = [pattern(sum(table[a]), a, 8)[sum(table[a][:me]) : sum(table[a][: me + 1])] for a in range(n)]
    assert torch.equal(out, torch.cat(want))
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.all_to_all_v(out, src, of, [*to[:-1], to[-1] + 1])
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.all_gather_v(out, src, [-1] * n)


def test_per_peer_sizes(pool):
    pool.run(per_peer)


def layouts(ctx):
    n = ctx.n
    base = values((6, 4), torch.float32, ctx.me, 2)
    t = base.t()  # not contiguous: the result must come back into it
    shmem.all_reduce(t)
    want = reference([values((6, 4), torch.float32, pe, 2) for pe in range(n)], "sum").t()
    assert torch.equal(t, want) and torch.equal(base.t(), want)
    out = torch.zeros(n, 4, 6).transpose(1, 2)
    shmem.all_gather(out, values((6, 4), torch.float32, ctx.me, 3))
    assert torch.equal(out, torch.stack([values((6, 4), torch.float32, pe, 3) for pe in range(n)]))
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.all_reduce(torch.ones(1, 4).expand(3, 4))
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.all_reduce(torch.nn.Parameter(torch.ones(3)))
    with torch.no_grad():
        p = torch.nn.Parameter(torch.ones(3))
        shmem.all_reduce(p)
        assert p.tolist() == [n] * 3
    scalar = torch.tensor(float(ctx.me))
    assert shmem.all_reduce(scalar, "max") is scalar and scalar == n - 1
    z, z2 = here(torch.tensor([1 + 2j, ctx.me + 0j], device="cpu")), blank((2,), torch.complex64)
    shmem.all_reduce(z.conj(), out=z2)
    assert torch.equal(z2.cpu(), torch.tensor([n * (1 - 2j), sum(range(n)) + 0j], device="cpu"))


def test_any_layout(pool):
    pool.run(layouts)


def premul(ctx):
    t = values((50,), torch.float32, ctx.me, 1)
    shmem.all_reduce(t, "premul", scale=0.5)
    want = functools.reduce(torch.add, [values((50,), torch.float32, pe, 1) * 0.5 for pe in range(ctx.n)])
    assert torch.equal(t, want)


def test_premultiplied_sum(pool):
    pool.run(premul)


def same_bits(ctx):
    t = here(torch.randn(100_003, generator=torch.Generator("cpu").manual_seed(ctx.me), device="cpu"))
    first = shmem.all_reduce(t.clone())
    everyone = torch.zeros(ctx.n, 100_003)
    shmem.all_gather(everyone, first)
    assert all(torch.equal(everyone[pe], first) for pe in range(ctx.n))
    for _ in range(3):
        assert torch.equal(shmem.all_reduce(t.clone()), first)
    s = shmem.symmetric_copy(t)
    assert torch.equal(shmem.all_reduce(s), first)  # memory of another kind, same bits


def test_same_bits_on_every_pe_and_run(pool):
    pool.run(same_bits)


def buffers(ctx):
    import array

    a = array.array("f", [ctx.me, 1.5, -2])
    shmem.all_reduce(a)
    assert list(a) == [sum(range(ctx.n)), 1.5 * ctx.n, -2 * ctx.n]
    b = shmem.buffer(16, format="q")
    b[0], b[1] = ctx.me, 5
    shmem.all_reduce(b, "max")
    assert list(b.data) == [ctx.n - 1, 5]
    out = bytearray(3 * ctx.n)
    shmem.all_gather(out, bytes([ctx.me, 7, 9]))
    assert bytes(out) == b"".join(bytes([pe, 7, 9]) for pe in range(ctx.n))


def test_buffers_without_torch(pool):
    pool.run(buffers)


def asynchronous(ctx):
    tensors = [values((1000 * k + 3,), torch.float32, ctx.me, k) for k in range(12)]
    requests = [shmem.all_reduce(t, async_op=True) for t in tensors]
    shmem.barrier()  # a synchronous one queues behind them
    for k, (t, request) in enumerate(zip(tensors, requests)):
        assert request.wait(100) is t
        assert request.done() and request.wait() is t
        assert torch.equal(t, reference([values((1000 * k + 3,), torch.float32, pe, k) for pe in range(ctx.n)], "sum"))
    base = values((8, 8), torch.float32, ctx.me, 90)
    shmem.all_reduce(base.t(), async_op=True).wait(100)
    assert torch.equal(base, reference([values((8, 8), torch.float32, pe, 90) for pe in range(ctx.n)], "sum"))
    for k in range(30):  # dropped without a wait
        shmem.all_gather(torch.empty(ctx.n * 5000, dtype=torch.uint8), pattern(5000, ctx.me, k), async_op=True)
    shmem.barrier()


def test_asynchronous_in_order_and_droppable(pool):
    pool.run(asynchronous)


@host_memory
def overlaps(ctx):
    t = torch.ones(200_000)
    request = shmem.all_reduce(t, async_op=True)
    deadline = time.monotonic() + 100
    while not bool((t[-1:] == ctx.n).all()) and time.monotonic() < deadline:
        sum(range(1000))  # Python computes; nothing of ours is called
    assert float(t[-1]) == ctx.n and float(t[0]) == ctx.n
    request.wait(100)


def test_completes_with_no_call_from_us(pair):
    pair.run(overlaps)


def order_of_many(ctx, seed):
    generator = torch.Generator("cpu").manual_seed(seed)
    for step in range(150):
        what = int(torch.randint(0, 6, (1,), generator=generator, device="cpu"))
        count = int(torch.randint(0, 3000, (1,), generator=generator, device="cpu"))
        root = int(torch.randint(0, ctx.n, (1,), generator=generator, device="cpu"))
        if what == 0:
            shmem.barrier()
        elif what == 1:
            t = values((count,), torch.int32, ctx.me, step)
            shmem.all_reduce(t, "max")
            assert torch.equal(t, reference([values((count,), torch.int32, pe, step) for pe in range(ctx.n)], "max"))
        elif what == 2:
            t = pattern(count, ctx.me, step)
            shmem.broadcast(t, root)
            assert torch.equal(t, pattern(count, root, step))
        elif what == 3:
            out = torch.zeros(ctx.n * count, dtype=torch.uint8)
            shmem.all_gather(out, pattern(count, ctx.me, step))
            assert torch.equal(out, torch.cat([pattern(count, pe, step) for pe in range(ctx.n)]))
        elif what == 4:
            shmem.sync()
        else:
            out = torch.zeros(ctx.n * count, dtype=torch.uint8)
            shmem.all_to_all(out, pattern(ctx.n * count, ctx.me, step))
            assert torch.equal(out, torch.cat([pattern(ctx.n * count, pe, step)[ctx.me * count : (ctx.me + 1) * count] for pe in range(ctx.n)]))


def test_random_order(pool):
    pool.run(order_of_many, 4242, timeout=300)


def mismatched(ctx, what):
    team = shmem.Team.create(range(ctx.n))
    other = shmem.Team.create(range(ctx.n), key=1)
    odd = ctx.me == ctx.n - 1
    calls = {
        "size": lambda: shmem.all_reduce(torch.zeros(101 if odd else 100), team=team, timeout=100),
        "dtype": lambda: shmem.all_reduce(torch.zeros(100, dtype=torch.int32 if odd else torch.float32), team=team, timeout=100),
        "operator": lambda: shmem.all_reduce(torch.zeros(100), "max" if odd else "sum", team=team, timeout=100),
        "root": lambda: shmem.broadcast(torch.zeros(100), 1 if odd else 0, team=team, timeout=100),
        "operation": lambda: shmem.barrier(team=team, timeout=100) if odd else shmem.sync(team=team, timeout=100),
        "big size": lambda: shmem.all_reduce(torch.zeros(300_001 if odd else 300_000), team=team, timeout=100),
    }
    before = time.monotonic()
    with pytest.raises(shmem.MismatchError) as caught:
        calls[what]()
    assert time.monotonic() - before < 50
    with pytest.raises(shmem.ObjectError):
        shmem.barrier(team=team, timeout=100)
    t = torch.ones(5)
    shmem.all_reduce(t, team=other, timeout=100)  # other teams still work
    assert t.tolist() == [ctx.n] * 5
    shmem.barrier(timeout=100)
    return str(caught.value)


@pytest.mark.parametrize("what", ["size", "dtype", "operator", "root", "operation", "big size"])
def test_disagreement_is_an_error_on_every_pe(trio, what):
    texts = [text.lower() for text in trio.run(mismatched, what)]
    both = {"size": ("100", "101"), "big size": ("300000", "300001"), "operator": ("sum", "max"), "operation": ("barrier", "sync")}.get(what, ())
    assert any(all(word in text for word in both) for text in texts), texts
    assert all("disagree" in text and "pe " in text for text in texts), texts


def late(ctx):
    team = shmem.Team.create(range(ctx.n))
    if ctx.me == 0:
        before = time.monotonic()
        with pytest.raises(shmem.TimeoutError) as caught:
            shmem.barrier(team=team, timeout=0.5)
        took = time.monotonic() - before
        assert 0.45 <= took <= 20, took
        text = str(caught.value)
        assert "barrier" in text and "1" in text
    shmem.sync(timeout=100)
    with pytest.raises(shmem.ObjectError):  # PE 0 gave up after arriving: the team is dead everywhere
        for _ in range(2):  # the others may still complete the one that it had arrived at
            shmem.barrier(team=team, timeout=100)
    shmem.barrier(timeout=100)


def test_timeout_poisons_the_team_alone(trio):
    trio.run(late)


def interrupted(ctx):
    team = shmem.Team.create(range(ctx.n))
    if ctx.me == 0:
        before = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            control_c_once_begun(0.3)
            shmem.barrier(team=team)
        assert time.monotonic() - before < 20
    shmem.sync(timeout=100)
    with pytest.raises(shmem.ObjectError):
        for _ in range(2):
            shmem.barrier(team=team, timeout=100)
    shmem.barrier(timeout=100)


def test_control_c_leaves_a_collective(pair):
    pair.run(interrupted)
