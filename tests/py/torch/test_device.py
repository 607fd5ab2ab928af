"""npu tensors go through the device: which way operations take, that members with different tensors take the same, and disagreements.

Only with SHMEM_TEST_DEVICE=npu. Values differ per element and rank; every target has canaries around it.
"""

from __future__ import annotations

import gc
import os
import time

import groups
import pytest
import torch
import torch.distributed as dist
from test_training import ddp, ddp_many_buckets, fsdp1, fsdp2

import shmem
from data import DEVICE
from pool import Pool, Worker

pytestmark = pytest.mark.skipif(DEVICE == "cpu", reason="about npu tensors: SHMEM_TEST_DEVICE=npu")
SIZES = (0, 1, 7, 255, 1000, 16385, 70001)
OP = dist.ReduceOp


def npu(value):
    return value.to(DEVICE)


@pytest.fixture(params=[int(word) for word in os.environ.get("SHMEM_TEST_SIZES", "2,3").split(",")], ids=lambda n: f"{n}pe")
def fresh(request):
    """Processes that end with the test: what members disagree about breaks the world's team on the device."""
    made = Pool(request.param, os.environ.get("SHMEM_TRANSPORT") or "shm")
    yield made
    made.close()


def numbers(n, pe, salt=0, dtype=torch.float32):
    """Whole numbers, distinct per element in a stretch, rank and salt; their sums are exact."""
    with torch.device("cpu"):
        return ((torch.arange(n) * 7 + pe * 31 + salt * 13) % 97 - 40).to(dtype)


def ones(n=64, dtype=torch.float32):
    return npu(torch.ones(n, dtype=dtype, device="cpu"))


def refused(call, group):
    """Calls, then goes on until the error of the disagreement comes; gives its words."""
    began = time.monotonic()
    with pytest.raises((shmem.MismatchError, shmem.PoisonedError)) as told:
        call()
        while time.monotonic() - began < 100:
            dist.all_reduce(npu(torch.ones(3, device="cpu")), group=group, async_op=True).wait()
            time.sleep(0.01)
    assert time.monotonic() - began < 60
    return str(told.value)


class Target:
    """A tensor on the device with canaries on both sides; strided ones have them between the elements as well."""

    def __init__(self, n, dtype=torch.float32, strided=False, symmetric=False):
        step = 2 if strided else 1
        length = n * step + 64
        self.whole = shmem.empty(length, dtype=dtype) if symmetric else torch.empty(length, dtype=dtype, device=DEVICE)
        self.whole.fill_(77)
        self.t = self.whole[32 : 32 + n * step : step]

    def holds(self, want):
        assert torch.equal(self.t.cpu(), want), (self.t.cpu()[:5], want[:5])
        around = self.whole.cpu().clone()
        step = self.t.stride(0) if self.t.numel() else 1
        around[32 : 32 + self.t.numel() * step : step] = 77
        assert (around == 77).all()


def counts():
    return dict(dist.group.WORLD._channel.paths)


def every(ctx, n, salt, kind=lambda n, **more: Target(n, **more)):
    """Each operation once with n elements a rank, compared with the same on one process; gives how many there were."""
    ranks, root = range(ctx.n), salt % ctx.n
    mine = numbers(n, ctx.me, salt)
    total = sum(numbers(n, pe, salt) for pe in ranks)
    t = kind(n)
    for op, want in ((OP.SUM, total), (OP.MAX, torch.stack([numbers(n, pe, salt) for pe in ranks]).amax(0) if n else total), (OP.AVG, total / ctx.n)):
        t.t.copy_(mine)
        dist.all_reduce(t.t, op)
        if op == OP.AVG:
            torch.testing.assert_close(t.t.cpu(), want)
        else:
            t.holds(want)
    t.t.copy_(mine)
    dist.reduce(t.t, root)
    t.holds(total if ctx.me == root else mine)
    t.t.copy_(mine)
    dist.broadcast(t.t, root)
    t.holds(numbers(n, root, salt))
    t.t.copy_(mine)
    parts = [kind(n) for _ in ranks]
    dist.all_gather([part.t for part in parts], t.t)
    for pe, part in enumerate(parts):
        part.holds(numbers(n, pe, salt))
    out = kind(n * ctx.n)
    dist.all_gather_into_tensor(out.t, npu(mine))
    out.holds(torch.cat([numbers(n, pe, salt) for pe in ranks]))
    sent = torch.cat([numbers(n, ctx.me, salt + 10 + to) for to in ranks])
    keep = sum(numbers(n, pe, salt + 10 + ctx.me) for pe in ranks)
    dist.reduce_scatter_tensor(t.t, npu(sent))
    t.holds(keep)
    dist.reduce_scatter(t.t, [npu(part.clone()) for part in sent.chunk(ctx.n)] if n else [npu(mine) for _ in ranks])
    t.holds(keep)
    dist.all_to_all_single(out.t, npu(sent))
    out.holds(torch.cat([numbers(n, pe, salt + 10 + ctx.me) for pe in ranks]))
    done = 3 + 7
    pg = dist.group.WORLD  # torch_npu replaces dist.gather and dist.scatter by others of its own
    options = dist.GatherOptions()
    options.rootRank = root
    pg.gather([[part.t for part in parts]] if ctx.me == root else [], [npu(mine)], options).wait()
    if ctx.me == root:
        for pe, part in enumerate(parts):
            part.holds(numbers(n, pe, salt))
    options = dist.ScatterOptions()
    options.rootRank = root
    t.t.zero_()
    pg.scatter([t.t], [[npu(numbers(n, pe, salt + 5)) for pe in ranks]] if ctx.me == root else [], options).wait()
    t.holds(numbers(n, ctx.me, salt + 5))
    return done + 2


def by_kernels(ctx):
    groups.join(ctx)
    assert dist.group.WORLD._channel.scratch is not None, dist.group.WORLD._channel.without_scratch
    asked, before = 0, counts()
    for salt, n in enumerate(SIZES):
        asked += every(ctx, n, salt)
    after = counts()
    assert after.get("staged", 0) == before.get("staged", 0) and after["kernels"] == before.get("kernels", 0) + asked, (before, after, asked)
    groups.leave()


def test_every_operation_by_kernels(pool):
    pool.run(by_kernels, timeout=300)


def odd_ones(ctx):
    """Each rank gives another kind of tensor: symmetric, plain, strided. All take the same way, with one result."""
    groups.join(ctx)
    before = counts().get("staged", 0)

    def kind(turn):
        which = (ctx.me + turn) % 3
        own = shmem.empty(70001 * ctx.n + 64)  # every rank allocates; a third of them uses it

        def make(n, **more):
            if which == 0:
                t = Target(0)
                t.whole = own[: n + 64].fill_(77)
                t.t = t.whole[32 : 32 + n]
                return t
            return Target(n, strided=which == 2)

        return make

    for turn in range(3):
        make, used = kind(turn), []

        def once(n, make=make, used=used, **more):  # one symmetric tensor a time: the second of a call is plain
            used.append(n)
            return make(n) if len(used) == 1 else Target(n)

        for n in (1, 1000, 40001):
            used.clear()
            every(ctx, n, turn, once)
    assert counts().get("staged", 0) == before
    groups.leave()


def test_members_with_different_tensors(pool):
    pool.run(odd_ones, timeout=300)


def in_pieces(ctx):
    """A scratch of 272 KiB: large tensors go through it piece by piece, sizes that do not divide, several in flight."""
    groups.join(ctx)
    scratch = dist.group.WORLD._channel.scratch
    assert scratch.nbytes == 272 << 10, scratch.nbytes
    for salt, n in enumerate((32768, 32769, 100003, 250007)):
        every(ctx, n, salt)
    ranks = range(ctx.n)
    tensors = [npu(numbers(60000 + 3000 * i, ctx.me, i)) for i in range(6)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    big = [npu(numbers(90001, ctx.me, i + 50)) for i in range(3)]
    options = dist.AllreduceCoalescedOptions()
    works.append(dist.group.WORLD.allreduce_coalesced(big, options))
    for work in works:
        work.wait()
    for i, t in enumerate(tensors):
        assert torch.equal(t.cpu(), sum(numbers(60000 + 3000 * i, pe, i) for pe in ranks)), i
    for i, t in enumerate(big):
        assert torch.equal(t.cpu(), sum(numbers(90001, pe, i + 50) for pe in ranks)), i
    assert "staged" not in counts(), counts()
    groups.leave()


@pytest.mark.parametrize("n", [2, 3])
def test_large_tensors_go_in_pieces(n):
    small = Pool(n, "shm", {"SHMEM_DEVICE_SCRATCH": "272k"})
    try:
        small.run(in_pieces, world=False, timeout=300)
    finally:
        small.close()


def coalesced(ctx):
    """Several tensors in one kernel, uneven lists, in place, half precision, complex numbers."""
    groups.join(ctx)
    pg, ranks, before = dist.group.WORLD, range(ctx.n), counts()
    sizes = (5, 1000, 1, 33333)
    inputs = [npu(numbers(n, ctx.me, n)) for n in sizes]
    outs = [Target(n * ctx.n) for n in sizes]
    pg.allgather_into_tensor_coalesced([out.t for out in outs], inputs).wait()
    for n, out in zip(sizes, outs):
        out.holds(torch.cat([numbers(n, pe, n) for pe in ranks]))
    sent = [npu(torch.cat([numbers(n, ctx.me, n + to) for to in ranks])) for n in sizes]
    outs = [Target(n) for n in sizes]
    pg.reduce_scatter_tensor_coalesced([out.t for out in outs], sent).wait()
    for n, out in zip(sizes, outs):
        out.holds(sum(numbers(n, pe, n + ctx.me) for pe in ranks))
    lists = [[Target(n) for n in sizes] for _ in ranks]
    pg.allgather_coalesced([[part.t for part in mine] for mine in lists], inputs).wait()
    for pe, mine in enumerate(lists):
        for n, part in zip(sizes, mine):
            part.holds(numbers(n, pe, n))
    uneven = [Target(100 + 37 * pe) for pe in ranks]
    dist.all_gather([part.t for part in uneven], npu(numbers(100 + 37 * ctx.me, ctx.me)))
    for pe, part in enumerate(uneven):
        part.holds(numbers(100 + 37 * pe, pe))
    t = Target(100 + 37 * ctx.me)
    dist.reduce_scatter(t.t, [npu(numbers(100 + 37 * to, ctx.me, to)) for to in ranks])
    t.holds(sum(numbers(100 + 37 * ctx.me, pe, ctx.me) for pe in ranks))
    whole = Target(500 * ctx.n)
    whole.t[500 * ctx.me : 500 * ctx.me + 500].copy_(numbers(500, ctx.me))
    dist.all_gather_into_tensor(whole.t, whole.t[500 * ctx.me : 500 * ctx.me + 500])  # in place
    whole.holds(torch.cat([numbers(500, pe) for pe in ranks]))
    dist.reduce_scatter_tensor(whole.t[100:600], whole.t)  # over its own input
    assert torch.equal(whole.t[100:600].cpu(), ctx.n * numbers(500, ctx.me))
    for dtype in (torch.float16, torch.bfloat16):
        with torch.device("cpu"):
            parts = [torch.randn(999, generator=torch.Generator("cpu").manual_seed(pe)).to(dtype) for pe in ranks]
            want = (sum(part.float() for part in parts) / ctx.n).to(dtype)
        got = npu(parts[ctx.me])
        dist.all_reduce(got, OP.AVG)
        assert torch.equal(got.cpu(), want), dtype  # rounded once
    with torch.device("cpu"):
        z = [torch.complex(numbers(77, pe), numbers(77, pe, 3)) for pe in ranks]
    got = npu(z[ctx.me])
    dist.all_reduce(got)
    assert torch.equal(got.cpu(), sum(z))
    gathered = [torch.empty(77, dtype=torch.complex64, device=DEVICE) for _ in ranks]
    pg.allgather([gathered], [npu(z[ctx.me]).conj()]).wait()  # torch's own function refuses it
    assert all(torch.equal(a.cpu(), b.conj().resolve_conj()) for a, b in zip(gathered, z))
    after = counts()
    assert after.get("staged", 0) == before.get("staged", 0), after
    work = dist.all_reduce(npu(torch.ones(5, dtype=torch.int64, device="cpu")), async_op=True)  # named: kernels do not add these
    work.wait()
    assert work.path == "staged" and dist.all_reduce(npu(numbers(3, 0)), async_op=True).path == "kernels"
    groups.leave()


def test_several_at_once(pool):
    pool.run(coalesced, timeout=300)


def trained(ctx, name):
    """Training uses the device alone: what is staged is what kernels have no dtype or operator for."""
    groups.join(ctx)
    {f.__name__: f for f in (ddp, ddp_many_buckets, fsdp1, fsdp2)}[name](ctx)
    gc.collect()
    made = shmem.info()["python"]["torch_device_operations"]
    groups.leave()
    return made


@pytest.mark.parametrize("name", ["ddp", "ddp_many_buckets", "fsdp1", "fsdp2"])
def test_training_stages_nothing(pool, name):
    for made in pool.run(trained, name, world=False, timeout=300):
        assert made.get("staged", 0) <= STAGED.get(name, 0), made
        assert made["kernels"] >= 3, made


# DDP compares its parameters' shapes when it begins: one broadcast and one gather of int64, which move. FSDP1 sums flags.
STAGED = {"fsdp1": 2}


def exchanged(ctx):
    """Uneven all-to-all, also of lists, with empty parts, larger than the scratch, and what one sends differing from what the other takes."""
    groups.join(ctx)
    n, me, before = ctx.n, ctx.me, counts()
    for turn, unit in enumerate((1, 0, 37, 1000, 40000)):

        def rows(source, to, unit=unit, turn=turn):
            return unit * ((source * 3 + to * 2 + turn) % 4)

        sent = [numbers(rows(me, to) * 2, me, 10 * turn + to) for to in range(n)]
        out = Target(sum(rows(pe, me) for pe in range(n)) * 2)
        takes = [rows(pe, me) for pe in range(n)]
        want = torch.cat([numbers(rows(pe, me) * 2, pe, 10 * turn + me) for pe in range(n)])
        whole = npu(torch.cat(sent).view(-1, 2))
        work = dist.all_to_all_single(out.t.view(-1, 2), whole, takes, [rows(me, to) for to in range(n)], async_op=turn % 2 == 1)
        if work is not None:
            work.wait()
        out.holds(want)
        parts = [Target(rows(pe, me) * 2) for pe in range(n)]
        dist.all_to_all([part.t for part in parts], [npu(part) for part in sent])
        for pe, part in enumerate(parts):
            part.holds(numbers(rows(pe, me) * 2, pe, 10 * turn + me))
    assert counts().get("staged", 0) == before.get("staged", 0)
    assert counts()["kernels"] == before.get("kernels", 0) + 10
    group = dist.new_group(list(range(n)))
    takes = [4] * n
    if me == 0:
        takes[n - 1] = 5  # rank n-1 sends 4
    said = refused(lambda: dist.all_to_all_single(ones(sum(takes)), ones(4 * n), takes, [4] * n, group=group), group)
    assert f"PE {n - 1} sends 16 bytes to PE 0, which takes 20" in said, said
    groups.leave()


@pytest.mark.core
def test_uneven_all_to_all(fresh):
    fresh.run(exchanged, timeout=300)


def late(ctx):
    """The host waits for nobody: a rank that is late holds up the others' streams and not their threads."""
    groups.join(ctx)
    t, host = npu(numbers(1000, ctx.me)), torch.zeros(1, device="cpu")
    dist.all_reduce(t.clone())
    dist.all_reduce(host)  # together
    if ctx.me == 0:
        groups.told(ctx, "went on", range(1, ctx.n))
    work = dist.all_reduce(t, async_op=True)
    other = t.new_ones(9)
    dist.all_reduce(other)
    work.wait()
    doubled = t * 2
    groups.tell(ctx, "went on")
    assert torch.equal(doubled.cpu(), 2 * sum(numbers(1000, pe) for pe in range(ctx.n))) and other.cpu().tolist() == [ctx.n] * 9
    groups.leave()


def test_a_late_rank_blocks_no_host(pool):
    pool.run(late)


def crossing(ctx):
    """Two groups of the same ranks, each with operations on its own stream, queued in another order on each rank."""
    groups.join(ctx)
    made = [dist.new_group(list(range(ctx.n))) for _ in range(2)]
    places = {made[k].__dict__["_channel"].scratch._block.address for k in range(2)} if hasattr(made[0], "_channel") else set()
    assert len(places) != 1
    order = made if ctx.me % 2 == 0 else made[::-1]
    for turn in range(6):
        tensors, works = {}, []
        for group in order:
            k = made.index(group)
            tensors[k] = npu(numbers(30001, ctx.me, turn * 2 + k))
            works.append(dist.all_reduce(tensors[k], group=group, async_op=True))
        for work in works:
            work.wait()
        for k, t in tensors.items():
            assert torch.equal(t.cpu(), sum(numbers(30001, pe, turn * 2 + k) for pe in range(ctx.n))), (turn, k)
    if ctx.n > 2:
        pair = dist.new_group([0, ctx.n - 1])
        if ctx.me in (0, ctx.n - 1):
            t = npu(numbers(5000, ctx.me))
            dist.all_reduce(t, group=pair)
            assert torch.equal(t.cpu(), numbers(5000, 0) + numbers(5000, ctx.n - 1))
    groups.leave()


def test_groups_do_not_share_a_scratch(pool):
    pool.run(crossing)


def streams(ctx):
    """One group from several streams of the caller: operations keep their order and their slots."""
    groups.join(ctx)
    side = [torch.npu.Stream() for _ in range(3)]
    results = []
    for turn in range(12):
        with torch.npu.stream(side[turn % 3]):
            t = npu(numbers(20000, ctx.me, turn))
            work = dist.all_reduce(t, async_op=turn % 2 == 0)
            if work is not None:
                work.wait()
            results.append(t + 1)
    torch.npu.synchronize()
    for turn, t in enumerate(results):
        assert torch.equal(t.cpu(), sum(numbers(20000, pe, turn) for pe in range(ctx.n)) + 1), turn
    groups.leave()


def test_one_group_on_several_streams(pool):
    pool.run(streams)


def without(ctx, how):
    """No scratch, on one rank or on all: every member stages, and says why."""
    groups.join(ctx)
    group = dist.group.WORLD
    if how == "full here":
        held = group.allocate_tensor(60 << 20, dtype=torch.uint8, device=DEVICE) if ctx.me == 0 else None
        group = dist.new_group(list(range(ctx.n)))
    told = shmem.info()["python"]["torch_device_groups"][-1]
    t = npu(numbers(1000, ctx.me))
    work = dist.all_reduce(t, group=group, async_op=True)
    work.wait()
    assert torch.equal(t.cpu(), sum(numbers(1000, pe) for pe in range(ctx.n)))
    assert (work.path, told["scratch"]) == ("staged", 0), told
    assert ("another member" in told["reason"]) or ("SHMEM_DEVICE_S" in told["reason"]), told
    held = None  # noqa: F841
    groups.leave()


@pytest.mark.parametrize("how", ["zero here", "full here"])
def test_without_scratch_all_stage(how):
    pool = Pool(2, "shm")
    pool.workers = [Worker(me, 2, "shm", pool.folder, {**pool._env, **({"SHMEM_DEVICE_SCRATCH": "0"} if how == "zero here" and me else {})}) for me in range(2)]
    try:
        pool.run(without, how, world=False, timeout=300)
    finally:
        pool.close()


def nothing_is_left(ctx):
    """Groups that come and go give their memory back."""
    groups.join(ctx)
    used = []
    for _ in range(6):
        group = dist.new_group(list(range(ctx.n)))
        dist.all_reduce(ones(), group=group)
        dist.destroy_process_group(group)
        gc.collect()
        shmem.collect()
        used.append(shmem.info()["device"]["heap"]["used"])
    assert used[-1] <= used[1], used
    groups.leave()


def test_scratch_is_given_back(pool):
    pool.run(nothing_is_left)
