"""One PE of tests/npu/test_device.py: cases over the C interface of the library and a device, by name. No torch.

python device_pe.py CASE   exits 0 when all was right, and says what was wrong otherwise. Those about ends are in device_life.py,
those about host memory within the device's reach in device_host.py.
"""

import ctypes
import struct
import sys

import device_host
import device_life
import shmem
from device_rig import FOREVER, MAX, MIN, PE, SUM, TIMEOUT, UNSUPPORTED, expect, pattern
from shmem import _abi


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
    wide = ("put_signal", pe.handle, counter + 32, ctypes.addressof(source), 8, counter + 8, 1000 + pe.me, 1, pe.next)  # add to 8 bytes
    if pe.world.info()["device"]["facts"]["atomics"]:
        pe.call(*wide)
        pe.call(*wide)
        pe.barrier()
        assert struct.unpack("<Q", pe.load(counter + 8, 8))[0] == 2 * (1000 + pe.before)
    else:
        pe.refused(UNSUPPORTED, "words of 4 bytes", *wide)
        pe.barrier()
        assert pe.load(counter + 8, 32) == bytes(32), "nothing moved"
    fetching(pe)


def fetching(pe):
    """Atomics with old values: all PEs at one word of PE 0, in 4 and 8 bytes; refused by name where the chip has none."""
    at, _ = pe.alloc(256)
    old = ctypes.c_uint64(99)

    def atomic(op, width, target, operand=0, compare=0, to=0):
        pe.call("atomic", pe.handle, op, width, target, operand, compare, to, ctypes.byref(old))
        return old.value

    if not pe.world.info()["device"]["facts"]["atomics"]:
        for op in (3, 4, 5, 6, 7, 8, 9):
            said = pe.refused(UNSUPPORTED, "symmetric host memory", "atomic", pe.handle, op, 4, at, 1, 0, pe.me, ctypes.byref(old))
            assert "950" in said and "Ascend910" in said, said
        pe.refused(UNSUPPORTED, "950", "atomic", pe.handle, 7, 4, at, 1, 0, pe.me, None)  # bits have no other form
        assert old.value == 99
        pe.barrier()
        assert pe.load(at, 256) == bytes(256), "nothing was changed"
        return pe.barrier()
    for width, top in ((4, 1 << 31), (8, 1 << 63)):
        word = [at + 128 * (width == 8) + width * i for i in range(8)]
        seen = [atomic(5, width, word[0], top + 3) for _ in range(4)]  # add, four times each
        assert all((later - earlier) % (2 * top) >= top + 3 or pe.n > 1 for earlier, later in zip(seen, seen[1:])), seen
        atomic(6, width, word[1])  # inc
        won = atomic(4, width, word[2], pe.me + 7, 0) == 0  # compare and swap: one finds the zero
        swapped = atomic(3, width, word[3], pe.me + 1)
        assert swapped != pe.me + 1 and swapped <= pe.n, swapped
        atomic(8, width, word[4], 1 << pe.me)
        atomic(9, width, word[5], 5 << pe.me)
        atomic(1, width, word[6] + 0, 40 + pe.me, to=pe.me)  # a set that wants the old value
        assert old.value == 0
        assert atomic(2, width, word[6], to=pe.me) == 40 + pe.me
        pe.call("atomic", pe.handle, 5, width, word[0], top + 3, 0, 0, None)  # without the old value: the same kind of atomic
        pe.barrier()
        form = f"<8{'I' if width == 4 else 'Q'}"
        got = struct.unpack(form, pe.load(word[0], 8 * width, 0))
        bits = 0
        for k in range(pe.n):
            bits ^= 5 << k
        assert got[0] == 5 * pe.n * (top + 3) % (2 * top) and got[1] == pe.n, got
        assert got[2] - 7 in range(pe.n) and won == (got[2] == pe.me + 7), got
        assert got[3] in range(1, pe.n + 1) and got[4] == (1 << pe.n) - 1 and got[5] == bits, got
        pe.barrier()
        assert atomic(7, width, word[4], ~1 & (2 * top - 1)) & ~1 == (1 << pe.n) - 2
        pe.barrier()
        assert struct.unpack(form, pe.load(word[0], 8 * width, 0))[4] == (1 << pe.n) - 2
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


def main():
    pe = PE()
    case = getattr(device_life, sys.argv[1], None) or getattr(device_host, sys.argv[1], None) or globals()[sys.argv[1]]
    case(pe)
    if sys.argv[1] == "left":
        return
    if sys.argv[1] in ("killed", "aborts"):
        try:
            shmem.finalize(timeout=60)
        except shmem.ShmemError as error:
            print(f"finalize: {error}", file=sys.stderr)
        return
    shmem.finalize()


if __name__ == "__main__":
    main()
