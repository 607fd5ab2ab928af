"""Rules of plain memory and copies. One function per rule: it breaks the rule. See rules.py."""

import ctypes
import mmap
import os

from acl import *  # noqa: F403
from breach import *  # noqa: F403


@case
def malloc_size():
    start()
    refuse("malloc_size", "aclrtMalloc", ctypes.byref(POINTER()), SIZE(0), 0)
    refuse("malloc_size", "aclrtReserveMemAddress", ctypes.byref(POINTER()), SIZE(0), SIZE(0), NULL, U64(0))


@case
def malloc_policy():
    start()
    refuse("malloc_policy", "aclrtMalloc", ctypes.byref(POINTER()), SIZE(64), 8)


@case(memory="64M")
def memory_exhausted():
    start()
    half = malloc(32 * MIB)
    refuse("memory_exhausted", "aclrtMalloc", ctypes.byref(POINTER()), SIZE(33 * MIB), 0)
    refuse("memory_exhausted", "aclrtMallocPhysical", ctypes.byref(POINTER()), SIZE(64 * MIB), ctypes.byref(prop()), U64(0))
    call("aclrtFree", POINTER(half))
    malloc(62 * MIB)


@case
def free_pointer():
    start()
    memory = malloc(4096)
    refuse("free_pointer", "aclrtFree", POINTER(memory + 64))
    call("aclrtFree", POINTER(memory))
    refuse("free_pointer", "aclrtFree", POINTER(memory))
    pinned = out("aclrtMallocHost", SIZE(4096))
    refuse("free_pointer", "aclrtFree", POINTER(pinned))
    refuse("free_pointer", "aclrtFreeHost", POINTER(malloc(64)))


@case
def copy_room():
    start()
    a, b = malloc(64), malloc(64)
    refuse("copy_room", "aclrtMemcpy", POINTER(a), SIZE(63), POINTER(b), SIZE(64), D2D)
    refuse("copy_room", "aclrtMemset", POINTER(a), SIZE(63), 0, SIZE(64))


@case
def copy_unmapped():
    start()
    a, b = malloc(64), malloc(128)
    refuse("copy_unmapped", "aclrtMemcpy", POINTER(a), SIZE(65), POINTER(b), SIZE(65), D2D)
    refuse("copy_unmapped", "aclrtMemcpy", POINTER(a), SIZE(8), POINTER(17 * TIB + 3), SIZE(8), D2D)


@case
def copy_kind():
    start()
    a, b = malloc(64), malloc(64)
    pinned = out("aclrtMallocHost", SIZE(64))
    refuse("copy_kind", "aclrtMemcpyAsync", POINTER(a), SIZE(64), POINTER(b), SIZE(64), H2D, NULL)
    refuse("copy_kind", "aclrtMemcpyAsync", POINTER(a), SIZE(64), POINTER(pinned), SIZE(64), D2D, NULL)
    refuse("copy_kind", "aclrtMemcpyAsync", POINTER(a), SIZE(64), POINTER(b), SIZE(64), 7, NULL)
    copy(a, pinned, 64, D2D)  # the synchronous call ignores the kind


@case(soc=["910B1", "950"])
def copy_peer():
    start(1)
    there = malloc(64)
    call("aclrtSetDevice", 0)
    here = malloc(64)
    refuse("copy_peer", "aclrtMemcpy", POINTER(here), SIZE(64), POINTER(there), SIZE(64), D2D)
    refuse("copy_peer", "aclrtMemcpyAsync", POINTER(here), SIZE(64), POINTER(there), SIZE(64), D2D, NULL)
    call("aclrtDeviceEnablePeerAccess", 1, 0)
    copy(here, there, 64, D2D)


@case
def copy_vmm_sync():
    start()
    call("aclrtDeviceEnablePeerAccess", 1, 0)
    (a, _), (b, _) = mapped(device=0), mapped(device=1)
    refuse("copy_vmm_sync", "aclrtMemcpy", POINTER(a), SIZE(64), POINTER(b), SIZE(64), D2D)
    copy_async(a, b, 64, D2D)
    synchronize()


@case
def copy_ipc():
    start(0)
    mine = malloc(64)
    pinned = out("aclrtMallocHost", SIZE(64))
    with peer(EXPORT_MALLOC, 0, 1) as other:
        theirs = ipc_import(other.get())
        for name, *rest in [("aclrtMemcpy", D2D), ("aclrtMemcpyAsync", DEFAULT, NULL)]:
            refuse("copy_ipc", name, POINTER(mine), SIZE(64), POINTER(theirs), SIZE(64), *rest)
        refuse("copy_ipc", "aclrtMemcpyAsync", POINTER(pinned), SIZE(64), POINTER(theirs), SIZE(64), D2H, NULL)
        copy_async(mine, theirs, 64, D2D)
        synchronize()
        assert read(mine, 64) == bytes(range(64))


@case
def copy_2d():
    start()
    a = malloc(4096)
    refuse("copy_2d", "aclrtMemcpy2d", POINTER(a), SIZE(7), POINTER(a), SIZE(8), SIZE(8), SIZE(2), D2D)


@case
def use_after_free():
    start()
    a, b = malloc(2 * MIB), malloc(2 * MIB)
    handle, release = blocked_stream()
    copy_async(a, b, 64, D2D, handle)
    call("aclrtFree", POINTER(b))
    release()
    refuse("use_after_free", "aclrtSynchronizeStream", POINTER(handle))


@case
def register_twice():
    at = registering()
    call("aclrtHostRegister", POINTER(at), U64(4096), 0, ctypes.byref(POINTER()))
    refuse("register_twice", "aclrtHostRegister", POINTER(at), U64(4096), 0, ctypes.byref(POINTER()))
    call("aclrtHostUnregister", POINTER(at))
    refuse("register_twice", "aclrtHostUnregister", POINTER(at))
    refuse("register_twice", "aclrtHostGetDevicePointer", POINTER(at), ctypes.byref(POINTER()), ctypes.c_uint32(0))
    call("aclrtHostRegisterV2", POINTER(at), U64(4096), ctypes.c_uint32(0x10000000))
    refuse("register_twice", "aclrtHostGetDevicePointer", POINTER(at), ctypes.byref(POINTER()), ctypes.c_uint32(0))
    call("aclrtHostUnregister", POINTER(at))


def registering(cann="9.1.0"):
    """A page of the host's, over a release in which every chip registers some."""
    os.environ["ACLEMU_CANN"] = cann
    start()
    page = mmap.mmap(-1, 8192)
    PAGES.append(page)
    return ctypes.addressof(ctypes.c_char.from_buffer(page))


PAGES = []  # they live as long as the process


@case
def register_page():
    at = registering()
    refuse("register_page", "aclrtHostRegisterV2", POINTER(at + 64), U64(4096), ctypes.c_uint32(2))


@case
def register_flags():
    at = registering()
    refuse("register_flags", "aclrtHostRegister", POINTER(at), U64(4096), 8, ctypes.byref(POINTER()))
    for flag in (0, 1, 8, 0x10000002 | 1 << 30):
        refuse("register_flags", "aclrtHostRegisterV2", POINTER(at), U64(4096), ctypes.c_uint32(flag))
    call("aclrtHostRegisterV2", POINTER(at), U64(4096), ctypes.c_uint32(0x10000002))
    refuse("register_flags", "aclrtHostGetDevicePointer", POINTER(at), ctypes.byref(POINTER()), ctypes.c_uint32(1))


@case(soc=["950"])
def register_chip():
    at = registering("9.0.0")
    refuse("register_chip", "aclrtHostRegisterV2", POINTER(at), U64(4096), ctypes.c_uint32(2))
    refuse("register_chip", "aclrtHostRegister", POINTER(at), U64(4096), 0, ctypes.byref(POINTER()))


@case
def copy_window():
    at = registering()
    call("aclrtHostRegisterV2", POINTER(at), U64(8192), ctypes.c_uint32(0x10000002))
    window = POINTER()
    call("aclrtHostGetDevicePointer", POINTER(at + 4096), ctypes.byref(window), ctypes.c_uint32(0))
    assert window.value != at + 4096
    ours = malloc(64)
    refuse("copy_window", "aclrtMemcpyAsync", POINTER(ours), SIZE(64), window, SIZE(64), D2D, NULL)
    refuse("copy_window", "aclrtMemcpy", window, SIZE(64), POINTER(ours), SIZE(64), D2H)
    call("aclrtMemcpyAsync", POINTER(ours), SIZE(64), POINTER(at), SIZE(64), H2D, NULL)
    synchronize()


@case
def reduce_device():
    start(1)
    there = malloc(64)
    call("aclrtSetDevice", 0)
    refuse("reduce_device", "aclrtReduceAsync", POINTER(malloc(64)), POINTER(there), U64(64), 10, 0, NULL, NULL)


@case
def reduce_type():
    start()
    a = malloc(64)
    refuse("reduce_type", "aclrtReduceAsync", POINTER(a), POINTER(a), U64(64), 10, 9, NULL, NULL)
    refuse("reduce_type", "aclrtReduceAsync", POINTER(a), POINTER(a), U64(64), 9, 0, NULL, NULL)
