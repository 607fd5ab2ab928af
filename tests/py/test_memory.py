"""Symmetric memory: zeroed, distinct, reclaimed when dropped, exhausted with an exception."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading

import pytest
import torch

import shmem
from data import DEVICE, MOVABLE


def constructors(ctx):
    assert shmem.empty(2, 3).shape == (2, 3) and shmem.empty((2, 3)).shape == (2, 3) and shmem.empty().shape == ()
    assert shmem.empty(2).dtype is torch.float32
    assert shmem.ones(3, dtype=torch.int8).tolist() == [1, 1, 1]
    assert shmem.full((2,), 7, dtype=torch.int32).tolist() == [7, 7]
    assert shmem.full(2, 1.5).tolist() == [1.5, 1.5]
    assert shmem.zeros(2, requires_grad=True).requires_grad
    like = shmem.zeros_like(torch.ones(3, 2, dtype=torch.int16))
    assert like.shape == (3, 2) and like.dtype is torch.int16 and bool((like == 0).all())
    assert shmem.symmetric_copy(torch.arange(6).view(2, 3).t()).tolist() == [[0, 3], [1, 4], [2, 5]]
    for dtype in (*MOVABLE, torch.complex32, torch.uint16, torch.uint32, torch.uint64):
        t = shmem.empty(3, 2, dtype=dtype)
        assert t.dtype is dtype and t.shape == (3, 2) and t.is_contiguous()
        assert bytes(t.untyped_storage()) == bytes(t.nbytes), dtype
    for bad in ((-1,), (2.5,), ("x",), ((1, -2),)):
        with pytest.raises(shmem.InvalidArgumentError):
            shmem.empty(*bad)
    for bad in (torch.quint8, torch.qint32, "float32", int):
        with pytest.raises(shmem.InvalidArgumentError):
            shmem.empty(3, dtype=bad)
    aligned = shmem.empty(3, align=4096)
    assert aligned.data_ptr() % 4096 == 0
    with pytest.raises(shmem.InvalidArgumentError):
        shmem.empty(3, align=48)
    assert shmem.is_symmetric(aligned) and not shmem.is_symmetric(torch.zeros(1)) and not shmem.is_symmetric(3)


def test_constructors(pool):
    pool.run(constructors)


def empties(ctx):
    t = shmem.empty(0)
    assert t.numel() == 0 and t.shape == (0,)
    u = shmem.zeros(3, 0, 2)
    assert u.shape == (3, 0, 2)
    shmem.put(u, torch.zeros(3, 0, 2), (ctx.me + 1) % ctx.n)
    shmem.all_reduce(u)
    shmem.broadcast(t)
    flag = shmem.zeros(1, dtype=torch.int64)
    shmem.put_signal(t, torch.zeros(0), flag, 3, (ctx.me + 1) % ctx.n)
    shmem.wait_until(flag, "==", 3, timeout=120)
    shmem.free(t)
    shmem.barrier()


def test_size_zero(pool):
    pool.run(empties)


def zero_again(ctx):
    gc.collect()
    shmem.collect()
    base = shmem.heap_stats()["used"]
    for _ in range(20):
        t = shmem.empty(100_000)
        assert bool((t == 0).all())
        t.fill_(ctx.me + 1.5)
        shmem.barrier()
        del t
        gc.collect()
    shmem.collect()
    assert shmem.heap_stats()["used"] == base


def test_new_memory_is_zero_also_when_used_before(pool):
    pool.run(zero_again)


def lifetimes(ctx):
    gc.collect()
    shmem.collect()
    base = shmem.heap_stats()["used"]
    t = shmem.zeros(1000)
    view = t[10:20]
    storage = view.untyped_storage()
    parameter = torch.nn.Parameter(shmem.ones(100))
    del t
    gc.collect()
    assert shmem.collect() == 0
    view += ctx.me
    assert view.tolist() == [ctx.me] * 10
    del view
    assert shmem.collect() == 0
    del storage
    assert shmem.collect() > 0
    del parameter
    assert shmem.collect() > 0
    assert shmem.heap_stats()["used"] == base


def test_views_storages_and_parameters_keep_the_block(pair):
    pair.run(lifetimes)


def peer_keeps(ctx):
    gc.collect()
    shmem.collect()
    if not ctx.mapped:
        return
    t = shmem.zeros(1000)
    t += ctx.me + 1
    shmem.barrier()
    view = shmem.peer(t, (ctx.me + 1) % ctx.n)
    shmem.barrier()
    del t
    gc.collect()
    assert shmem.collect() == 0
    other = shmem.ones(1000)
    assert bool((view == (ctx.me + 1) % ctx.n + 1).all())  # not handed out again
    shmem.barrier()
    del view, other
    gc.collect()
    assert shmem.collect() > 0


def test_a_peer_view_keeps_the_block(pair):
    pair.run(peer_keeps)


def uneven_drops(ctx):
    gc.collect()
    shmem.collect()
    ts = [shmem.zeros(1000) for _ in range(4)]
    order = [0, 1, 2, 3] if ctx.me % 2 else [3, 1, 0, 2]
    held = ts[1] if ctx.me == 0 else None
    for i in order:
        ts[i] = None
    gc.collect()
    fresh = [shmem.zeros(1000) for _ in range(4)]
    for k, t in enumerate(fresh):
        shmem.put(t, torch.full((1000,), 10.0 * ctx.me + k), (ctx.me + 1) % ctx.n)
    shmem.barrier()
    for k, t in enumerate(fresh):
        assert bool((t == 10.0 * ((ctx.me - 1) % ctx.n) + k).all())  # the same block on every PE
    if held is not None:
        assert bool((held == 0).all())
    shmem.barrier()


def test_blocks_pair_up_whatever_the_order_of_drops(pool):
    pool.run(uneven_drops)


def many_threads(ctx):
    ts = [shmem.zeros(64) for _ in range(60)]

    def drop(part):
        while part:
            part.pop()

    parts = [ts[i::3] for i in range(3)]
    ts.clear()
    crew = [threading.Thread(target=drop, args=(p,)) for p in parts]
    for c in crew:
        c.start()
    for c in crew:
        c.join()
    gc.collect()
    assert shmem.collect() > 0


def test_dropping_on_any_thread(pair):
    pair.run(many_threads)


def copies(ctx):
    t = shmem.zeros(10, 3)
    t += torch.arange(3)
    for made in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), t.clone(), t.to(torch.float64)):
        assert not shmem.is_symmetric(made) and torch.equal(made.float(), t)
    file = io.BytesIO()
    torch.save(t[2:4], file)
    assert len(file.getvalue()) < 4000
    file.seek(0)
    assert torch.equal(torch.load(file), t[2:4])
    model = torch.nn.Linear(3, 2)
    model.weight = torch.nn.Parameter(shmem.symmetric_copy(model.weight))
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again.weight, model.weight) and not shmem.is_symmetric(again.weight)
    model(t).sum().backward()
    assert model.weight.grad is not None and shmem.is_symmetric(model.weight)
    shmem.barrier()


def test_pickle_and_deepcopy_give_ordinary_tensors(pair):
    pair.run(copies)


def freed(ctx):
    gc.collect()
    shmem.collect()
    base = shmem.heap_stats()["used"]
    t = shmem.zeros(1000)
    shmem.free(t)
    assert shmem.heap_stats()["used"] == base
    for call in (lambda: shmem.put(t, torch.zeros(1000), 0), lambda: shmem.free(t), lambda: shmem.peer(t, 0)):
        with pytest.raises((shmem.NotSymmetricError, shmem.InvalidArgumentError)):
            call()
    t = shmem.zeros(1000)
    view = t[:10]
    view.fill_(ctx.me + 1)
    shmem.free(t)
    other = shmem.ones(1000)
    assert view.tolist() == [ctx.me + 1] * 10  # a live view keeps its memory
    b = shmem.buffer(10)
    shmem.free(b)
    with pytest.raises(shmem.NotSymmetricError):
        shmem.put(b, b"x" * 10, 0)
    del other
    shmem.barrier()


def ordinary(ctx):
    for name, call in (("free", shmem.free), ("peer", lambda t: shmem.peer(t, 0))):
        with pytest.raises(shmem.NotSymmetricError, match=f"^{name}: .*shmem.empty") as caught:
            call(torch.zeros(3))
        assert caught.value.operation == name


def test_ordinary_memory_is_told_what_to_be(pair):
    pair.run(ordinary)


def test_free(pair):
    pair.run(freed)


def exhausted(ctx):
    gc.collect()
    shmem.collect()
    before = shmem.heap_stats()
    with pytest.raises(shmem.HeapExhaustedError) as caught:
        shmem.empty(1 << 40, dtype=torch.uint8)
    text = str(caught.value)
    assert str(before["bytes"]) in text or str(257 << 20) in text, text
    assert "hole" in text and ("SHMEM_SYMMETRIC_SIZE" if DEVICE == "cpu" else "SHMEM_DEVICE_SIZE") in text, text
    assert isinstance(caught.value, MemoryError)
    assert shmem.heap_stats()["used"] == before["used"]
    blocks = []
    with pytest.raises(shmem.HeapExhaustedError):
        for _ in range(100):
            blocks.append(shmem.empty(16 << 20, dtype=torch.uint8))
    assert 10 <= len(blocks) <= 16
    blocks.clear()
    gc.collect()
    t = shmem.zeros(1000)
    shmem.put(t, torch.full((1000,), 2.0), (ctx.me + 1) % ctx.n)
    shmem.barrier()
    assert bool((t == 2).all())


def test_exhaustion_is_an_exception_and_rolled_back(pair):
    pair.run(exhausted)


def asymmetric(ctx):
    before = shmem.heap_stats()["used"]
    with pytest.raises(shmem.AsymmetricAllocationError) as caught:
        shmem.empty((ctx.me + 1) * 1000, dtype=torch.uint8)
    text = str(caught.value)
    assert "1000" in text and str(ctx.n * 1000) in text or "2000" in text, text
    assert shmem.heap_stats()["used"] == before
    t = shmem.zeros(10)  # the heap is usable
    shmem.put(t, torch.full((10,), float(ctx.me)), (ctx.me + 1) % ctx.n)
    shmem.barrier()
    assert bool((t == (ctx.me - 1) % ctx.n).all())
    return text


def test_unequal_sizes_are_an_error_on_every_pe(trio):
    trio.run(asymmetric)


def in_teams(ctx):
    even = shmem.current().team.split_strided(0, 2, (ctx.n + 1) // 2)
    kept = []
    if even is not None:
        kept = [shmem.zeros(500, team=even) for _ in range(3)]  # histories differ from now on
    t = shmem.zeros(100)
    shmem.put(t, torch.full((100,), float(ctx.me + 1)), (ctx.me + 1) % ctx.n)
    shmem.barrier()
    assert bool((t == (ctx.me - 1) % ctx.n + 1).all())
    for k in kept:
        assert bool((k == 0).all())
    if even is not None:
        u = shmem.zeros(8, team=even)
        peer = even.translate((even.rank + 1) % even.size)
        shmem.put(u, torch.full((8,), 40.0 + ctx.me), peer)
        shmem.barrier(team=even)
        assert bool((u == 40 + even.translate((even.rank - 1) % even.size)).all())
    shmem.barrier()


def test_allocation_in_overlapping_teams(trio):
    trio.run(in_teams)
