"""What the emulator does when it is used rightly: programs that test_runtime.py starts. Not a test by itself."""

import ctypes
import os
import sys
import threading
import time

from acl import *  # noqa: F403
from breach import HELD, blocked_stream, kernel
from runtime_peers import *  # noqa: F403

NULL = POINTER(None)


def copies_of_odd_sizes():
    start()
    for n, size in enumerate([1, 3, 63, 64, 511, 4097, 2 * MIB + 5]):
        a, b = malloc(size + 2), malloc(size + 2)
        write(a, pattern(size + 2, n))
        write(b, bytes(size + 2))
        copy(b + 1, a + 1, size, D2D)
        assert read(b, size + 2) == b"\0" + pattern(size + 2, n)[1:-1] + b"\0"
        call("aclrtMemset", POINTER(b + 1), SIZE(size), 0x5A, SIZE(size))
        assert read(b, size + 2) == b"\0" + b"\x5a" * size + b"\0"
    rows = malloc(10 * 16)
    write(rows, pattern(160, 1))
    packed = ctypes.create_string_buffer(30)
    call("aclrtMemcpy2d", packed, SIZE(3), POINTER(rows + 5), SIZE(16), SIZE(3), SIZE(10), D2H)
    assert packed.raw == b"".join(pattern(160, 1)[5 + 16 * i : 8 + 16 * i] for i in range(10))


def new_memory_is_not_zero():
    start()
    assert set(read(malloc(4096), 4096)) == {0xA5}
    assert set(read(mapped()[0], 4096)) == {0xA5}


def host_code_cannot_touch(kind):
    start()
    address = {"malloc": lambda: malloc(4096), "large": lambda: malloc(4 * MIB), "map": lambda: mapped()[0]}[kind]()
    read(address, 8)
    say("touching")
    ctypes.string_at(address, 8)
    say("no fault")


def host_may_touch_host_memory():
    start()
    address, _ = mapped(4 * MIB, attribute=DDR_P2P_HUGE, where=4)
    ctypes.memmove(address, b"written by the host", 19)
    device = malloc(64)
    copy(device, address, 19, H2D)
    assert read(device, 19) == b"written by the host"


def comes(there):
    """Whether work is done though nobody waited: work that is held back is looked at early, work that is not gets its time."""
    end = time.monotonic() + (60 if os.environ.get("ACLEMU_SCHEDULE") == "eager" else 0)
    time.sleep(0.002)
    while not there():
        if time.monotonic() >= end:
            return False
        time.sleep(0.002)
    return True


def unwaited_work_is_late():
    """Without a wait the copy is usually not done yet; after one it always is."""
    start()
    pinned = out("aclrtMallocHost", SIZE(64))
    handle, stale = stream(), 0
    for round_ in range(50):
        device = malloc(64)
        ctypes.memmove(pinned, pattern(64, round_), 64)
        copy_async(device, pinned, 64, H2D, handle)
        stale += not comes(lambda: read(device, 64) == pattern(64, round_))
        synchronize(handle)
        assert read(device, 64) == pattern(64, round_)
        call("aclrtFree", POINTER(device))
    say(stale)


def pinned_source_is_read_late():
    start()
    pinned, device, (handle, release) = out("aclrtMallocHost", SIZE(64)), malloc(64), blocked_stream()
    ctypes.memmove(pinned, b"first " * 10, 60)
    copy_async(device, pinned, 60, H2D, handle)
    ctypes.memmove(pinned, b"second" * 10, 60)
    release()
    synchronize(handle)
    assert read(device, 60) == b"second" * 10
    handle, release = blocked_stream()
    copy_async(device, pinned, 60, 5, handle)  # HOST_TO_BUF_TO_DEVICE copies aside at once
    ctypes.memmove(pinned, b"third " * 10, 60)
    release()
    synchronize(handle)
    assert read(device, 60) == b"second" * 10


def pageable_memory_is_copied_before_the_call_returns():
    start()
    device, source = malloc(64), ctypes.create_string_buffer(b"pageable" * 8, 64)
    copy_async(device, ctypes.addressof(source), 64, H2D, stream())
    source.raw = b"x" * 64
    assert read(device, 64) == b"pageable" * 8


def a_wait_on_one_stream_leaves_others_late():
    """Synchronising A runs what A depends on through events, and no more: B's later work is still held back."""
    start()
    a, b = stream(), stream()
    pinned, x, y = out("aclrtMallocHost", SIZE(64)), malloc(64), malloc(64)
    stale = 0
    for round_ in range(30):
        ctypes.memmove(pinned, pattern(64, round_), 64)
        event = out("aclrtCreateEventExWithFlag", 8)
        copy_async(x, pinned, 64, H2D, b)
        call("aclrtRecordEvent", POINTER(event), POINTER(b))
        copy_async(y, x, 64, D2D, b)
        call("aclrtStreamWaitEvent", POINTER(a), POINTER(event))
        copy_async(pinned, x, 64, D2H, a)
        synchronize(a)
        assert ctypes.string_at(pinned, 64) == pattern(64, round_)
        stale += not comes(lambda: read(y, 64) == pattern(64, round_))
        synchronize(b)
        assert read(y, 64) == pattern(64, round_)
    say(stale)


def order_within_a_stream():
    start()
    seen, handle = [], stream()
    for i in range(200):
        HELD.append(host_function(lambda i=i: seen.append(i)))
        call("aclrtLaunchHostFunc", POINTER(handle), HELD[-1], None)
    synchronize(handle)
    assert seen == list(range(200))
    status = ctypes.c_int()
    call("aclrtStreamQuery", POINTER(handle), ctypes.byref(status))
    assert status.value == 0
    handle, release = blocked_stream()
    call("aclrtStreamQuery", POINTER(handle), ctypes.byref(status))
    assert status.value == 1
    release()


def events():
    start()
    handle, release = blocked_stream()
    event, status = out("aclrtCreateEventWithFlag", 9), ctypes.c_int()
    call("aclrtRecordEvent", POINTER(event), POINTER(handle))
    call("aclrtQueryEventStatus", POINTER(event), ctypes.byref(status))
    assert status.value == 0
    threading.Timer(0.05, release).start()
    call("aclrtSynchronizeEvent", POINTER(event))
    call("aclrtQueryEventStatus", POINTER(event), ctypes.byref(status))
    assert status.value == 1
    second = out("aclrtCreateEventWithFlag", 9)
    HELD.append(host_function(lambda: time.sleep(0.02)))
    call("aclrtLaunchHostFunc", POINTER(handle), HELD[-1], None)
    call("aclrtRecordEvent", POINTER(second), POINTER(handle))
    call("aclrtSynchronizeEvent", POINTER(second))
    ms = ctypes.c_float()
    call("aclrtEventElapsedTime", ctypes.byref(ms), POINTER(event), POINTER(second))
    assert 20 <= ms.value < 100000


def words_on_streams():
    """aclrtValueWait holds a stream until a word is as wanted, by each of the four comparisons."""
    start()
    word, a, b = malloc(64), stream(), stream()
    for flag, before, wanted, after in [(0, 4, 5, 5), (0, 2**64 - 1, 1, 3), (1, 4, 9, 9), (2, 8, 6, 2), (3, 2**64 - 4, 3, 2**64 - 5)]:
        call("aclrtValueWrite", POINTER(word), U64(before), 0, POINTER(b))
        synchronize(b)
        call("aclrtValueWait", POINTER(word), U64(wanted), flag, POINTER(a))
        code, _ = try_call("aclrtSynchronizeStreamWithTimeout", POINTER(a), 30)
        assert code == 507046, (flag, before)
        call("aclrtValueWrite", POINTER(word), U64(after), 0, POINTER(b))
        call("aclrtSynchronizeStreamWithTimeout", POINTER(a), 200000)


def reductions():
    import struct

    start()
    a, b = malloc(64), malloc(64)
    for code, letter, x, y in [(0, "f", 1.5, 2.25), (1, "e", 1.5, -2.25), (2, "b", 100, 27), (6, "h", -300, 7), (3, "i", 10**9, 5)]:
        for kind, expected in [(10, x + y), (11, max(x, y)), (12, min(x, y)), (13, y)]:
            n = 64 // struct.calcsize(letter)
            write(a, struct.pack(f"{n}{letter}", *[x] * n))
            write(b, struct.pack(f"{n}{letter}", *[y] * n))
            call("aclrtReduceAsync", POINTER(a), POINTER(b), U64(64), kind, code, NULL, NULL)
            synchronize()
            assert struct.unpack(f"{n}{letter}", read(a, 64)) == (expected,) * n, (code, kind)


def injected_failures():
    start()
    # ACLEMU_FAIL=aclrtMalloc:2:207001;task:aclrtMemsetAsync:1:507053
    memory = malloc(64)
    code, text = try_call("aclrtMalloc", ctypes.byref(POINTER()), SIZE(64), 0)
    assert code == 207001 and "injected" in text
    malloc(64)
    handle = stream()
    call("aclrtMemsetAsync", POINTER(memory), SIZE(64), 1, SIZE(64), POINTER(handle))
    code, text = try_call("aclrtSynchronizeStream", POINTER(handle))
    assert code == 507053 and "aclrtMemsetAsync" in text, (code, text)
    synchronize(handle)  # a stream goes on after a failure, unless told to stop
    LIBRARY.aclemu_inject(b"aclrtMemcpy:1:507899;aclrtFree:0:207002")
    buffer = ctypes.create_string_buffer(8)
    arguments = (buffer, SIZE(8), POINTER(memory), SIZE(8), D2H)
    assert [try_call("aclrtMemcpy", *arguments)[0] for _ in range(3)] == [507899, 0, 0]
    assert [try_call("aclrtFree", POINTER(memory))[0] for _ in range(3)] == [207002] * 3
    LIBRARY.aclemu_inject(None)
    call("aclrtFree", POINTER(memory))


def streams_stop_on_failure_when_told():
    start()
    memory, handle = malloc(64), stream()
    call("aclrtSetStreamFailureMode", POINTER(handle), U64(1))
    LIBRARY.aclemu_inject(b"task:aclrtMemsetAsync:1:507053")
    for value in (1, 2):
        call("aclrtMemsetAsync", POINTER(memory), SIZE(64), value, SIZE(64), POINTER(handle))
    assert [try_call("aclrtSynchronizeStream", POINTER(handle))[0] for _ in range(2)] == [507053, 507053]
    assert set(read(memory, 64)) == {0xA5}
    call("aclrtDestroyStreamForce", POINTER(handle))


def kernels_run_on_streams():
    start()
    _, add = kernel()
    vector = malloc(8 * 5)
    write(vector, b"".join(i.to_bytes(8, "little") for i in range(5)))
    arguments = (U64 * 3)(0, vector, 5)
    call("aclrtLaunchKernelWithHostArgs", POINTER(add), 3, NULL, NULL, arguments, SIZE(24), NULL, SIZE(0))
    synchronize()
    device_arguments = malloc(24)
    write(device_arguments, bytes(arguments))
    call("aclrtLaunchKernel", POINTER(add), 40, POINTER(device_arguments), SIZE(24), NULL)
    synchronize()
    handle = out("aclrtKernelArgsInit", POINTER(add), last=True)
    for value in (0, vector, 4):
        out("aclrtKernelArgsAppend", POINTER(handle), ctypes.byref(U64(value)), SIZE(8), last=True)
    call("aclrtKernelArgsFinalize", POINTER(handle))
    call("aclrtLaunchKernelWithConfig", POINTER(add), 100, NULL, NULL, POINTER(handle), NULL)
    synchronize()
    assert [int.from_bytes(read(vector + 8 * i, 8), "little") for i in range(5)] == [143, 144, 145, 146, 47]


def kernels_report_what_they_break():
    start()
    _, add = kernel()
    _, broken = kernel(b"emulator_test_break")
    arguments = (U64 * 3)(0, malloc(32), 5)  # one word too many
    for function, expected in [(broken, "kernel.cpp:12: flag 3"), (add, "is not device memory")]:
        call("aclrtLaunchKernelWithHostArgs", POINTER(function), 1, NULL, NULL, arguments, SIZE(24), NULL, SIZE(0))
        code, text = try_call("aclrtSynchronizeStream", NULL)
        assert code == 507035 and expected in text, (code, text)


def kernels_that_never_end_can_be_left():
    start()
    _, spin = kernel(b"emulator_test_spin")
    handle, began = stream(), time.monotonic()
    call("aclrtLaunchKernelWithHostArgs", POINTER(spin), 1, POINTER(handle), NULL, (U64 * 3)(), SIZE(24), NULL, SIZE(0))
    assert try_call("aclrtSynchronizeStreamWithTimeout", POINTER(handle), 100)[0] == 507046
    call("aclrtDestroyStreamForce", POINTER(handle))
    assert time.monotonic() - began < 200
    write(malloc(8), bytes(8))
    call("aclFinalize")


def seeded_order():
    """Two streams race; who wins is the seed's choice."""
    start()
    a, b, winners = stream(), stream(), []
    for _ in range(40):
        first = []
        for name, handle in (("a", a), ("b", b)):
            HELD.append(host_function(lambda name=name: first.append(name)))
            call("aclrtLaunchHostFunc", POINTER(handle), HELD[-1], None)
        while len(first) < 2:
            time.sleep(0.001)
        winners.append(first[0])
    say("".join(winners))


def chips_differ():
    call("aclInit", None)
    values = {}
    for name, attribute in [("cores", 201), ("ub", 204), ("memory", 301), ("arch", 601), ("pod", 405)]:
        values[name] = out("aclrtGetDeviceInfo", 0, attribute, kind=ctypes.c_int64, last=True)
    say(LIBRARY.aclrtGetSocName().decode(), *(f"{k}={v}" for k, v in values.items()))
    start_code, _ = try_call("aclrtSetDevice", 0)
    assert start_code == 0
    can = I32()
    call("aclrtDeviceCanAccessPeer", ctypes.byref(can), 0, 9)
    say(can.value)


def errors_are_told_per_thread():
    start()
    texts = {}

    def fail(name, size):
        call("aclrtSetDevice", 0)
        try:
            call("aclrtMalloc", ctypes.byref(POINTER()), SIZE(size), 77)
        except Failed as error:
            texts[name] = error.text

    threads = [threading.Thread(target=fail, args=(str(i), 64 + i)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(texts) == 4 and all("policy 0x4d" in text and "107018" in text for text in texts.values())
    assert LIBRARY.aclGetRecentErrMsg() is None


def device_zero_is_the_default_when_configured():
    path = sys.argv[2]
    with open(path, "w") as file:
        file.write('{"dump": {}, "defaultDevice": {"default_device": "0"}}')
    call("aclInit", path.encode())
    assert out("aclrtGetDevice", kind=I32) == 0
    stream()


if __name__ == "__main__":
    globals()[sys.argv[1]](*([sys.argv[2]] if sys.argv[1] == "host_code_cannot_touch" else []))
    print("ok")
