"""One PE of tests/npu/test_missing.py: work on streams with all of its synchronisation, and with one piece of it left out. Not a test by itself.

python missing.py CASE keep|drop   prints how often old data were seen in 20 rounds; each round ends with everything waited for.
"""

import struct
import sys

import shmem
from device_rig import PE, SUM, pattern
from shmem import _abi

SIZE, KEEP = 4096, sys.argv[2] == "keep"


class Rounds(PE):
    """A PE with a symmetric target, a source, a place to copy to and two streams."""

    def __init__(self):
        super().__init__()
        self.a, self.b = self.stream(), self.stream()
        self.target, _ = self.alloc(SIZE)
        self.signal, _ = self.alloc(64)
        self.mine, self.copied = self.local(SIZE), self.local(SIZE)

    def put(self, stream):
        self.call("put_on_stream", self.handle, self.target, self.mine, SIZE, self.next, stream)

    def copy(self, stream):
        self.call("copy_on_stream", self.handle, self.copied, self.target, SIZE, stream)

    def everything(self):
        for stream in (self.a, self.b):
            self.wait(stream)
        self.barrier()


def wait_before_the_barrier(pe, turn):
    """The host's barrier knows nothing of work on other streams: whoever put waits for the stream first."""
    pe.put(pe.a)
    if KEEP:
        pe.wait(pe.a)
    pe.barrier()
    return pe.load(pe.target, SIZE) != pattern(pe.before, SIZE, turn)


def join_before_the_signal(pe, turn):
    """A signal on another stream than the put's says nothing of the put, unless the streams are joined."""
    pe.put(pe.a)
    if KEEP:
        pe.call("stream_join", pe.handle, pe.b, pe.a)
    pe.call("signal_on_stream", pe.handle, pe.signal, turn + 1, 0, pe.next, pe.b)
    waiting = pe.stream()
    pe.call("signal_wait_on_stream", pe.handle, pe.signal, 3, turn + 1, waiting)
    pe.wait(waiting)
    old = pe.load(pe.target, SIZE) != pattern(pe.before, SIZE, turn)
    pe.call("stream_destroy", pe.handle, waiting)
    return old


def join_behind_a_collective(pe, turn):
    """Another stream that reads a collective's result must be behind it."""
    pe.store(pe.target, struct.pack("<1024i", *(turn * 7 + pe.me + k for k in range(1024))))
    pe.call("collective_on_stream", pe.team, _abi.COLLECTIVE["ALL_REDUCE"], pe.target, pe.target, 1024, _abi.DTYPE["I32"], SUM, -1, pe.a)
    if KEEP:
        pe.call("stream_join", pe.handle, pe.b, pe.a)
    pe.copy(pe.b)
    pe.wait(pe.b)
    want = struct.pack("<1024i", *(pe.n * (turn * 7 + k) + sum(range(pe.n)) for k in range(1024)))
    return pe.load(pe.copied, SIZE) != want


def wait_for_the_signal(pe, turn):
    """What came with a signal is read behind a wait for the signal."""
    pe.call("put_signal_on_stream", pe.handle, pe.target, pe.mine, SIZE, pe.signal, turn + 1, 0, pe.next, pe.a)
    if KEEP:
        pe.call("signal_wait_on_stream", pe.handle, pe.signal, 3, turn + 1, pe.b)
    pe.copy(pe.b)
    pe.wait(pe.b)
    return pe.load(pe.copied, SIZE) != pattern(pe.before, SIZE, turn)


def barrier_of_the_streams(pe, turn):
    """The order of one's own stream says nothing of what the peer's stream has done."""
    pe.put(pe.a)
    if KEEP:
        pe.call("barrier_on_stream", pe.team, pe.a)
    pe.copy(pe.a)
    pe.wait(pe.a)
    return pe.load(pe.copied, SIZE) != pattern(pe.before, SIZE, turn)


def wait_before_the_source_changes(pe, turn):
    """The source of a put that is queued is still in use."""
    pe.put(pe.a)
    if KEEP:
        pe.wait(pe.a)
    pe.store(pe.mine, pattern(pe.me, SIZE, turn + 100))
    pe.everything()
    return pe.load(pe.target, SIZE) != pattern(pe.before, SIZE, turn)


def main():
    pe, old = Rounds(), 0
    for turn in range(20):
        pe.store(pe.mine, pattern(pe.me, SIZE, turn))
        pe.everything()
        old += globals()[sys.argv[1]](pe, turn)
        pe.everything()
    print("old", old)
    shmem.finalize()


main()
