"""Ctrl-C and signal handlers get into every one-sided call that waits for a process that does not answer."""

from __future__ import annotations

import signal
import time

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
        touch("stop"); until("over", 60)
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
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        began = time.monotonic()
        try: call()
        except Left: pass
        else: raise SystemExit(f"{name} ended though nobody answers")
        took = time.monotonic() - began
        assert 0.15 < took < 0.7, (name, took)
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
    end = time.monotonic() + 40
    while not path.exists() and (process is None or process.poll() is None):
        assert time.monotonic() < end, path
        time.sleep(0.01)
