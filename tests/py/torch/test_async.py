"""Asynchronous operations: they end with no call from here, and their Works and futures say what torch expects."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import groups
import pytest
import torch
import torch.distributed as dist

from data import DEVICE, blocking, host_memory

pytestmark = pytest.mark.core  # also over tcp


def spin(seconds):
    """Pure Python that calls nothing of ours."""
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        count += 1
    return count


@host_memory
def overlap(ctx):
    """The operation has ended by the time Python looks, although nobody waited, polled or called anything."""
    groups.join(ctx)
    t = torch.full((1 << 20,), float(ctx.me + 1))
    dist.barrier()
    work = dist.all_reduce(t, async_op=True)
    probe = int(t.data_ptr())
    import ctypes

    first = ctypes.cast(probe, ctypes.POINTER(ctypes.c_float))
    want = float(sum(range(1, ctx.n + 1)))
    for _ in range(100):
        spin(0.05)
        if first[0] == want and first[(1 << 20) - 1] == want:
            break
    assert first[0] == want and first[(1 << 20) - 1] == want, "the data are not there"
    for _ in range(100):  # a peer may write my last byte before my engine has looked
        if work.is_completed():
            break
        spin(0.05)
    assert work.is_completed()
    assert work.wait() and work.is_success() and work.exception() is None
    assert bool((t == want).all())


def test_overlap(pool):
    pool.run(overlap, world=False)


def futures(ctx):
    groups.join(ctx)
    n = ctx.n
    t = torch.ones(3) * ctx.me
    seen = []
    future = dist.all_reduce(t, async_op=True).get_future()
    doubled = future.then(lambda f: (seen.append(threading.current_thread().name), f.value()[0] * 2)[1])
    assert doubled.wait().tolist() == [2.0 * sum(range(n))] * 3
    assert future.done() and future.value()[0].data_ptr() == t.data_ptr()
    work = dist.broadcast(torch.zeros(2), 0, async_op=True)
    work.wait()
    assert work.get_future().wait()[0].tolist() == [0.0, 0.0], "a future asked for after the end"
    assert len(work.result()) == 1


def test_futures(pool):
    pool.run(futures, world=False)


def nested(ctx):
    """A callback may start a collective and wait for it, and so may a callback of that one."""
    groups.join(ctx)

    def inner(_):
        u = torch.ones(1)
        dist.all_reduce(u, async_op=True).get_future().wait()
        dist.all_reduce(u)
        return u

    future = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(inner)
    assert future.wait().item() == ctx.n * ctx.n


def test_callbacks_may_communicate(pool):
    pool.run(nested, world=False)


def many(ctx):
    """Hundreds in flight, in order, with synchronous ones between them."""
    groups.join(ctx)
    n, me = ctx.n, ctx.me
    works, tensors = [], []
    for k in range(300):
        t = torch.full((1 + k % 7,), float(me + k))
        works.append(dist.all_reduce(t, async_op=True))
        tensors.append(t)
        if k % 50 == 49:
            u = torch.tensor([float(k)])
            dist.all_reduce(u)
            assert u.item() == k * n
    for k, (work, t) in enumerate(zip(works, tensors)):
        work.wait()
        assert t.tolist() == [float(sum(range(n)) + k * n)] * (1 + k % 7)


def test_many(pool):
    pool.run(many, world=False)


def dropped(ctx):
    """Works and tensors that nobody keeps: the operation goes on over live memory."""
    groups.join(ctx)
    outs = []
    for k in range(50):
        out = torch.zeros(ctx.n, 100)
        dist.all_gather_into_tensor(out.view(-1), torch.full((100,), float(ctx.me + k)), async_op=True)
        outs.append(out)
    dist.barrier()  # in order after all of them
    for k, out in enumerate(outs):
        assert out[:, 0].tolist() == [rank + k for rank in range(ctx.n)]


def test_dropped(pool):
    pool.run(dropped, world=False)


def staged(ctx):
    """Results for a tensor with gaps arrive there too, with no call from here."""
    groups.join(ctx)
    base = torch.zeros(4, 6)
    view = base[:, ::2]
    view.fill_(ctx.me + 1.0)
    work = dist.all_reduce(view, async_op=True)
    end = time.monotonic() + 100
    while base[3, 4] != sum(range(1, ctx.n + 1)) and time.monotonic() < end:
        time.sleep(0.01)
    assert view.cpu().unique().tolist() == [float(sum(range(1, ctx.n + 1)))] and base[:, 1::2].abs().sum() == 0
    work.wait()


def test_staged(pool):
    pool.run(staged, world=False)


def threads(ctx):
    """Python runs while one thread waits: in wait(), in a synchronous call, in a future."""
    groups.join(ctx)
    ticks = []

    def ticker():
        for _ in range(20):
            time.sleep(0.01)
            ticks.append(1)
        groups.tell(ctx, "ticked")

    thread = threading.Thread(target=ticker)
    thread.start()
    if ctx.me == 0:
        groups.told(ctx, "ticked", range(ctx.n))  # the others' threads, while they wait in the barrier for this one
    dist.barrier()
    assert len(ticks) == 20
    thread.join()


def test_python_runs_while_waiting(pair):
    pair.run(threads, world=False)


@blocking
def late(ctx):
    """wait(timeout) gives up waiting, not the operation."""
    groups.join(ctx)
    t = torch.ones(1)
    if ctx.me == 0:
        groups.told(ctx, "gave up", range(1, ctx.n))
    work = dist.all_reduce(t, async_op=True)
    if ctx.me != 0:
        started = time.monotonic()
        with pytest.raises(RuntimeError, match="wait"):
            work.wait(timedelta(seconds=0.2))
        assert time.monotonic() - started > 0.15
        groups.tell(ctx, "gave up")
    work.wait()
    assert t.item() == ctx.n


def queued(ctx):
    """On a device wait orders the stream and does not block the thread, so there is nothing to time out; the result comes when all have called."""
    groups.join(ctx)
    t = torch.ones(1)
    dist.all_reduce(t)
    dist.barrier()
    torch.npu.synchronize()
    if ctx.me == 0:
        groups.told(ctx, "went on", range(1, ctx.n))
    work = dist.all_reduce(t, async_op=True)
    work.wait(timedelta(seconds=0.2))
    groups.tell(ctx, "went on")
    assert t.item() == ctx.n**2


def test_wait_timeout(pair):
    pair.run(late, world=False)
    if DEVICE != "cpu" and hasattr(late, "ON_HOST"):
        pair.run(queued, world=False)


@blocking
def failing(ctx):
    """An error reaches wait(), exception() and, as an error, the future."""
    groups.join(ctx)
    shape = (3,) if ctx.me == 0 else (4,)
    work = dist.all_reduce(torch.ones(shape), async_op=True)
    future = work.get_future()
    with pytest.raises(RuntimeError):
        work.wait()
    assert work.is_completed() and not work.is_success() and isinstance(work.exception(), RuntimeError)
    with pytest.raises(RuntimeError):
        future.wait()
    chained = future.then(lambda f: f.value())
    with pytest.raises(RuntimeError):
        chained.wait()
    groups.leave()


def test_failing(pair):
    pair.run(failing, world=False)
