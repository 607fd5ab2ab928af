"""Ctrl-C and signal handlers get into every one-sided call that waits for a process that does not answer."""

from __future__ import annotations

import signal
import time

import pytest

from processes import Script

OPERATIONS = """
    w = up()
    b = shmem.buffer(16 << 20)
    words = shmem.buffer(64, format="q")
    shmem.barrier()
    if ME == 1:
        for i in range(8): words[i] = 100 + i
        b.data[:4096] = bytes([9]) * 4096
    shmem.barrier()
    if ME == 1:
        touch("stop"); until("over")
        shmem.barrier()
        assert words[0] == 107, words[0]
        w.finalize()
        raise SystemExit(0)

    class Left(Exception): pass
    def leave(number, frame): raise Left
    signal.signal(signal.SIGALRM, leave)
    own = bytearray([7]) * 4096
    large = bytearray([5]) * (16 << 20)
    pieces = shmem.Pieces([(memoryview(b.data)[:8], memoryview(own)[:8], 1), (memoryview(b.data)[8:16], memoryview(own)[8:16], 1)])
    def fill():
        for _ in range(8): shmem.put(b, large, 1)
    calls = {
        "get": lambda: shmem.get(own, memoryview(b.data)[:4096], 1),
        "iget": lambda: shmem.iget(own, memoryview(b.data)[:4096], 1, src_stride=2),
        "get_many": pieces.get,
        "g": lambda: shmem.g(words, 1, index=3),
        "fetch": lambda: shmem.atomic_fetch_add(words, 0, 1),
        "swap": lambda: shmem.atomic_compare_swap(words, 1, 1, 1),
        "put": fill,
        "put_signal": lambda: shmem.put_signal(b, large, words, 1, 1, index=5),
        "quiet": shmem.quiet,
    }
    until("stopped")
    for name, call in calls.items():
        began = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            call()
        except Left: pass
        else: raise SystemExit(f"{name} ended though nobody answers")
        took = time.monotonic() - began
        assert 0.15 < took < 20, (name, took)
        assert bytes(own) == bytes([7]) * 4096, name
    touch("interrupted"); until("going")
    assert shmem.g(words, 1, index=3) == 103
    time.sleep(0.3)  # late answers to what was called off
    assert bytes(own) == bytes([7]) * 4096, "an operation that was called off wrote"
    shmem.get(own, memoryview(b.data)[:4096], 1)
    shmem.atomic_add(words, 7, 1)
    shmem.quiet()
    touch("over")
    shmem.barrier()
    w.finalize()
"""


def test_every_call_that_waits_can_be_left(tmp_path):
    with Script(2, OPERATIONS, tmp_path, {"SHMEM_TRANSPORT": "tcp"}) as job:
        wait_for(tmp_path / "stop", job.processes[0])
        job.processes[1].send_signal(signal.SIGSTOP)
        (tmp_path / "stopped").touch()
        wait_for(tmp_path / "interrupted", job.processes[0])
        job.processes[1].send_signal(signal.SIGCONT)
        (tmp_path / "going").touch()
        job.good()


def wait_for(path, process=None):
    end = time.monotonic() + 240
    while not path.exists() and (process is None or process.poll() is None):
        assert time.monotonic() < end, path
        time.sleep(0.01)


AT_ONCE = """
    import ctypes
    w = up()
    class Left(Exception): pass
    def leave(number, frame):
        above = frame
        while above and not getattr(above.f_locals.get("request"), "value", above.f_locals.get("request")): above = above.f_back
        if above: raise Left
        signal.setitimer(signal.ITIMER_REAL, 0.02)  # the call has not begun; the machine is busy
    signal.signal(signal.SIGALRM, leave)
    names = ["barrier", "sync", "all_reduce", "broadcast", "recv", "wait_until"]
    teams = {name: shmem.Team.create([0, 1], key=i) for i, name in enumerate(names)}
    word = shmem.buffer(8, format="q")
    large = shmem.buffer(1 << 20)
    shmem.barrier()
    def calls(name):
        t = teams[name]
        return {"barrier": lambda: shmem.barrier(team=t), "sync": lambda: shmem.sync(team=t), "broadcast": lambda: shmem.broadcast(large, 1, team=t),
                "all_reduce": lambda: shmem.all_reduce(large, team=t), "recv": lambda: shmem.recv(bytearray(8), 1, team=t),
                "wait_until": lambda: shmem.wait_until(word, "==", 1)}[name]
    for name in names if ME == 0 else ():
        began = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)  # long before the first slice is over
            calls(name)()
        except Left: pass
        else: raise SystemExit(f"{name} ended though nobody came")
        took = time.monotonic() - began
        assert 0.015 < took < 20, (name, took)
    if ME == 0: touch("left")
    until("left")
    for name in names[:4]:
        began = time.monotonic()
        try: shmem.all_reduce(memoryview(large.data)[:1000], team=teams[name], timeout=120)
        except shmem.ShmemError as error: assert not isinstance(error, shmem.TimeoutError), (name, error)
        else: raise SystemExit(f"{name}: its team still works though an operation was given up after the arrival")
        assert time.monotonic() - began < 60, name
    if ME == 1: shmem.send(b"12345678", 0, team=teams["recv"])
    else:
        got = bytearray(8)
        shmem.recv(got, 1, team=teams["recv"])
        assert bytes(got) == b"12345678", got
    shmem.barrier(timeout=120)
    w.finalize()
"""


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_a_signal_in_the_first_slice_leaves_nothing_running(tmp_path, transport):
    with Script(2, AT_ONCE, tmp_path, {"SHMEM_TRANSPORT": transport}) as job:
        job.good()
