"""Atomics: exact under contention from every PE, in 4 and 8 bytes."""

from __future__ import annotations

import pytest
import torch

import shmem
from data import DEVICE

ON_HOST = True  # words in host memory, in a world with a device as well; words on the device: device_words


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


def device_words(ctx):
    """What every chip has works; what a chip lacks raises, says where to keep the word, and leaves it alone."""
    calls = [  # name, arguments, the result, and the word after it
        ("atomic_set", (12,), None, 12), ("atomic_fetch", (), 12, 12), ("atomic_add", (3,), None, 15), ("atomic_inc", (), None, 16),
        ("atomic_swap", (5,), 16, 5), ("atomic_compare_swap", (4, 9), 5, 5), ("atomic_compare_swap", (5, 9), 5, 9), ("atomic_fetch_add", (4,), 9, 13),
        ("atomic_fetch_inc", (), 13, 14), ("atomic_and", (0b11010,), None, 0b01010), ("atomic_fetch_and", (0b01111,), 0b01010, 0b01010),
        ("atomic_or", (0b101,), None, 0b01111), ("atomic_fetch_or", (0b10000,), 0b01111, 0b11111), ("atomic_xor", (1,), None, 0b11110),
        ("atomic_fetch_xor", (0b11,), 0b11110, 0b11101),
    ]  # fmt: skip
    refused = set()
    for owner in range(ctx.n):
        t = shmem.zeros(4, dtype=torch.int32, device=DEVICE)
        if ctx.me == 0:
            word = 0
            for name, arguments, result, after in calls:
                shmem.atomic_set(t, word, owner, index=2)
                try:
                    assert getattr(shmem, name)(t, *arguments, owner, index=2) == result, (name, arguments)
                    word = after
                except shmem.UnsupportedError as problem:
                    assert "symmetric host memory" in str(problem)
                    refused.add(name)
                assert shmem.atomic_fetch(t, owner, index=2) == word, (name, arguments)
                word = after
        shmem.barrier()
        got = t.tolist()
        assert got[:2] + got[3:] == [0, 0, 0] and (got[2] != 0) == (ctx.me == owner), got
    assert not refused & {"atomic_set", "atomic_fetch", "atomic_add", "atomic_inc"}, refused
    return sorted(refused)


def test_every_operation_gives_the_old_value_and_touches_one_word(pair):
    pair.run(semantics)
    if DEVICE != "cpu":
        pair.run(device_words)


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
