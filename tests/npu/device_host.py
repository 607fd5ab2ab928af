"""Cases of device_pe.py about host memory within the device's reach. No torch."""

import ctypes
import os

import shmem
from device_rig import FOREVER, UNSUPPORTED, Failed, expect, pattern
from shmem import _abi


def hosted(pe):
    """Host memory within the device's reach: queued transfers, kernels by both kinds of address, and what ends with the world."""
    size = 70_001
    far, _ = pe.alloc(2 * size, flags=_abi.ZERO)
    signals, _ = pe.alloc(256)
    mine = pe.local(size)
    address = ctypes.c_uint64()
    if not pe.world.info()["device"]["reaches_host"]:
        pe.refused(UNSUPPORTED, "gshmem_device_reach_host", "device_address", pe.handle, far, pe.me, ctypes.byref(address))
    for _ in range(2):
        pe.call("device_reach_host", pe.handle, FOREVER)
    stream = pe.stream()
    pe.store(mine, pattern(pe.me, size))
    pe.call("signal_wait_on_stream", pe.handle, signals, 3, 1, stream)  # the stream stands still
    pe.call("put_on_stream", pe.handle, far + 3, mine, size, pe.next, stream)
    pe.call("get_on_stream", pe.handle, mine, far + 3, size, pe.next, stream)
    assert ctypes.string_at(far, 64) == bytes(64) or pe.n > 1, "it has not waited for its turn"
    pe.call("signal_on_stream", pe.handle, signals, 1, 0, pe.me, None)
    pe.wait(stream)
    pe.barrier()
    expect("put on a stream", ctypes.string_at(far, size + 6), bytes(3) + pattern(pe.before, size) + bytes(3))
    expect("get on a stream", pe.load(mine, size), pattern(pe.me, size))
    pe.call("iput", pe.handle, far + size + 9000, mine, 5, 3, 3, 40, pe.next)  # every third of 40 elements of 3 bytes to every fifth place
    pe.call("iget", pe.handle, mine + 60_000, far + size + 9000, 2, 5, 3, 40, pe.next)
    pe.barrier()
    strided, packed = bytearray(615), bytearray(240)
    for i in range(40):
        strided[i * 15 : i * 15 + 3] = pattern(pe.before, size)[i * 9 : i * 9 + 3]
        packed[i * 6 : i * 6 + 3] = pattern(pe.me, size)[i * 9 : i * 9 + 3]
        packed[i * 6 + 3 : i * 6 + 6] = pattern(pe.me, size)[60_000 + i * 6 + 3 : 60_000 + i * 6 + 6]
    expect("iput", ctypes.string_at(far + size + 9000, 615), bytes(strided))
    expect("iget", pe.load(mine + 60_000, 240), bytes(packed))
    addresses = []
    for peer in range(pe.n):
        pe.call("device_address", pe.handle, far, peer, ctypes.byref(address))
        addresses.append(address.value)
    assert len(set(addresses)) == pe.n and far not in addresses
    by_kernels(pe, far, mine, size, addresses)
    pe.call("stream_destroy", pe.handle, stream)


def by_kernels(pe, far, mine, size, addresses):
    """Kernels of a program: gshmem_k_put and gshmem_k_get by name, through the runtime that is loaded."""
    state = ctypes.c_uint64()
    pe.call("device_state", pe.handle, ctypes.byref(state))
    for symmetric in (far, addresses[pe.me]):  # the CPU's address of what is symmetric, and the device's
        pe.store(mine, pattern(pe.me, size, 5))
        pe.barrier()
        kernel("gshmem_k_put", state.value, symmetric + size, mine, 1001, pe.next)
        pe.barrier()
        expect("put by a kernel", ctypes.string_at(far + size, 1001), pattern(pe.before, size, 5)[:1001])
        kernel("gshmem_k_get", state.value, mine, symmetric + size, 1001, pe.next)
        expect("get by a kernel", pe.load(mine, 1001), pattern(pe.me, size, 5)[:1001])
    kernel("gshmem_k_put", state.value, addresses[pe.me], addresses[pe.me] + size, 500, pe.me)  # what a kernel follows itself
    expect("local side in host memory", ctypes.string_at(far, 500), ctypes.string_at(far + size, 500))
    pe.barrier()


def kernel(name, *arguments):
    """Launches a kernel and waits, as a program of the runtime's does."""
    runtime = ctypes.CDLL("libascendcl.so")

    def check(function, *rest):
        code = getattr(runtime, function)(*rest)
        assert code == 0, f"{function}: {code}"

    binary, function = ctypes.c_void_p(), ctypes.c_void_p()
    check("aclrtSetDevice", shmem.info()["device"]["facts"]["id"])
    check("aclrtBinaryLoadFromFile", os.environ["SHMEM_KERNELS"].encode(), None, ctypes.byref(binary))
    check("aclrtBinaryGetFunction", binary, name.encode(), ctypes.byref(function))
    words = (ctypes.c_uint64 * len(arguments))(*arguments)
    check("aclrtLaunchKernelWithHostArgs", function, 1, None, None, words, ctypes.c_size_t(8 * len(arguments)), None, ctypes.c_size_t(0))
    check("aclrtSynchronizeStream", None)
    check("aclrtBinaryUnLoad", binary)
    check("aclrtResetDevice", shmem.info()["device"]["facts"]["id"])


def put_to_next(pe, far, n):
    """Every PE puts n bytes of its device into the host memory of the next one; they are there when it returns. Gives the source."""
    mine = pe.local(n)
    pe.store(mine, pattern(pe.me, n))
    pe.call("put_on_stream", pe.handle, far, mine, n, pe.next, None)
    pe.wait()
    pe.barrier()
    expect("put", ctypes.string_at(far, n), pattern(pe.before, n))
    return mine


def real():
    """Bytes that are really there of the memory files that this process has open, its own host heap among them."""
    files = {os.stat(f"/proc/self/fd/{fd}")[1:3]: fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
    return sum(os.stat(f"/proc/self/fd/{fd}").st_blocks * 512 for fd in files.values() if "memfd:" in os.readlink(f"/proc/self/fd/{fd}"))


def unhosted(pe):
    """One PE cannot: an error on all, and everything is as it was."""
    kept, _ = pe.alloc(100_001, flags=_abi.ZERO)
    memory = ctypes.create_string_buffer(pattern(pe.me, 100_001), 100_001)
    pe.call("put", pe.handle, kept, ctypes.addressof(memory), 100_001, pe.me)
    pe.barrier()
    before = real()
    said = pe.refused(int(os.environ["EXPECTED"]), os.environ["WORDS"], "device_reach_host", pe.handle, FOREVER)
    assert "device_reach_host" in said, said
    pe.barrier()
    assert real() - before < 1 << 20, f"{real() - before} bytes of 8 MiB stayed"
    assert ctypes.string_at(kept, 100_001) == memory.raw[:100_001]
    far, _ = pe.alloc(70_001, flags=_abi.ZERO)
    put_to_next(pe, far, 70_001)
    runtime = ctypes.CDLL("libascendcl.so")
    assert runtime.aclemu_live(b"registered") == 0
    pe.barrier()


def copied(pe):
    """The steps in which kernels are told fail in turn on one PE."""
    runtime = ctypes.CDLL("libascendcl.so")
    runtime.aclemu_live.restype = ctypes.c_uint64
    for passage in range(1, 20):
        if pe.me == pe.n - 1:
            runtime.aclemu_inject(f"aclrtMemcpyAsync:{passage}:507899".encode())
        try:
            pe.call("device_reach_host", pe.handle, FOREVER)
            break
        except Failed as failed:
            assert failed.status == -404 and "aclrtMemcpyAsync" in str(failed), failed
            assert runtime.aclemu_live(b"registered") == 0
        finally:
            runtime.aclemu_inject(None)
            pe.barrier()
    assert passage == 6, passage  # a table and four words are copied
    hosted(pe)


def unmapped(pe):
    """Nobody's host memory is mapped: kernels reach their own only."""
    pe.call("device_reach_host", pe.handle, FOREVER)
    far, _ = pe.alloc(5000, flags=_abi.ZERO)
    address = ctypes.c_uint64()
    pe.call("device_address", pe.handle, far, pe.me, ctypes.byref(address))
    pe.refused(UNSUPPORTED, "SHMEM_TRANSPORT=tcp", "device_address", pe.handle, far, pe.next, ctypes.byref(address))
    mine = put_to_next(pe, far, 5000)
    state = ctypes.c_uint64()
    pe.call("device_state", pe.handle, ctypes.byref(state))
    kernel("gshmem_k_put", state.value, far + 1, mine, 999, pe.me)
    expect("put by a kernel", ctypes.string_at(far + 1, 999), pattern(pe.me, 5000)[:999])
    pe.barrier()


def partly(pe):
    """The last PE cannot register the first one's memory: it says so, and its transfers there go another way."""
    pe.call("device_reach_host", pe.handle, FOREVER)
    far, _ = pe.alloc(70_001, flags=_abi.ZERO)
    mine = pe.local(70_001)
    pe.store(mine, pattern(pe.me, 70_001))
    address = ctypes.c_uint64()
    for peer in range(pe.n):
        if pe.me == pe.n - 1 and peer == 0:
            pe.refused(UNSUPPORTED, "aclrtHostRegisterV2", "device_address", pe.handle, far, peer, ctypes.byref(address))
            assert "aclrtHostRegisterV2" in pe.world.info()["device"]["host_not_reached"][0]
        else:
            pe.call("device_address", pe.handle, far, peer, ctypes.byref(address))
    pe.call("put_on_stream", pe.handle, far, mine, 70_001, pe.next, None)
    pe.wait()
    pe.barrier()
    expect("put", ctypes.string_at(far, 70_001), pattern(pe.before, 70_001))
    pe.barrier()
