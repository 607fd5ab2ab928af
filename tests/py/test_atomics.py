"""Atomics: exact under contention from every PE, in 4 and 8 bytes."""

from __future__ import annotations

import pytest
import torch

import shmem


def semantics(ctx):
    for dtype in (torch.int32, torch.int64, torch.uint32, torch.uint64):
        for owner in range(ctx.n):
            t = shmem.zeros(4, dtype=dtype)
            if ctx.me == 0:
                shmem.atomic_set(t, 12, owner, index=2)
                assert shmem.atomic_fetch(t, owner, index=2) == 12
                assert shmem.atomic_swap(t, 5, owner, index=2) == 12
                assert shmem.atomic_compare_swap(t, 4, 9, owner, index=2) == 5
                assert shmem.atomic_compare_swap(t, 5, 9, owner, index=2) == 5
                shmem.atomic_add(t, 3, owner, index=2)
                assert shmem.atomic_fetch_add(t, 4, owner, index=2) == 12
                shmem.atomic_inc(t, owner, index=2)
                assert shmem.atomic_fetch_inc(t, owner, index=2) == 17
                shmem.atomic_and(t, 0b11010, owner, index=2)
                assert shmem.atomic_fetch_and(t, 0b01111, owner, index=2) == 0b10010
                shmem.atomic_or(t, 0b101, owner, index=2)
                assert shmem.atomic_fetch_or(t, 0b1000, owner, index=2) == 0b00111
                shmem.atomic_xor(t, 0b1, owner, index=2)
                assert shmem.atomic_fetch_xor(t, 0b11, owner, index=2) == 0b01110
            shmem.barrier()
            assert t.tolist() == [0, 0, 0b01101 if ctx.me == owner else 0, 0]
            shmem.barrier()


def test_every_operation_gives_the_old_value_and_touches_one_word(pair):
    pair.run(semantics)


def wraps(ctx):
    i = shmem.zeros(2, dtype=torch.int32)
    shmem.atomic_set(i, 2**31 - 1, ctx.me)
    assert shmem.atomic_fetch_add(i, 1, ctx.me) == 2**31 - 1
    assert shmem.atomic_fetch(i, ctx.me) == -(2**31)
    assert i.tolist() == [-(2**31), 0]
    u = shmem.zeros(2, dtype=torch.int64)
    shmem.atomic_add(u, -5, ctx.me)
    assert u.tolist() == [-5, 0]
    f = shmem.zeros(1, dtype=torch.float64)
    assert shmem.atomic_swap(f, 2.5, ctx.me) == 0.0
    assert shmem.atomic_compare_swap(f, 2.5, -1.0, ctx.me) == 2.5
    assert f.item() == -1.0


def test_wrapping_and_floats(pair):
    pair.run(wraps)


def contended(ctx, rounds):
    c = shmem.zeros(3, dtype=torch.int64)
    seen = []
    for i in range(rounds):
        seen.append(shmem.atomic_fetch_add(c, 1, 0))
        shmem.atomic_add(c, ctx.me + 1, i % ctx.n, index=1)
        shmem.atomic_xor(c, 1 << ctx.me, 0, index=2)
    shmem.barrier()
    total = int(shmem.g(c, 0))
    assert total == rounds * ctx.n
    spread = sum(int(shmem.g(c, pe, index=1)) for pe in range(ctx.n))
    assert spread == rounds * sum(range(1, ctx.n + 1))
    assert shmem.g(c, 0, index=2) == (0 if rounds % 2 == 0 else (1 << ctx.n) - 1)
    shmem.barrier()
    return seen


def test_tickets_are_given_once(pool):
    rounds = 301
    tickets = sorted(t for seen in pool.run(contended, rounds) for t in seen)
    assert tickets == list(range(rounds * pool.n))


def refused(ctx):
    t = shmem.zeros(64, dtype=torch.uint8)
    for dtype in (torch.uint8, torch.int16, torch.float16):
        with pytest.raises(shmem.InvalidArgumentError):
            shmem.atomic_add(shmem.zeros(2, dtype=dtype), 1, 0)
    with pytest.raises(shmem.InvalidArgumentError, match="float32"):
        shmem.atomic_add(shmem.zeros(2), 1, 0)
    lib, world = shmem._lib.library(), shmem.current().handle
    for width, offset in ((4, 1), (4, 2), (8, 4), (8, 7)):
        assert lib.atomic(world, shmem._abi.ATOMIC["A_ADD"], width, t.data_ptr() + offset, 1, 0, 0, None) == shmem._abi.STATUS["EALIGN"]
    assert lib.atomic(world, 99, 8, t.data_ptr(), 1, 0, 0, None) == shmem._abi.STATUS["EINVAL"]
    assert lib.atomic(world, 5, 3, t.data_ptr(), 1, 0, 0, None) == shmem._abi.STATUS["EINVAL"]
    shmem.barrier()
    assert bool((t == 0).all())
    with pytest.raises(shmem.NotSymmetricError):
        shmem.atomic_add(torch.zeros(2, dtype=torch.int64), 1, 0)
    with pytest.raises(shmem.InvalidPEError):
        shmem.atomic_add(shmem.zeros(2, dtype=torch.int64), 1, ctx.n)


def test_refused(pair):
    pair.run(refused)
