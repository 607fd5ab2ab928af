"""One PE of tests/npu/test_device.py: cases over the C interface of the library and a device, by name. No torch.

python device_pe.py CASE   under shmem-run; exits 0 when all was right, and says what was wrong otherwise.
"""

import ctypes
import os
import signal
import struct
import sys
import time

import shmem
from shmem import _abi
from shmem._lib import library

OK, UNSUPPORTED, TIMEOUT, PEER_DEAD = 0, -105, -106, -301
SUM, PROD, MIN, MAX = 1, 2, 3, 4
FOREVER = -1


class Failed(Exception):
    """A call of the library failed."""

    def __init__(self, status, words):
        super().__init__(f"{status}: {words}")
        self.status = status


class PE:
    """This PE and its device, in the words of gshmem.h."""

    def __init__(self):
        self.world = shmem.init()
        self.me, self.n = self.world.rank, self.world.size
        self.handle, self.team = self.world.handle, self.world.team.handle
        self.next, self.before = (self.me + 1) % self.n, (self.me - 1) % self.n
        self.lib = library()

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status < 0:
            raise Failed(status, f"{name}: {self.lib.last_error().decode()}")
        return status

    def refused(self, status, words, name, *arguments):
        try:
            self.call(name, *arguments)
        except Failed as failed:
            assert failed.status == status and words in str(failed), failed
            return str(failed)
        raise AssertionError(f"{name} was not refused")

    def alloc(self, size, team=None, flags=_abi.ZERO | _abi.ON_DEVICE):
        block, address = ctypes.c_uint64(), ctypes.c_void_p()
        self.call("alloc", team or self.team, size, 0, flags, FOREVER, ctypes.byref(block), ctypes.byref(address))
        return address.value, block.value

    def local(self, size, flags=_abi.ZERO | _abi.ON_DEVICE):
        block, address = ctypes.c_uint64(), ctypes.c_void_p()
        self.call("alloc_local", self.handle, size, 0, flags, ctypes.byref(block), ctypes.byref(address))
        return address.value

    def store(self, at, data, pe=None):
        memory = ctypes.create_string_buffer(bytes(data), len(data))
        self.call("put", self.handle, at, ctypes.addressof(memory), len(data), self.me if pe is None else pe)

    def load(self, at, size, pe=None):
        memory = ctypes.create_string_buffer(size)
        self.call("get", self.handle, ctypes.addressof(memory), at, size, self.me if pe is None else pe)
        return memory.raw

    def stream(self):
        out = ctypes.c_void_p()
        self.call("stream_create", self.handle, ctypes.byref(out))
        return out.value

    def wait(self, stream=None, timeout=60.0):
        self.call("stream_wait", self.handle, stream, int(timeout * 1e9))

    def barrier(self):
        self.call("barrier", self.team)


def pattern(pe, size, salt=0):
    return bytes((pe * 37 + i * 11 + (i >> 8) + salt + 1) & 0xFF for i in range(size))


def expect(what, got, want):
    if got != want:
        i = next(k for k in range(len(want)) if got[k] != want[k])
        raise AssertionError(f"{what}: byte {i} of {len(want)} is {got[i]}, not {want[i]}")


def onesided(pe):
    """Every mix of memory, strided, single values, signals, atomics; canaries around every target."""
    pad = 32
    for size in (1, 31, 4099, 1_048_579):
        for remote in (0, _abi.ON_DEVICE):
            for here in (0, _abi.ON_DEVICE):
                if size > 1 << 20 and remote == here:
                    continue  # the long ones through the staging only
                what = f"{size} bytes, symmetric side {remote}, local side {here}"
                target, block = pe.alloc(size + 2 * pad, flags=_abi.ZERO | remote)
                mine = pe.local(size, here)
                write, read = (pe.store, pe.load) if here else (ctypes.memmove, ctypes.string_at)
                write(mine, pattern(pe.me, size)) if here else write(mine, pattern(pe.me, size), size)
                pe.call("put", pe.handle, target + pad, mine, size, pe.next)
                pe.barrier()
                came = pe.load(target, size + 2 * pad) if remote else ctypes.string_at(target, size + 2 * pad)
                expect(what + ", put", came, bytes(pad) + pattern(pe.before, size) + bytes(pad))
                write(mine, bytes(size)) if here else write(mine, bytes(size), size)
                pe.call("get_nbi", pe.handle, mine, target + pad, size, pe.next)
                pe.call("quiet", pe.handle, FOREVER)
                expect(what + ", get", read(mine, size), pattern(pe.me, size))
                pe.barrier()
                pe.call("block_drop", block)
    words(pe)


def words(pe):
    """Single values, signals, waits, atomics and strides on the device."""
    at, _ = pe.alloc(4096)
    source = ctypes.create_string_buffer(pattern(pe.me, 300), 300)
    pe.call("iput", pe.handle, at + 1024, ctypes.addressof(source), 5, 3, 3, 20, pe.next)
    pe.call("p", pe.handle, at + 1, 0x1122334455667788 + pe.me, 8, pe.next)
    pe.call("put_signal", pe.handle, at + 64, ctypes.addressof(source), 300, at + 4088, 100 + pe.me, 0, pe.next)
    seen = ctypes.c_uint64()
    pe.call("wait_until", pe.handle, at + 4088, 8, 0, 0, 100 + pe.before, int(30e9), ctypes.byref(seen))
    assert seen.value == 100 + pe.before
    expect("put_signal", pe.load(at + 64, 300), pattern(pe.before, 300))
    value = ctypes.c_uint64()
    pe.call("g", pe.handle, at + 1, 8, pe.me, ctypes.byref(value))
    assert value.value == 0x1122334455667788 + pe.before
    strided = bytearray(300)
    for i in range(20):
        strided[i * 15 : i * 15 + 3] = pattern(pe.before, 300)[i * 9 : i * 9 + 3]
    expect("iput", pe.load(at + 1024, 300), bytes(strided))
    true = ctypes.c_int32()
    pe.call("test", pe.handle, at + 4088, 8, 0, 2, 99, ctypes.byref(true))
    assert true.value == 1
    counter, _ = pe.alloc(64)
    for target in range(pe.n):
        pe.call("atomic", pe.handle, 5, 4, counter, 10 + pe.me, 0, target, None)  # add
        pe.call("atomic", pe.handle, 6, 4, counter + 4, 0, 0, target, None)  # inc
    pe.barrier()
    assert struct.unpack("<ii", pe.load(counter, 8)) == (sum(10 + k for k in range(pe.n)), pe.n)
    pe.refused(UNSUPPORTED, "host memory", "atomic", pe.handle, 4, 4, counter, 1, 0, pe.me, ctypes.byref(value))
    pe.barrier()


def streams(pe):
    """Puts, signals, waits and barriers in the order of streams that nobody waits for in between."""
    size = 70_001
    one, two = pe.stream(), pe.stream()
    target, _ = pe.alloc(3 * size)
    signals, _ = pe.alloc(256)
    mine = pe.local(size)
    for turn in range(3):
        pe.store(mine, pattern(pe.me, size, turn))
        small = 1000 + turn
        pe.call("put_on_stream", pe.handle, target, mine, size, pe.next, one)
        pe.call("put_signal_on_stream", pe.handle, target + size, mine, small, signals, turn + 1, 0, pe.next, one)
        pe.call("signal_wait_on_stream", pe.handle, signals, 3, turn + 1, two)
        pe.call("get_on_stream", pe.handle, target + 2 * size, target + size, small, pe.me, two)
        pe.call("barrier_on_stream", pe.team, one)
        pe.call("stream_join", pe.handle, two, one)
        pe.call("quiet_on_stream", pe.handle, two)
        pe.wait(two)
        expect("put on a stream", pe.load(target, size), pattern(pe.before, size, turn))
        expect("put with a signal", pe.load(target + size, small), pattern(pe.before, size, turn)[:small])
        expect("get behind the signal", pe.load(target + 2 * size, small), pattern(pe.before, size, turn)[:small])
        pe.wait(one)
        pe.barrier()
    for target_pe in range(pe.n):
        pe.call("signal_on_stream", pe.handle, signals + 64, 5 + pe.me, 1, target_pe, None)
    pe.call("barrier_on_stream", pe.team, None)
    pe.wait()
    assert struct.unpack("<i", pe.load(signals + 64, 4))[0] == sum(5 + k for k in range(pe.n))
    pe.refused(TIMEOUT, "signal_wait_on_stream", "stream_wait", pe.handle, hang(pe, signals, two), int(0.2e9))
    pe.store(signals, struct.pack("<i", 77))
    pe.wait(two)
    for stream in (one, two):
        pe.call("stream_destroy", pe.handle, stream)


def hang(pe, signals, stream):
    pe.call("signal_wait_on_stream", pe.handle, signals, 0, 77, stream)
    return stream


def integers(data):
    return struct.unpack(f"<{len(data) // 4}i", data)


def collectives(pe):
    """Every kernel against what it should give, on the world and on a team, one after the other on two streams."""
    teams = [(pe.team, list(range(pe.n)))]
    if pe.n > 2:
        out = ctypes.c_uint64()
        pe.call("team_split_strided", pe.team, 0, 2, (pe.n + 1) // 2, FOREVER, ctypes.byref(out))
        if out.value:
            teams.append((out.value, list(range(0, pe.n, 2))))
    streams = [None, pe.stream()]
    for team, members in teams:
        for count in (1, 33, 5000, 40_000):
            one_size(pe, team, members, count, streams)
        index = ctypes.c_int32()
        pe.call("team_index", team, ctypes.byref(index))
        assert index.value >= 0
    pe.barrier()
    at, _ = pe.alloc(64)
    ordinary = pe.local(64)
    what, dtype = _abi.COLLECTIVE, _abi.DTYPE
    pe.refused(-103, "block of this PE alone", "collective_on_stream", pe.team, what["ALL_GATHER"], at, ordinary, 8, 0, 0, -1, None)
    pe.refused(UNSUPPORTED, "float32", "collective_on_stream", pe.team, what["ALL_REDUCE"], at, at, 8, dtype["F64"], SUM, -1, None)
    pe.refused(UNSUPPORTED, "host memory", "collective_on_stream", pe.team, what["GATHER"], at, at, 8, 0, 0, 0, None)
    pe.refused(UNSUPPORTED, "gshmem_collective_on_stream", "all_reduce", pe.team, at, at, 8, dtype["F32"], SUM)
    pe.refused(-103, "over the end", "collective_on_stream", pe.team, what["ALL_REDUCE"], at, at, 65, dtype["I32"], SUM, -1, None)
    pe.barrier()


def one_size(pe, team, members, count, streams):
    n, me = len(members), members.index(pe.me)
    what, i32 = _abi.COLLECTIVE, _abi.DTYPE["I32"]
    value = lambda rank, i: (rank * 100_003 + i * 7 + 1) % 1_000_003  # noqa: E731
    packed = lambda numbers: struct.pack(f"<{len(numbers)}i", *numbers)  # noqa: E731
    all_in, block_in = pe.alloc(4 * n * count, team)
    all_out, block_out = pe.alloc(4 * n * count, team)
    apart = pe.local(4 * n * count)

    def run(kind, source, target, amount, op, root, stream, *want):
        pe.call("collective_on_stream", team, what[kind], source, target, amount, i32, op, root, stream)
        pe.wait(stream)
        expect(f"{kind} of {count} on {n} PEs", pe.load(target, len(want[0])), want[0])

    own = [value(me, i) for i in range(n * count)]
    inputs = [[value(r, i) for i in range(n * count)] for r in range(n)]
    for turn, (op, python) in enumerate(((SUM, sum), (MAX, max), (MIN, min))):
        stream = streams[turn % 2]
        pe.store(all_in, packed(own))
        total = packed([python(column) for column in zip(*(x[:count] for x in inputs))])
        run("ALL_REDUCE", all_in, all_out, count, op, -1, stream, total)
        run("ALL_REDUCE", all_in, all_in, count, op, -1, streams[1], total)
        pe.store(all_in, packed(own))
        part = slice(me * count, (me + 1) * count)
        run("REDUCE_SCATTER", all_in, apart, count, op, -1, stream, packed([python(c) for c in zip(*(x[part] for x in inputs))]))
    pe.store(apart, packed(own))
    run("ALL_GATHER", apart, all_out, 4 * count, 0, -1, streams[1], b"".join(packed(x[:count]) for x in inputs))
    run("ALL_TO_ALL", apart, all_out, 4 * count, 0, -1, streams[0], b"".join(packed(x[me * count : (me + 1) * count]) for x in inputs))
    run("BROADCAST", apart, all_out, 4 * count, 0, n - 1, streams[1], packed(inputs[n - 1][:count]))
    pe.call("collective_on_stream", team, what["BARRIER"], None, None, 0, 0, 0, -1, streams[0])
    pe.wait(streams[0])
    for block in (block_in, block_out):
        pe.call("block_drop", block)


def killed(pe):
    """The last PE is killed while the others wait in a kernel: they are told its number, and go on without it."""
    at, _ = pe.alloc(64)
    mine = pe.local(64)
    waiting = pe.stream()
    pe.barrier()
    if pe.me == pe.n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    if pe.me == 0:
        pe.call("signal_wait_on_stream", pe.handle, at, 0, 77, waiting)
    else:
        pe.call("barrier_on_stream", pe.team, waiting)
    words = pe.refused(PEER_DEAD, f"(PE {pe.n - 1})", "stream_wait", pe.handle, waiting, int(30e9))
    assert time.monotonic() - began < 3, words
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
        time.sleep(0.2)
        pe.world.abort(3)
        return
    pe.call("signal_wait_on_stream", pe.handle, at, 0, 77, waiting)
    began = time.monotonic()
    pe.refused(-304, "abort", "stream_wait", pe.handle, waiting, int(30e9))
    assert time.monotonic() - began < 3


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
        assert 2.0 < took < 2.4, (took, words)
        pe.refused(TIMEOUT, "must not be used", "stream_wait", pe.handle, waiting, int(5e9))
    else:
        time.sleep(2.5)
        assert pe.lib.device_health(pe.handle) == OK  # its own device waited for nobody
    pe.call("stream_destroy", pe.handle, waiting)


def left(pe):
    """A world that ends while a kernel waits: the kernel ends first, then its memory goes."""
    at, _ = pe.alloc(64)
    pe.call("signal_wait_on_stream", pe.handle, at, 0, 77, None)
    began = time.monotonic()
    shmem.finalize()  # SHMEM_TIMEOUT is for peers; a kernel that waits gets seconds
    assert time.monotonic() - began < 8


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
    assert seen[-1][0] <= seen[1][0] and seen[-1][1] <= seen[1][1] + 12, seen  # Go maps a little for itself


def team_of(pe, members, key):
    out = ctypes.c_uint64()
    listed = (ctypes.c_int32 * len(members))(*members)
    pe.call("team_create", pe.handle, listed, len(members), key, int(30e9), ctypes.byref(out))
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


def main():
    pe = PE()
    globals()[sys.argv[1]](pe)
    if sys.argv[1] == "left":
        return
    if sys.argv[1] in ("killed", "aborts"):
        try:
            shmem.finalize(timeout=5)
        except shmem.ShmemError as error:
            print(f"finalize: {error}", file=sys.stderr)
        return
    shmem.finalize()


if __name__ == "__main__":
    main()
