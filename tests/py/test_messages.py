"""Tagged messages: order, any source and tag, sizes, truncation, cancellation."""

from __future__ import annotations

import pytest
import torch

import shmem
from data import DEVICE, pattern

ON_HOST = True  # messages carry host memory, in a world with a device as well


def ring(ctx):
    right, left = (ctx.me + 1) % ctx.n, (ctx.me - 1) % ctx.n
    for i, size in enumerate((0, 1, 7, 4096, 4097, 100_001, 3 << 20)):
        out = torch.zeros(size, dtype=torch.uint8)
        request = shmem.irecv(out, left, tag=i)
        shmem.send(pattern(size, ctx.me, i), right, tag=i)
        got = request.wait(30)
        assert got == (left, i, size) and torch.equal(out, pattern(size, left, i))


def test_every_size_around_a_ring(pool):
    pool.run(ring)


def reversed_tags(ctx):
    if ctx.n == 1:
        return
    peer = ctx.me ^ 1
    if peer >= ctx.n:
        return
    kept = [torch.tensor([ctx.me * 1000 + tag]) for tag in range(100)]
    sends = [shmem.isend(kept[tag], peer, tag=tag) for tag in range(100)]
    outs = [torch.zeros(1, dtype=torch.int64) for _ in range(100)]
    for tag in reversed(range(100)):
        assert shmem.recv(outs[tag], peer, tag=tag, timeout=120) == (peer, tag, 8)
    for s in sends:
        s.wait(20)
    assert [int(o) for o in outs] == [peer * 1000 + tag for tag in range(100)]


def test_hundred_outstanding_received_in_reverse(trio):
    trio.run(reversed_tags)


def anything(ctx):
    if ctx.me == 0:
        seen = []
        for _ in range(5 * (ctx.n - 1)):
            out = torch.zeros(4, dtype=torch.int64)
            got = shmem.recv(out, timeout=120)
            assert out[0] == got.source and out[1] == got.tag and got.nbytes == 32
            seen.append((got.source, got.tag))
        for source in range(1, ctx.n):
            assert [tag for s, tag in seen if s == source] == [-2, 0, 5, 2**40, 1]  # in order per source
    else:
        for tag in (-2, 0, 5, 2**40, 1):
            shmem.send(torch.tensor([ctx.me, tag, 0, 0]), 0, tag=tag)
    shmem.barrier()


def test_any_source_and_any_tag(trio):
    trio.run(anything)


def to_self(ctx):
    out = torch.zeros(1000, dtype=torch.uint8)
    request = shmem.irecv(out, ctx.me, tag=3)
    shmem.send(pattern(1000, ctx.me), ctx.me, tag=3)
    assert request.wait(10).nbytes == 1000 and torch.equal(out, pattern(1000, ctx.me))


def test_self(pool):
    pool.run(to_self)


def odd(ctx):
    peer = 1 - ctx.me
    shmem.send(torch.arange(10), peer, tag=1)
    with pytest.raises(shmem.TruncatedError):
        shmem.recv(torch.zeros(3, dtype=torch.int64), peer, tag=1, timeout=120)
    shmem.send(torch.arange(10), peer, tag=2)
    big = torch.zeros(20, dtype=torch.int64)
    assert shmem.recv(big, peer, tag=2, timeout=120).nbytes == 80
    assert big.tolist() == [*range(10), *[0] * 10]
    with pytest.raises(shmem.TimeoutError):
        shmem.recv(big, peer, tag=99, timeout=0.2)
    request = shmem.irecv(big, peer, tag=98)
    assert not request.done()
    request.cancel()
    with pytest.raises(shmem.CanceledError):
        request.wait()
    shmem.barrier()  # nobody sends before both have withdrawn
    gaps = torch.zeros(10, 2, dtype=torch.int64)[:, 0]
    shmem.send(torch.arange(10), peer, tag=98)
    shmem.recv(gaps, peer, tag=98, timeout=120)
    assert gaps.tolist() == list(range(10))
    for bad in (2, -1):
        with pytest.raises(shmem.InvalidPEError):
            shmem.send(big, bad)
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.send(big, peer, tag=2**63)
    if DEVICE != "cpu":
        there = torch.ones(5, device=DEVICE)
        for call in (lambda: shmem.send(there, peer), lambda: shmem.recv(there, peer)):
            with pytest.raises(shmem.UnsupportedError, match="device memory; copy it to host memory"):
                call()
        assert there.tolist() == [1] * 5
    shmem.barrier()


def test_truncation_timeout_cancel_and_bad_arguments(pair):
    pair.run(odd)


def in_team(ctx):
    team = shmem.Team.create(list(range(ctx.n))[::-1])
    world = torch.tensor([5 + ctx.me])
    inside = torch.tensor([50 + ctx.me])
    right, left = (team.rank + 1) % team.size, (team.rank - 1) % team.size
    a, b = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    first = shmem.irecv(a, left, tag=1, team=team)
    second = shmem.irecv(b, (ctx.me + 1) % ctx.n, tag=1)
    shmem.send(world, (ctx.me - 1) % ctx.n, tag=1)  # the same tag in two teams
    shmem.send(inside, right, tag=1, team=team)
    assert first.wait(20).source == left and int(a) == 50 + team.translate(left)
    assert second.wait(20).source == (ctx.me + 1) % ctx.n and int(b) == 5 + (ctx.me + 1) % ctx.n


def test_teams_do_not_mix(trio):
    trio.run(in_team)
