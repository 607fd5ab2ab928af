"""One PE of tests/npu/test_device.py through the Ascend names, called as torch_npu's allocator and a C program call them.

python device_face.py ME N FOLDER   PE 0 leaves the unique id in FOLDER. Device memory is never followed here.
"""

import ctypes
import os
import sys
import time

me, n, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
acl = ctypes.CDLL("libascendcl.so", mode=ctypes.RTLD_GLOBAL)
lib = ctypes.CDLL(os.environ["SHMEM_LIBRARY"])
P, U64, I32 = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32
HOST_SIDE, DEVICE_SIDE, SET, ADD, GE, EQ, NE = 0, 1, 0, 1, 3, 0, 1


def declare(result, *names_and_arguments):
    for name, *arguments in names_and_arguments:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


declare(P, ("aclshmem_malloc", U64), ("aclshmemx_malloc", U64, I32), ("aclshmem_calloc", U64, U64), ("aclshmem_ptr", P, I32), ("aclshmemx_get_heap_base", I32))
declare(None, ("aclshmem_free", P), ("aclshmemx_free", P, I32), ("aclshmem_putmem", P, P, U64, I32), ("aclshmem_getmem", P, P, U64, I32),
        ("aclshmemx_putmem_on_stream", P, P, U64, I32, P), ("aclshmemx_getmem_on_stream", P, P, U64, I32, P), ("aclshmemx_quiet_on_stream", P),
        ("aclshmemx_barrier_all_on_stream", P), ("aclshmemx_signal_op_on_stream", P, I32, I32, I32, P),
        ("aclshmemx_signal_wait_until_on_stream", P, I32, I32, P), ("aclshmemx_putmem_signal", P, P, U64, P, I32, I32, I32), ("aclshmem_barrier_all",),
        ("aclshmem_int32_p", P, I32, I32), ("aclshmem_signal_wait_until", P, I32, I32), ("aclshmem_int32_wait_until", P, I32, I32),
        ("aclshmem_int32_wait_until_any", P, U64, P, I32, I32, P), ("aclshmem_int32_test", P, I32, I32, P), ("aclshmem_quiet",) if hasattr(lib, "aclshmem_quiet") else ("aclshmem_barrier_all",))
declare(I32, ("aclshmem_int32_g", P, I32), ("aclshmem_cpu_last_status",), ("aclshmemx_init_attr", I32, P), ("aclshmemx_get_uniqueid", P), ("aclshmem_finalize",),
        ("aclshmemx_set_attr_uniqueid_args", I32, I32, ctypes.c_int64, P, P), ("aclshmemx_set_conf_store_tls", ctypes.c_bool, P, ctypes.c_uint32))
acl.aclrtMemcpy.argtypes = [P, ctypes.c_size_t, P, ctypes.c_size_t, ctypes.c_int]


def check(what, status):
    assert status == 0, f"{what} gave {status}: {lib.aclshmem_cpu_last_status()}"


def good(what):
    status = lib.aclshmem_cpu_last_status()
    lib.gshmem_last_error.restype = ctypes.c_char_p
    assert status == 0, f"{what}: {status} {lib.gshmem_last_error().decode()}"


def upload(at, data):
    check("aclrtMemcpy", acl.aclrtMemcpy(at, len(data), data, len(data), 1))


def download(at, size):
    memory = ctypes.create_string_buffer(size)
    check("aclrtMemcpy", acl.aclrtMemcpy(memory, size, at, size, 2))
    return memory.raw


def pattern(pe, size):
    return bytes((pe * 37 + i * 11 + (i >> 8) + 1) & 0xFF for i in range(size))


def join():
    """Comes up by the calls of torch_npu's allocator, in its order and with its sizes."""
    check("set_conf_store_tls", lib.aclshmemx_set_conf_store_tls(False, None, 0))
    uid = ctypes.create_string_buffer(136)
    path = os.path.join(folder, "uid")
    if me == 0:
        check("get_uniqueid", lib.aclshmemx_get_uniqueid(uid))
        with open(path + ".new", "wb") as file:
            file.write(uid.raw)
        os.rename(path + ".new", path)
    until = time.monotonic() + 240
    while not os.path.exists(path):
        assert time.monotonic() < until, "no unique id"
        time.sleep(0.01)
    with open(path, "rb") as file:
        uid = ctypes.create_string_buffer(file.read(), 136)
    attr = (ctypes.c_uint8 * 120)()
    options = (ctypes.c_int32 * 6)((1 << 16) + 24, 1, 120, 120, 120, 0)  # as its constructor leaves them
    ctypes.memmove(ctypes.addressof(attr) + 80, options, 24)
    check("set_attr_uniqueid_args", lib.aclshmemx_set_attr_uniqueid_args(me, n, 64 << 20, uid, attr))
    check("init_attr", lib.aclshmemx_init_attr(8, attr))


def moves(stream):
    """Puts and gets between peers' buffers, by the host and on the caller's stream."""
    size, next_pe, before = 50_001, (me + 1) % n, (me - 1) % n
    buffer = lib.aclshmem_malloc(3 * size)
    assert buffer and buffer >= lib.aclshmemx_get_heap_base(DEVICE_SIDE)
    assert download(buffer, size) == bytes(size), "new memory is zero"
    peers = [lib.aclshmem_ptr(buffer, pe) for pe in range(n)]
    assert all(peers) and len(set(peers)) == n and peers[me] == buffer, peers
    upload(buffer, pattern(me, size))
    lib.aclshmemx_barrier_all_on_stream(stream)
    lib.aclshmemx_putmem_on_stream(buffer + size, buffer, size, next_pe, stream)  # the caller's own buffer as the target
    lib.aclshmemx_barrier_all_on_stream(stream)
    lib.aclshmemx_getmem_on_stream(buffer + 2 * size, buffer + size, size, next_pe, stream)
    lib.aclshmemx_quiet_on_stream(stream)
    check("synchronize", acl.aclrtSynchronizeStream(stream))
    good("on a stream")
    assert download(buffer + size, size) == pattern(before, size)
    assert download(buffer + 2 * size, size) == pattern(me, size)
    lib.aclshmem_barrier_all()
    host = ctypes.create_string_buffer(pattern(me + 50, size), size)
    lib.aclshmem_putmem(buffer, host, size, next_pe)
    lib.aclshmem_barrier_all()
    back = ctypes.create_string_buffer(size)
    lib.aclshmem_getmem(back, buffer, size, me)
    good("put and get by the host")
    assert back.raw == pattern(before + 50, size)
    lib.aclshmem_barrier_all()
    lib.aclshmem_free(buffer)
    good("free")


def signals(stream):
    """Signals and waits for words on the device, by the host and on a stream."""
    next_pe, before = (me + 1) % n, (me - 1) % n
    words = lib.aclshmem_calloc(64, 4)
    data = lib.aclshmem_malloc(4096)
    host = ctypes.create_string_buffer(pattern(me, 4096), 4096)
    lib.aclshmemx_putmem_signal(data, host, 4096, words, 7 + me, SET, next_pe)
    lib.aclshmem_signal_wait_until(words, EQ, 7 + before)
    assert download(data, 4096) == pattern(before, 4096)
    lib.aclshmemx_signal_op_on_stream(words + 4, 5, ADD, next_pe, stream)
    lib.aclshmemx_signal_op_on_stream(words + 4, 6, ADD, next_pe, stream)
    lib.aclshmemx_signal_wait_until_on_stream(words + 4, GE, 11, stream)
    check("synchronize", acl.aclrtSynchronizeStream(stream))
    assert lib.aclshmem_int32_g(words + 4, me) == 11
    lib.aclshmem_int32_p(words + 20, 99 + me, next_pe)
    lib.aclshmem_int32_wait_until(words + 20, NE, 0)
    which, yes = ctypes.c_size_t(), ctypes.c_int()
    lib.aclshmem_int32_wait_until_any(words + 8, 8, None, NE, 0, ctypes.byref(which))
    lib.aclshmem_int32_test(words + 20, EQ, 99 + before, ctypes.byref(yes))
    good("signals")
    assert (which.value, yes.value) == (3, 1)
    lib.aclshmem_barrier_all()
    lib.aclshmem_free(data)
    lib.aclshmem_free(words)


def sides():
    """The host side is ordinary memory beside the device side, of the same instance."""
    host = lib.aclshmemx_malloc(4096, HOST_SIDE)
    device = lib.aclshmemx_malloc(4096, DEVICE_SIDE)
    ctypes.memmove(host, pattern(me, 4096), 4096)
    lib.aclshmem_barrier_all()
    lib.aclshmem_putmem(device, host, 4096, (me + 1) % n)  # host memory to a peer's device
    lib.aclshmem_barrier_all()
    lib.aclshmem_putmem(host, device, 2048, (me + 1) % n)  # device memory to a peer's host side
    lib.aclshmem_barrier_all()
    good("both sides")
    acl.aclrtGetSocName.restype, acl.aclemu_live.restype = ctypes.c_char_p, U64
    registers = not acl.aclrtGetSocName().startswith(b"Ascend950")  # not on the emulated release
    assert acl.aclemu_live(b"registered") == (n if registers else 0), "kernels reach the host side of every PE"
    assert ctypes.string_at(host, 4096) == pattern((me - 2) % n, 4096)[:2048] + pattern(me, 4096)[2048:]
    lib.aclshmemx_free(host, HOST_SIDE)
    lib.aclshmemx_free(device, DEVICE_SIDE)
    good("free on both sides")


def main():
    check("aclInit", acl.aclInit(None))
    check("aclrtSetDevice", acl.aclrtSetDevice(me))
    stream = P()
    check("aclrtCreateStream", acl.aclrtCreateStream(ctypes.byref(stream)))
    join()
    moves(stream)
    signals(stream)
    sides()
    if sys.argv[4:] == ["early"]:  # as a framework does at exit that does not know of us
        check("destroy", acl.aclrtDestroyStream(stream))
        check("reset", acl.aclrtResetDevice(me))
        check("finalize", lib.aclshmem_finalize())
        check("aclFinalize", acl.aclFinalize())
        return
    check("finalize", lib.aclshmem_finalize())
    left = {kind: acl.aclemu_live(kind.encode()) for kind in ("malloc", "map", "ipc", "pinned", "registered")}
    left.update({what: getattr(acl, f"aclemu_live_{what}")() for what in ("handles", "reservations", "events", "notifies")})
    assert not any(left.values()), left
    check("destroy", acl.aclrtDestroyStream(stream))  # the runtime is still ours to use
    check("reset", acl.aclrtResetDevice(me))
    check("aclFinalize", acl.aclFinalize())


main()
