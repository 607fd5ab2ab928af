"""Signals and waits: data before the signal, deadlines, a way out."""

from __future__ import annotations

import time

import pytest
import torch

import shmem
from data import DEVICE, pattern


def ring(ctx, nbytes, rounds):
    data = shmem.zeros(nbytes, dtype=torch.uint8)
    flag = shmem.zeros(2, dtype=torch.int64)
    ack = shmem.zeros(1, dtype=torch.int64)
    right, left = (ctx.me + 1) % ctx.n, (ctx.me - 1) % ctx.n
    for i in range(1, rounds + 1):
        shmem.put_signal(data, pattern(nbytes, ctx.me, i), flag, i, right, index=1)
        assert shmem.wait_until(flag, ">=", i, index=1, timeout=120) == i
        assert torch.equal(data, pattern(nbytes, left, i)), i
        shmem.signal(ack, i, left)
        shmem.wait_until(ack, "==", i, timeout=120)
    assert flag[0] == 0
    shmem.barrier()


@pytest.mark.parametrize("nbytes, rounds", [(0, 50), (1, 50), (8, 200), (4097, 50), (3 << 20, 12)])
def test_data_are_there_when_the_signal_is(pool, nbytes, rounds):
    pool.run(ring, nbytes, rounds)


def adds(ctx):
    flag = shmem.zeros(1, dtype=torch.int64 if DEVICE == "cpu" else torch.int32)  # what every chip adds to
    data = shmem.zeros(ctx.n, dtype=torch.int32)
    for pe in range(ctx.n):
        shmem.put_signal(data[ctx.me : ctx.me + 1], torch.tensor([ctx.me + 5], dtype=torch.int32), flag, 1, pe, op="add")
    shmem.wait_until(flag, "==", ctx.n, timeout=120)
    assert data.tolist() == [pe + 5 for pe in range(ctx.n)]
    shmem.barrier()  # nobody adds again before everybody has seen the first sum
    kept = torch.tensor([ctx.me + 50], dtype=torch.int32)
    for pe in range(ctx.n):
        shmem.put_signal_nbi(data[ctx.me : ctx.me + 1], kept, flag, 1, pe, op="add")
    shmem.wait_until(flag, "==", 2 * ctx.n, timeout=120)
    assert data.tolist() == [pe + 50 for pe in range(ctx.n)]
    shmem.quiet()
    shmem.barrier()


def test_signals_add_up(pool):
    pool.run(adds)


def comparisons(ctx):
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint64):
        t = shmem.zeros(3, dtype=dtype)
        low = -3 if dtype.is_signed else 3
        shmem.p(t, low, ctx.me, index=1)
        for op, value, true in (
            ("==", low, True),
            ("!=", low, False),
            (">", low, False),
            (">=", low, True),
            ("<", low + 1, True),
            ("<=", low - 1, False),
            ("<", 0, low < 0),
        ):
            assert shmem.test(t, op, value, index=1) is true, (dtype, op, value)
            if true:
                assert shmem.wait_until(t, op, value, index=1, timeout=60) == low
            else:
                with pytest.raises(shmem.TimeoutError):
                    shmem.wait_until(t, op, value, index=1, timeout=0)


def test_comparisons_signed_and_unsigned(pair):
    pair.run(comparisons)


def deadline(ctx):
    t = shmem.zeros(1, dtype=torch.int64)
    for seconds in (0.0, 0.05, 0.4, 1.0):
        before = time.monotonic()
        with pytest.raises(shmem.TimeoutError) as caught:
            shmem.wait_until(t, "==", 1, timeout=seconds)
        took = time.monotonic() - before
        assert seconds * 0.9 <= took <= seconds + 20, (seconds, took)
        assert "wait" in str(caught.value)
    shmem.signal(t, 1, ctx.me)
    assert shmem.wait_until(t, "==", 1, timeout=60) == 1  # the wait was given up cleanly


def test_deadlines_are_kept(pair):
    pair.run(deadline)


def plain_store(ctx):
    t = shmem.zeros(2, dtype=torch.int64)
    if ctx.me == 0:
        time.sleep(0.05)
        if ctx.mapped:
            shmem.peer(t, 1)[0] = 77  # nobody is told; the waiter must look by itself
        else:
            shmem.put(t[:1], torch.tensor([77]), 1)
    elif ctx.me == 1:
        assert shmem.wait_until(t, "!=", 0, timeout=120) == 77
    shmem.barrier()


def test_waiter_sees_a_plain_store(pair):
    pair.run(plain_store)


def interrupted(ctx):
    import os
    import signal
    import threading

    t = shmem.zeros(1, dtype=torch.int64)
    calls = [lambda: shmem.wait_until(t, "==", 1, timeout=200)]
    for call in calls:
        before = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            call()
        assert time.monotonic() - before < 40
    handled = []
    old = signal.signal(signal.SIGUSR2, lambda *_: handled.append(time.monotonic()))
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR2)).start()
    before = time.monotonic()
    with pytest.raises(shmem.TimeoutError):
        shmem.wait_until(t, "==", 1, timeout=4)
    signal.signal(signal.SIGUSR2, old)
    assert handled and handled[0] - before < 3.9
    shmem.barrier()


def test_control_c_and_signal_handlers(pair):
    pair.run(interrupted)


def refused(ctx):
    flag = shmem.zeros(2, dtype=torch.int64)
    small = shmem.zeros(2, dtype=torch.int16)
    data = shmem.zeros(4)
    bad = [
        lambda: shmem.put_signal(data, torch.zeros(4), small, 1, 0),
        lambda: shmem.put_signal(data, torch.zeros(4), flag, 1, 0, op="subtract"),
        lambda: shmem.put_signal(data, torch.zeros(4), flag, 1, 0, index=2),
        lambda: shmem.wait_until(flag, "=", 1),
        lambda: shmem.wait_until(data, "==", 1),
        lambda: shmem.wait_until(flag, "==", 1.5),
        lambda: shmem.put_signal(data, torch.zeros(3), flag, 1, 0),
    ]
    for call in bad:
        with pytest.raises(shmem.InvalidArgumentError):
            call()
    with pytest.raises(shmem.InvalidPEError):
        shmem.put_signal(data, torch.zeros(4), flag, 1, ctx.n)
    with pytest.raises(shmem.NotSymmetricError):
        shmem.put_signal(data, torch.zeros(4), torch.zeros(1, dtype=torch.int64), 1, 0)
    with pytest.raises(shmem.NotSymmetricError):
        shmem.wait_until(torch.zeros(1, dtype=torch.int64), "==", 1, timeout=1)
    shmem.barrier()
    assert bool((data == 0).all()) and bool((flag == 0).all())


def test_refused(pair):
    pair.run(refused)
