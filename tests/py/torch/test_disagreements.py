"""npu tensors of members that disagree: each is told within a moment, by name, and a new group works at once.

Only with SHMEM_TEST_DEVICE=npu.
"""

from __future__ import annotations

import time

import groups
import pytest
import torch
import torch.distributed as dist
from test_device import OP, fresh, npu, numbers, ones, refused

import shmem
from data import DEVICE

__all__ = ["fresh"]
pytestmark = pytest.mark.skipif(DEVICE == "cpu", reason="about npu tensors: SHMEM_TEST_DEVICE=npu")


def promised(ctx):
    """In place, where the group promises it; a member that breaks the promise is told, and so are the others."""
    groups.leave()
    groups.join(ctx, pg_options={"in_place": True})
    t = shmem.empty(3000)
    t.copy_(numbers(3000, ctx.me))
    dist.all_reduce(t)
    assert torch.equal(t.cpu(), sum(numbers(3000, pe) for pe in range(ctx.n)))
    group = dist.new_group(list(range(ctx.n)), pg_options={"in_place": True})
    wrong = t if ctx.me else npu(numbers(3000, 0))
    said = refused(lambda: dist.all_reduce(wrong, group=group), group)
    assert "ways" in said or "place" in said, said
    groups.leave()


def test_a_broken_promise_is_named(fresh):
    fresh.run(promised)


def uneven(group, n):
    return dist.all_to_all_single(ones(4 * n), ones(4 * n), [4] * n, [4] * n, group=group)


def hosts(group, n):
    """A collective of a cpu tensor."""
    return dist.all_reduce(torch.ones(64, device="cpu"), group=group)


# name: (what the last rank does, what the others do), each with a group and its size
DISAGREEMENTS = {
    "sizes": (lambda g, n: dist.all_reduce(ones(65), group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "sizes, in pieces": (lambda g, n: dist.all_reduce(ones(3 << 20), group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "operators": (lambda g, n: dist.all_reduce(ones(), OP.MAX, group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "operators, averaged": (lambda g, n: dist.all_reduce(ones(), OP.AVG, group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "dtypes": (lambda g, n: dist.all_reduce(ones(dtype=torch.int32), group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "dtypes, staged": (lambda g, n: dist.all_reduce(ones(dtype=torch.int64), group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "dtypes, moved": (
        lambda g, n: dist.all_gather_into_tensor(ones(64 * n, torch.int32), ones(dtype=torch.int32), group=g),
        lambda g, n: dist.all_gather_into_tensor(ones(64 * n), ones(), group=g),
    ),
    "roots": (lambda g, n: dist.broadcast(ones(), 1, group=g), lambda g, n: dist.broadcast(ones(), 0, group=g)),
    "roots, in steps": (lambda g, n: dist.reduce(ones(), 1, group=g), lambda g, n: dist.reduce(ones(), 0, group=g)),
    "operations": (lambda g, n: dist.broadcast(ones(), 0, group=g), lambda g, n: dist.all_reduce(ones(), group=g)),
    "ways, on the host": (hosts, lambda g, n: dist.all_reduce(ones(), group=g)),
    "operations, staged": (uneven, lambda g, n: dist.all_reduce(ones(), group=g)),
}


def disagree(ctx):
    """Every member gets the same error within a moment, with both sides; a new group works at once."""
    groups.join(ctx)
    for name, (wrong, right) in DISAGREEMENTS.items():
        group = dist.new_group(list(range(ctx.n)))
        t = ones(5)
        dist.all_reduce(t, group=group)
        assert t.cpu().tolist() == [ctx.n] * 5, name
        mine = wrong if ctx.me == ctx.n - 1 else right
        said = refused(lambda mine=mine, group=group: mine(group, ctx.n), group)
        assert f"differ in the {name.split(',')[0]}" in said, (name, said)
        assert f"PE {ctx.n - 1}" in said, (name, said)
    groups.leave()


@pytest.mark.core
def test_disagreements_are_named(fresh):
    fresh.run(disagree, timeout=400)


def mixed(ctx):
    """shmem's own collectives: a symmetric tensor here and a plain one there is an error that names both, and no hang."""
    t = shmem.empty(100).fill_(1.0)
    shmem.all_reduce(t)
    assert t.cpu().tolist() == [ctx.n] * 100
    team = shmem.Team.create(list(range(ctx.n)), key=7)
    began = time.monotonic()
    with pytest.raises((shmem.MismatchError, shmem.PoisonedError), match="differ in the ways|disagree"):
        shmem.all_reduce(t if ctx.me else ones(100), team=team)
        for _ in range(500):
            shmem.quiet()
            shmem.all_reduce(t, team=team)
            time.sleep(0.01)
    assert time.monotonic() - began < 60
    try:
        shmem.quiet()  # who was told at the first call has not yet been told by the stream
    except shmem.MismatchError:
        pass
    team = shmem.Team.create(list(range(ctx.n)), key=8)
    assert shmem.all_reduce(t.fill_(1.0), team=team).cpu().tolist() == [ctx.n] * 100
    assert shmem.all_reduce(ones(100), team=team).cpu().tolist() == [ctx.n] * 100


@pytest.mark.core
def test_symmetric_and_plain_tensors_in_one_call_are_named(fresh):
    fresh.run(mixed)
