"""Cases of device_pe.py about how devices, teams and worlds begin and end: deaths, aborts, timeouts, late and missing devices."""

import ctypes
import os
import signal
import struct
import sys
import time

import shmem
from device_rig import FOREVER, OK, PEER_DEAD, PEER_LEFT, POISONED, STALE, SUM, TIMEOUT, UNSUPPORTED, expect, pattern
from shmem import _abi

SOON = 40  # seconds; 3 on a quiet machine. What nobody ends takes SHMEM_TIMEOUT, which is 120 in these tests


def killed(pe):
    """The last PE is killed while the others wait in a kernel: they are told its number, and go on without it."""
    at, _ = pe.alloc(64)
    mine = pe.local(64)
    waiting = pe.stream()
    pe.barrier()
    if pe.me == pe.n - 1:
        pe.told("waiting", range(pe.n - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    if pe.me == 0:
        pe.call("signal_wait_on_stream", pe.handle, at, 0, 77, waiting)
    else:
        pe.call("barrier_on_stream", pe.team, waiting)
    pe.tell("waiting")
    began = time.monotonic()
    words = pe.refused(PEER_DEAD, f"(PE {pe.n - 1})", "stream_wait", pe.handle, waiting, int(200e9))
    assert time.monotonic() - began < SOON, words
    pe.refused(PEER_DEAD, f"(PE {pe.n - 1})", "barrier_on_stream", pe.team, waiting)
    pe.refused(PEER_DEAD, f"(PE {pe.n - 1})", "device_health", pe.handle)
    pe.store(mine, pattern(pe.me, 64))  # copies go on
    pe.call("put_on_stream", pe.handle, at, mine, 64, 0 if pe.n > 2 and pe.me else pe.me, waiting)
    pe.wait(waiting)
    again(pe)
    print("survived", flush=True)


def again(pe):
    """The survivors make a new team, and its kernels wait again; the old ones have no place on the device any more."""
    rest = list(range(pe.n - 1))
    team = team_of(pe, rest, 4711)
    at, _ = pe.alloc(4 * 100, team)
    stream = pe.stream()
    for turn in range(3):
        pe.store(at, struct.pack("<100i", *(turn + 10 * pe.me + k for k in range(100))))
        pe.call("collective_on_stream", team, _abi.COLLECTIVE["ALL_REDUCE"], at, at, 100, _abi.DTYPE["I32"], SUM, -1, stream)
        pe.wait(stream)
        want = struct.pack("<100i", *((turn + k) * len(rest) + 10 * sum(rest) for k in range(100)))
        expect("all_reduce of the survivors", pe.load(at, 400), want)
        pe.call("barrier_on_stream", team, stream)
    pe.wait(stream)
    pe.call("device_health", pe.handle)
    pe.refused(PEER_DEAD, f"(PE {pe.n - 1})", "barrier_on_stream", pe.team, stream)


def aborts(pe):
    """abort() by one PE ends kernels that wait on all others."""
    at, _ = pe.alloc(64)
    waiting = pe.stream()
    pe.barrier()
    if pe.me == 0:
        pe.told("waiting", range(1, pe.n))
        pe.world.abort(3)
        return
    pe.call("signal_wait_on_stream", pe.handle, at, 0, 77, waiting)
    pe.tell("waiting")
    began = time.monotonic()
    pe.refused(-304, "abort", "stream_wait", pe.handle, waiting, int(200e9))
    assert time.monotonic() - began < SOON


def stalled(pe):
    """A PE that does not come: the kernels of the other, for which nobody waits on the host, end by themselves at SHMEM_TIMEOUT."""
    waiting = pe.stream()
    pe.barrier()
    if pe.me == 0:
        began = time.monotonic()
        pe.call("barrier_on_stream", pe.team, waiting)
        while pe.lib.device_health(pe.handle) == OK:
            time.sleep(0.01)
        took = time.monotonic() - began
        words = pe.refused(TIMEOUT, "barrier_on_stream", "device_health", pe.handle)
        assert 6.0 < took < 40, (took, words)  # SHMEM_TIMEOUT is 6; the rest is for a slow machine
        pe.refused(TIMEOUT, "must not be used", "stream_wait", pe.handle, waiting, int(100e9))
        pe.tell("over")
    else:
        pe.told("over", [0])
        assert pe.lib.device_health(pe.handle) == OK  # its own device waited for nobody
    pe.call("stream_destroy", pe.handle, waiting)


def left(pe):
    """A world that ends while a kernel waits: the kernel ends first, then its memory goes."""
    at, _ = pe.alloc(64)
    pe.call("signal_wait_on_stream", pe.handle, at, 0, 77, None)
    began = time.monotonic()
    shmem.finalize()  # SHMEM_TIMEOUT is for peers; a kernel that waits gets seconds
    assert time.monotonic() - began < SOON


def worlds(pe):
    """Two worlds of one process on one device, with PEs numbered the other way round in the second: neither sees the other's memory or teams."""
    options = pe.lib_options(pe.n - 1 - pe.me)
    words = [ctypes.c_uint64(), ctypes.c_uint64()]
    pe.call("init", ctypes.byref(options), ctypes.byref(words[0]), ctypes.byref(words[1]))
    world, team = (word.value for word in words)
    first, _ = pe.alloc(4096)
    second, block = pe.alloc(4096, team)
    pe.store(first, pattern(pe.me, 4096))
    pe.barrier()
    for handle, at, mine in ((pe.handle, first, pe.me), (world, second, pe.n - 1 - pe.me)):
        memory = ctypes.create_string_buffer(pattern(mine, 4096), 4096)
        pe.call("put", handle, at, ctypes.addressof(memory), 4096, (mine + 1) % pe.n)
    for each in (pe.team, team, pe.team):
        pe.call("barrier_on_stream", each, None)
    pe.wait()
    pe.call("stream_wait", world, None, int(200e9))
    pe.call("barrier", team)
    pe.barrier()
    expect("the first world", pe.load(first, 4096), pattern(pe.before, 4096))
    memory = ctypes.create_string_buffer(4096)
    pe.call("get", world, ctypes.addressof(memory), second, 4096, pe.n - 1 - pe.me)
    expect("the second world", memory.raw, pattern((pe.n - 2 - pe.me) % pe.n, 4096))
    pe.refused(-103, "not inside", "put", world, first, ctypes.addressof(memory), 8, 0)
    pe.call("block_drop", block)
    pe.call("finalize", world, int(200e9))
    pe.store(first, pattern(pe.me, 4096))  # the first goes on
    pe.call("barrier_on_stream", pe.team, None)
    pe.wait()


def cycles(pe):
    """Worlds with and without a device, again and again: nothing grows."""

    def held():
        with open("/proc/self/maps") as maps:
            return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps)

    seen = []
    for turn in range(5):
        at, block = pe.alloc(4096)
        assert pe.load(at, 4096) == bytes(4096)
        pe.barrier()
        pe.store(at, pattern(pe.me, 4096), pe.next)
        pe.barrier()
        expect("after init", pe.load(at, 4096), pattern(pe.before, 4096))
        pe.call("block_drop", block)
        shmem.finalize()
        seen.append(held())
        pe.__init__()
    assert seen[-1][0] <= seen[1][0] + 1 and seen[-1][1] <= seen[1][1] + 12, seen  # one may close a moment later; Go maps a little for itself


def team_of(pe, members, key):
    out = ctypes.c_uint64()
    listed = (ctypes.c_int32 * len(members))(*members)
    pe.call("team_create", pe.handle, listed, len(members), key, int(200e9), ctypes.byref(out))
    return out.value


def teams(pe):
    """Overlapping teams made and ended again and again: each has a number of its own on the device, and its kernels meet nobody else's."""
    streams = [pe.stream(), pe.stream()]
    pairs = [(a, b) for a in range(pe.n) for b in range(a + 1, pe.n)]
    numbers = set()
    for turn in range(6):
        mine = [(pair, team_of(pe, pair if turn % 2 else pair[::-1], 100 * turn + i)) for i, pair in enumerate(pairs) if pe.me in pair]
        index = ctypes.c_int32()
        seen = set()
        for _, team in mine:
            pe.call("team_index", team, ctypes.byref(index))
            seen.add(index.value)
        assert len(seen) == len(mine) and min(seen) > 0, seen
        numbers |= seen
        work = []
        for i, (pair, team) in enumerate(mine):
            at, block = pe.alloc(4 * 64, team)
            pe.store(at, struct.pack("<64i", *(1000 * turn + 10 * pe.me + k for k in range(64))))
            pe.call("collective_on_stream", team, _abi.COLLECTIVE["ALL_REDUCE"], at, at, 64, _abi.DTYPE["I32"], SUM, -1, streams[i % 2])
            work.append((pair, team, at, block))
        for stream in streams:
            pe.wait(stream)
        for pair, team, at, block in work:
            want = struct.pack("<64i", *(2000 * turn + 10 * sum(pair) + 2 * k for k in range(64)))
            expect(f"turn {turn}, {pair}", pe.load(at, 256), want)
            pe.call("block_drop", block)
            pe.call("team_destroy", team)
        pe.barrier()
    assert len(numbers) < 4 * len(pairs), numbers  # they are used again


GONE = 40  # seconds; what is ended when a member is gone takes two, on a machine that has time


def reduced(pe, team, members, stream, turn, at=None):
    """An all_reduce of a team by kernels, in place in a new block or at an address, with the right result."""
    block = None
    if at is None:
        at, block = pe.alloc(4 * 100, team)
    pe.store(at, struct.pack("<100i", *(1000 * turn + 10 * pe.me + k for k in range(100))))
    pe.call("collective_on_stream", team, _abi.COLLECTIVE["ALL_REDUCE"], at, at, 100, _abi.DTYPE["I32"], SUM, -1, stream)
    pe.wait(stream)
    want = struct.pack("<100i", *((1000 * turn + k) * len(members) + 10 * sum(members) for k in range(100)))
    expect(f"all_reduce number {turn}", pe.load(at, 400), want)
    return at, block


def ended(pe, words, stream):
    """What waits on a stream ends soon, with these words, and the device goes on."""
    began = time.monotonic()
    said = pe.refused(POISONED, words, "stream_wait", pe.handle, stream, int(60e9))
    assert time.monotonic() - began < GONE and "must not be used" in said, (time.monotonic() - began, said)
    pe.call("device_health", pe.handle)


def forsaken(pe):
    """One team ends before its time, and what its kernels wait for will not come: they end and say why, in whichever way it ended.

    own      PE 0 aborts it with a kernel under way, which the last PE has not joined
    peers    PE 0 aborts it, and the others have a kernel under way
    destroy  PE 0 destroys it, and the others have a kernel under way
    both     PE 0 destroys it with a kernel under way, then the last PE, which has not joined

    What another team has under way all the time goes on; memory and number of the team are used again.
    """
    how, last = sys.argv[2], pe.n - 1
    everybody, first, abort = list(range(pe.n)), pe.me == 0, how in ("own", "peers")
    joined = pe.me < max(1, last) if how in ("own", "both") else not first
    waiting, busy, signals = pe.stream(), pe.stream(), pe.stream()
    other = team_of(pe, everybody[::-1], 1)
    numbers, places = set(), set()
    for turn in range(3):
        team = team_of(pe, everybody, 10 + turn)
        index = ctypes.c_int32()
        pe.call("team_index", team, ctypes.byref(index))
        at, block = reduced(pe, team, everybody, waiting, turn)
        word, words = pe.alloc(64, team)
        numbers.add(index.value)
        places.add((at, word))
        pe.barrier()
        if not first:
            pe.call("barrier_on_stream", other, busy)
        if joined:
            pe.call("barrier_on_stream", team, waiting)
        if not first and abort:
            pe.call("signal_wait_on_stream", pe.handle, word, 0, 77, signals)
        pe.tell(f"waiting{turn}")
        pe.told(f"waiting{turn}", everybody)
        if first or (how == "both" and pe.me == last):
            pe.told(f"waiting{turn}" if first else f"gone{turn}", [0])
            time.sleep(0.2)
            pe.call("team_abort" if abort else "team_destroy", team)
            pe.refused(STALE, "", "barrier_on_stream", team, waiting)
        pe.tell(f"gone{turn}")
        if joined:
            ended(pe, {"own": "was given up here" if first else "(PE 0)", "both": f"(PE {last})"}.get(how, "(PE 0)"), waiting)
        if not first and abort:
            ended(pe, "(PE 0)", signals)
        if not first and not (how == "both" and pe.me == last):
            over(pe, team, waiting, last if how == "both" else 0)
            pe.call("team_destroy", team)
        if first:
            time.sleep(0.5)
            pe.call("barrier_on_stream", other, busy)
        pe.wait(busy)  # the other team's kernel, which waited all the time
        reduced(pe, other, everybody, busy, turn)
        reduced(pe, pe.team, everybody, busy, turn)
        for each in (block, words):
            pe.call("block_drop", each)
        pe.barrier()
        time.sleep(0.1)
    assert len(numbers) < 3 and len(places) < 3, (numbers, places)


def over(pe, team, stream, culprit):
    """The operations of a team are over, as soon as its end is known here."""
    until = time.monotonic() + GONE
    while pe.lib.barrier_on_stream(team, stream) != POISONED:
        assert time.monotonic() < until, "operations go on"
        time.sleep(0.01)
    pe.refused(POISONED, f"(PE {culprit})", "barrier_on_stream", team, stream)
    pe.lib.stream_wait(pe.handle, stream, int(60e9))  # one that came in between


def patient(pe):
    """A team is destroyed with a kernel under way, and the others come later: nothing is ended, nothing is missing."""
    everybody, stream = list(range(pe.n)), pe.stream()
    team = team_of(pe, everybody, 1)
    at, _ = pe.alloc(400, team)
    pe.store(at, struct.pack("<100i", *(pe.me * 7 + k for k in range(100))))
    pe.barrier()
    if pe.me:
        time.sleep(3.5)
    pe.call("collective_on_stream", team, _abi.COLLECTIVE["ALL_REDUCE"], at, at, 100, _abi.DTYPE["I32"], SUM, -1, stream)
    pe.call("team_destroy", team)
    pe.wait(stream)
    expect("the sum", pe.load(at, 400), struct.pack("<100i", *(sum(everybody) * 7 + k * pe.n for k in range(100))))
    pe.call("device_health", pe.handle)


def parted(pe):
    """A PE does its part and leaves the world, while the stream of another is still busy behind the kernel they had together: nobody missed anything."""
    stream = pe.stream()
    word, _ = pe.alloc(64, flags=_abi.ZERO)
    pe.barrier()
    pe.call("barrier_on_stream", pe.team, stream)
    if pe.me:
        pe.wait(stream)
        pe.tell("leaving")
        return  # and finalizes
    pe.call("signal_wait_on_stream", pe.handle, word, 0, 5, stream)  # host memory: keeps the stream busy, but no device
    pe.told("leaving", [1])
    time.sleep(4)
    pe.call("device_health", pe.handle)
    pe.store(word, struct.pack("<i", 5))
    pe.wait(stream)
    pe.refused(PEER_LEFT, f"(PE {1})", "barrier_on_stream", pe.team, stream)


def late(pe):
    """The device comes up in a world that has teams already; those go on the device as well."""
    pe.refused(UNSUPPORTED, "gshmem_device_open", "stream_wait", pe.handle, None, 0)
    out = ctypes.c_uint64()
    pe.call("team_split_strided", pe.team, pe.n - 1, -1, pe.n, FOREVER, ctypes.byref(out))
    pe.call("device_open", pe.handle, f"npu:{pe.me}".encode(), 16 << 20, FOREVER)
    pe.call("device_open", pe.handle, b"npu", 16 << 20, FOREVER)  # it has one
    for team in (pe.team, out.value):
        at, block = pe.alloc(64 * pe.n, team)
        rank = pe.call("team_my_pe", team)
        mine = pe.local(64)
        pe.store(mine, pattern(rank, 64))
        pe.call("collective_on_stream", team, _abi.COLLECTIVE["ALL_GATHER"], mine, at, 64, 0, 0, -1, None)
        pe.wait()
        expect("all_gather", pe.load(at, 64 * pe.n), b"".join(pattern(r, 64) for r in range(pe.n)))
        pe.call("block_drop", block)
    pe.barrier()


def far(pe):
    """PE 1 could not map PE 0's device memory: what needs it says so, everything else works."""
    at, _ = pe.alloc(4096)
    mine = pe.local(4096)
    if pe.me == 1:
        assert "PE 0" in pe.world.info()["device"]["not_mapped"][0]
        pe.refused(UNSUPPORTED, "symmetric host memory", "put_on_stream", pe.handle, at, mine, 64, 0, None)
        pe.refused(UNSUPPORTED, "symmetric host memory", "ptr", pe.handle, at, 0, ctypes.byref(ctypes.c_void_p()))
    pe.refused(UNSUPPORTED, "collectives on host memory", "barrier_on_stream", pe.team, None)
    pe.store(at, pattern(pe.me, 4096))
    expect("own memory", pe.load(at, 4096), pattern(pe.me, 4096))
    pe.barrier()


def without_kernels(pe):
    """No library of kernels: copies move data, host functions meet, additions and collectives say what to do instead."""
    at, _ = pe.alloc(4096)
    mine = pe.local(1000)
    pe.store(mine, pattern(pe.me, 1000))
    stream = pe.stream()
    pe.call("put_on_stream", pe.handle, at, mine, 1000, pe.next, stream)
    pe.call("signal_on_stream", pe.handle, at + 4000, 9 + pe.me, 0, pe.next, stream)
    pe.call("barrier_on_stream", pe.team, stream)
    pe.wait(stream)
    expect("put", pe.load(at, 1000), pattern(pe.before, 1000))
    assert struct.unpack("<i", pe.load(at + 4000, 4))[0] == 9 + pe.before
    pe.refused(UNSUPPORTED, "SHMEM_KERNELS", "collective_on_stream", pe.team, _abi.COLLECTIVE["ALL_GATHER"], at, at, 8, 0, 0, -1, stream)
    pe.refused(UNSUPPORTED, "SHMEM_KERNELS", "atomic", pe.handle, 5, 4, at, 1, 0, pe.me, None)
    pe.refused(UNSUPPORTED, "gshmem_wait_until", "signal_wait_on_stream", pe.handle, at, 0, 1, stream)
    pe.barrier()


def none(pe):
    """"auto" where no PE has a device: the world is up without one, and says why."""
    info = pe.world.info()["device"]
    why = os.environ.get("ACLEMU_FAIL", "libascendcl.so was not found").split(":")[0] if pe.me == pe.n - 1 else ""
    assert info["kind"] == "none" and info["reason"] and why in info["reason"], info
    pe.refused(UNSUPPORTED, info["reason"], "stream_wait", pe.handle, None, 0)
    pe.barrier()
