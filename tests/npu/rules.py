"""One function per rule of the emulator: it breaks the rule, and must be refused with the rule's code and name.

Run as `python rules.py RULE` over the emulator; test_rules.py does so for each. Not a test by itself.
"""

import contextlib
import ctypes
import os
import sys

from acl import *  # noqa: F403

CASES = {}


def case(function=None, *, soc=None, **settings):
    """Registers a case under its function's name; soc and settings say under what it runs (default: all chips)."""
    if function is None:
        return lambda f: case(f, soc=soc, **settings)
    CASES[function.__name__] = (function, soc, settings)
    return function


def refuse(rule, *arguments):
    """Calls an entry point that must be refused by `rule`."""
    code, text = try_call(*arguments)
    assert f"[{rule}]" in text, f"{arguments[0]}: expected rule {rule}, got {code}: {text}"
    assert code == RULES[rule], (code, RULES[rule])
    return text


def rules():
    found, i = {}, 0
    while line := LIBRARY.aclemu_rule(i):
        name, code = line.decode().split()
        found[name], i = int(code), i + 1
    return found


RULES = rules()
NULL = POINTER(None)
HELD = []  # callbacks that must stay alive


def blocked_stream():
    """A stream whose first task waits until `release` is called; gives (stream, release)."""
    import threading

    gate, handle = threading.Event(), stream()
    HELD.append(host_function(gate.wait))
    call("aclrtLaunchHostFunc", POINTER(handle), HELD[-1], None)
    return handle, gate.set


# Process, device, thread


@case
def init_first():
    refuse("init_first", "aclrtSetDevice", 0)


@case
def init_twice():
    call("aclInit", None)
    refuse("init_twice", "aclInit", None)
    call("aclrtSetDevice", 0)  # the code may be ignored


@case
def finalize_twice():
    start()
    call("aclFinalize")
    refuse("finalize_twice", "aclFinalize")


@case
def forked_child():
    start()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            refuse("forked_child", "aclrtSetDevice", 0)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@case(devices=3)
def device_id():
    call("aclInit", None)
    for bad in (3, -1):
        refuse("device_id", "aclrtSetDevice", bad)
    start_ok = try_call("aclrtSetDevice", 2)
    assert start_ok[0] == 0


@case
def set_device_first():
    import threading

    call("aclInit", None)
    refuse("set_device_first", "aclrtCreateStream", ctypes.byref(POINTER()))
    call("aclrtSetDevice", 0)
    seen = []

    def other_thread():
        try:
            refuse("set_device_first", "aclrtCreateStream", ctypes.byref(POINTER()))
            context = out("aclrtCreateContext", 0)
            call("aclrtSetCurrentContext", POINTER(context))
            stream()
            seen.append(True)
        except Exception as error:
            seen.append(error)

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert seen == [True], seen


@case
def reset_unset():
    start()
    refuse("reset_unset", "aclrtResetDevice", 1)
    call("aclrtSetDevice", 0)
    call("aclrtResetDevice", 0)
    stream()  # one of two references is left
    call("aclrtResetDevice", 0)
    refuse("set_device_first", "aclrtCreateStream", ctypes.byref(POINTER()))


@case
def peer_self():
    start(1)
    refuse("peer_self", "aclrtDeviceEnablePeerAccess", 1, 0)
    refuse("peer_self", "aclrtDeviceCanAccessPeer", ctypes.byref(I32()), 1, 1)


@case
def peer_flags():
    start()
    refuse("peer_flags", "aclrtDeviceEnablePeerAccess", 1, 1)


@case
def context_handle():
    start()
    refuse("context_handle", "aclrtSetCurrentContext", POINTER(0x1234))
    refuse("context_handle", "aclrtDestroyContext", POINTER(out("aclrtGetCurrentContext")))


@case
def null_out():
    start()
    refuse("null_out", "aclrtMalloc", NULL, SIZE(64), 0)
    refuse("null_out", "aclrtMemcpy", NULL, SIZE(8), NULL, SIZE(8), H2D)


# Streams, events, host functions


@case
def stream_handle():
    start()
    gone = stream()
    call("aclrtDestroyStream", POINTER(gone))
    refuse("stream_handle", "aclrtSynchronizeStream", POINTER(gone))
    refuse("stream_handle", "aclrtDestroyStream", NULL)


@case
def stream_context():
    start(0)
    of_zero = stream()
    call("aclrtSetDevice", 1)
    refuse("stream_context", "aclrtSynchronizeStream", POINTER(of_zero))


@case
def stream_timeout():
    start()
    handle, release = blocked_stream()
    refuse("stream_timeout", "aclrtSynchronizeStreamWithTimeout", POINTER(handle), 20)
    refuse("stream_timeout", "aclrtSynchronizeDeviceWithTimeout", 20)
    release()
    call("aclrtSynchronizeStreamWithTimeout", POINTER(handle), 20000)


@case
def stream_flag():
    start()
    refuse("stream_flag", "aclrtCreateStreamWithConfig", ctypes.byref(POINTER()), 0, 0x40)
    refuse("stream_flag", "aclrtSetStreamFailureMode", POINTER(stream()), U64(2))


@case
def event_handle():
    start()
    event = out("aclrtCreateEvent")
    call("aclrtDestroyEvent", POINTER(event))
    refuse("event_handle", "aclrtRecordEvent", POINTER(event), NULL)


@case
def event_flag():
    start()
    refuse("event_flag", "aclrtCreateEventWithFlag", ctypes.byref(POINTER()), 0x80)
    refuse("event_flag", "aclrtCreateEventWithFlag", ctypes.byref(POINTER()), 0x48)


@case
def event_timeout():
    start()
    handle, release = blocked_stream()
    event = out("aclrtCreateEvent")
    call("aclrtRecordEvent", POINTER(event), POINTER(handle))
    refuse("event_timeout", "aclrtSynchronizeEventWithTimeout", POINTER(event), 20)
    release()
    call("aclrtSynchronizeEvent", POINTER(event))


@case
def event_reset():
    start()
    event = out("aclrtCreateEventExWithFlag", 8)
    refuse("event_reset", "aclrtResetEvent", POINTER(event), NULL)


@case
def event_time():
    start()
    events = [out("aclrtCreateEventWithFlag", flag) for flag in (8, 8, 1)]
    refuse("event_time", "aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), *map(POINTER, events[:2]))
    for event in events:
        call("aclrtRecordEvent", POINTER(event), NULL)
    synchronize()
    refuse("event_time", "aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), *map(POINTER, events[1:]))
    call("aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), *map(POINTER, events[:2]))


@case
def event_not_ipc():
    start()
    refuse("event_not_ipc", "aclrtIpcGetEventHandle", POINTER(out("aclrtCreateEvent")), ctypes.create_string_buffer(64))


class EventHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


@case
def event_same_process():
    start()
    event, handle = out("aclrtCreateEventWithFlag", 0x40), EventHandle()
    call("aclrtIpcGetEventHandle", POINTER(event), ctypes.byref(handle))
    refuse("event_same_process", "aclrtIpcOpenEventHandle", handle, ctypes.byref(POINTER()))


@case
def host_func():
    start()
    refuse("host_func", "aclrtLaunchHostFunc", NULL, NULL, NULL)


@case
def value_align():
    start()
    word = malloc(64)
    refuse("value_align", "aclrtValueWrite", POINTER(word + 4), U64(1), 0, NULL)
    pinned = out("aclrtMallocHost", SIZE(64))
    refuse("value_align", "aclrtValueWait", POINTER(pinned), U64(1), 0, NULL)


@case
def value_flag():
    start()
    word = malloc(64)
    refuse("value_flag", "aclrtValueWait", POINTER(word), U64(1), 4, NULL)
    refuse("value_flag", "aclrtValueWrite", POINTER(word), U64(1), 1, NULL)


@case
def wait_timeout():
    start()
    notify = out("aclrtCreateNotify", U64(0))
    call("aclrtWaitAndResetNotify", POINTER(notify), NULL, 1)
    refuse("wait_timeout", "aclrtSynchronizeStream", NULL)


# Plain memory and copies


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


EXPORT_MALLOC = """
start(int(sys.argv[1]))
memory = malloc(4 * MIB)
write(memory, bytes(range(256)))
key = ctypes.create_string_buffer(65)
call("aclrtIpcMemGetExportKey", POINTER(memory), SIZE(4 * MIB), key, SIZE(65), U64(int(sys.argv[2])))
say(key.value.decode())
input()
"""


def ipc_import(key, flags=1):
    return out("aclrtIpcMemImportByKey", key.encode(), U64(flags))


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
    start()
    memory = ctypes.create_string_buffer(4096)
    at = ctypes.addressof(memory)
    call("aclrtHostRegister", POINTER(at), U64(4096), 0, ctypes.byref(POINTER()))
    refuse("register_twice", "aclrtHostRegister", POINTER(at), U64(4096), 0, ctypes.byref(POINTER()))
    call("aclrtHostUnregister", POINTER(at))
    refuse("register_twice", "aclrtHostUnregister", POINTER(at))


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


# Virtual memory


def refuse_reserve(rule, size=2 * MIB, alignment=0, at=None, flags=0):
    return refuse(rule, "aclrtReserveMemAddress", ctypes.byref(POINTER()), SIZE(size), SIZE(alignment), POINTER(at), U64(flags))


def refuse_map(rule, address, size, handle, offset=0, flags=0):
    return refuse(rule, "aclrtMapMem", POINTER(address), SIZE(size), SIZE(offset), POINTER(handle), U64(flags))


@case
def reserve_align():
    start()
    refuse_reserve("reserve_align", alignment=4096)


@case
def reserve_flags():
    start()
    refuse_reserve("reserve_flags", flags=2)
    reserve(2 * MIB, flags=1)


@case(soc=["910B1", "910_93"])
def reserve_expected():
    start()
    refuse_reserve("reserve_expected", at=15 * TIB)
    refuse_reserve("reserve_expected", size=4 * MIB, at=20 * TIB + 2 * MIB)
    refuse_reserve("reserve_expected", size=3 * GIB, at=20 * TIB + 512 * MIB)
    assert reserve(3 * GIB, at=20 * TIB + GIB) == 20 * TIB + GIB


@case(soc=["950"])
def reserve_chosen():
    start()
    refuse_reserve("reserve_chosen", at=20 * TIB)


@case(soc=["910B1", "910_93"])
def reserve_taken():
    start()
    reserve(2 * GIB, at=20 * TIB)
    refuse_reserve("reserve_taken", size=GIB, at=20 * TIB + GIB)


@case
def release_pointer():
    start()
    address = reserve(4 * MIB)
    refuse("release_pointer", "aclrtReleaseMemAddress", POINTER(address + 2 * MIB))
    call("aclrtReleaseMemAddress", POINTER(address))
    refuse("release_pointer", "aclrtReleaseMemAddress", POINTER(address))


@case
def release_mapped():
    start()
    address, _ = mapped()
    refuse("release_mapped", "aclrtReleaseMemAddress", POINTER(address))
    call("aclrtUnmapMem", POINTER(address))
    call("aclrtReleaseMemAddress", POINTER(address))


def refuse_physical(rule, size=2 * MIB, flags=0, **fields):
    wanted = prop(**{k: v for k, v in fields.items() if k in ("device", "attribute", "where")})
    for name in ("handle_type", "allocation_type", "reserve"):
        setattr(wanted, name, fields.get(name, 0))
    return refuse(rule, "aclrtMallocPhysical", ctypes.byref(POINTER()), SIZE(size), ctypes.byref(wanted), U64(flags))


@case
def physical_flags():
    start()
    refuse_physical("physical_flags", flags=1)


@case
def physical_size():
    start()
    refuse_physical("physical_size", size=2 * MIB + 4096)
    refuse_physical("physical_size", size=0)
    refuse_physical("physical_size", size=512 * MIB, attribute=10)


@case
def physical_prop():
    start()
    refuse_physical("physical_prop", handle_type=1)
    refuse_physical("physical_prop", allocation_type=1)
    refuse_physical("physical_prop", reserve=7)
    refuse_physical("physical_prop", device=99)
    refuse_physical("physical_prop", where=2)


@case
def physical_attr():
    start()
    refuse_physical("physical_attr", attribute=18)
    refuse_physical("physical_attr", attribute=DDR_NORMAL)
    refuse_physical("physical_attr", attribute=HBM_HUGE, where=0)
    soc = LIBRARY.aclrtGetSocName().decode()
    if "950" in soc:
        refuse_physical("physical_attr", size=GIB, attribute=14)
    if "_93" not in soc:
        refuse_physical("physical_attr", size=GIB, attribute=17)


@case
def physical_handle():
    start()
    handle = physical()
    call("aclrtFreePhysical", POINTER(handle))
    refuse("physical_handle", "aclrtFreePhysical", POINTER(handle))
    refuse_map("physical_handle", reserve(2 * MIB), 2 * MIB, handle)


@case
def map_size():
    start()
    refuse_map("map_size", reserve(8 * MIB), 2 * MIB, physical(4 * MIB))


@case
def map_offset():
    start()
    address, handle = reserve(4 * MIB), physical(2 * MIB)
    refuse_map("map_offset", address, 2 * MIB, handle, offset=4096)
    refuse_map("map_offset", address, 2 * MIB, handle, flags=1)


@case
def map_align():
    start()
    refuse_map("map_align", reserve(8 * MIB) + 4096, 2 * MIB, physical(2 * MIB))


@case
def map_reservation():
    start()
    address, handle = reserve(4 * MIB), physical(4 * MIB)
    refuse_map("map_reservation", address + 2 * MIB, 4 * MIB, handle)
    map_memory(address, 4 * MIB, handle)
    refuse_map("map_reservation", address + 2 * MIB, 2 * MIB, physical(2 * MIB))


EXPORT_VMM = """
start(int(sys.argv[1]))
address, handle = mapped(2 * MIB, device=int(sys.argv[1]))
write(address, bytes(range(256)))
say(export(handle, flags=int(sys.argv[2]), kind=int(sys.argv[3])).hex())
for line in sys.stdin:
    if line.strip() == "free":
        call("aclrtUnmapMem", POINTER(address))
        call("aclrtFreePhysical", POINTER(handle))
        say("freed")
"""


@case
def map_mixed():
    start()
    address = reserve(8 * MIB)
    map_memory(address, 2 * MIB, physical(2 * MIB, device=0))
    refuse_map("map_mixed", address + 2 * MIB, 2 * MIB, physical(2 * MIB, device=1))
    with peer(EXPORT_VMM, 0, 1, 1) as other:
        imported = import_handle(bytes.fromhex(other.get()))
        refuse_map("map_mixed", address + 2 * MIB, 2 * MIB, imported)


@case
def map_peer():
    start(0)
    with peer(EXPORT_VMM, 1, 1, 1) as other:
        imported = import_handle(bytes.fromhex(other.get()))
        address = reserve(2 * MIB)
        refuse_map("map_peer", address, 2 * MIB, imported)
        call("aclrtDeviceEnablePeerAccess", 1, 0)
        map_memory(address, 2 * MIB, imported)
        assert read(address, 256) == bytes(range(256))


@case
def unmap_pointer():
    start()
    address, _ = mapped(4 * MIB)
    refuse("unmap_pointer", "aclrtUnmapMem", POINTER(address + 2 * MIB))
    call("aclrtUnmapMem", POINTER(address))
    refuse("unmap_pointer", "aclrtUnmapMem", POINTER(address))


@case
def access_range():
    start()
    address, _ = mapped(4 * MIB, attribute=DDR_P2P_HUGE, where=4)
    good = Access(3, Location(0, 1))
    for size, access, count in [(2 * MIB, good, 1), (4 * MIB, Access(1, Location(0, 1)), 1), (4 * MIB, good, 2)]:
        refuse("access_range", "aclrtMemSetAccess", POINTER(address), SIZE(size), ctypes.byref(access), SIZE(count))
    call("aclrtMemSetAccess", POINTER(address), SIZE(4 * MIB), ctypes.byref(good), SIZE(1))


def refuse_export(rule, handle, flags=1, kind=1):
    return refuse(rule, "aclrtMemExportToShareableHandleV2", POINTER(handle), U64(flags), kind, (ctypes.c_uint8 * 128)())


@case
def export_twice():
    start()
    handle = physical()
    export(handle)
    refuse_export("export_twice", handle)


@case
def export_flags():
    start()
    handle = physical()
    refuse_export("export_flags", handle, flags=2)
    refuse("export_flags", "aclrtMemExportToShareableHandle", POINTER(handle), 0, U64(1), ctypes.byref(U64()))


@case(soc=["910B1", "950"])
def export_fabric():
    start()
    refuse_export("export_fabric", physical(), kind=2)


@case
def export_imported():
    start()
    with peer(EXPORT_VMM, 0, 1, 1) as other:
        refuse_export("export_imported", import_handle(bytes.fromhex(other.get())))


def refuse_import(rule, shared, kind=1):
    buffer = (ctypes.c_uint8 * 128)(*shared)
    return refuse(rule, "aclrtMemImportFromShareableHandleV2", buffer, kind, U64(0), ctypes.byref(POINTER()))


@case
def import_own():
    start()
    refuse_import("import_own", export(physical()))


@case
def import_dead():
    start()
    with peer(EXPORT_VMM, 0, 1, 1) as other:
        shared = bytes.fromhex(other.get())
        address = reserve(2 * MIB)
        map_memory(address, 2 * MIB, import_handle(shared))
        other.put("free")
        assert other.get() == "freed"
        refuse_import("import_dead", shared)
        other.process.kill()
        other.process.wait()
        refuse_import("import_dead", shared)
        assert read(address, 256) == bytes(range(256))  # what is mapped stays


@case
def import_pid():
    start()
    with peer(EXPORT_VMM, 0, 0, 1) as other:
        refuse_import("import_pid", bytes.fromhex(other.get()))
    with peer(EXPORT_MALLOC, 0, 0) as other:
        refuse("import_pid", "aclrtIpcMemImportByKey", ctypes.byref(POINTER()), other.get().encode(), U64(1))


@case
def share_handle():
    start()
    pids = (I32 * 1)(os.getpid())
    refuse("share_handle", "aclrtMemSetPidToShareableHandle", U64(12345), pids, SIZE(1))
    refuse_export("share_handle", physical(), kind=3)


# IPC memory


def refuse_key(rule, address, size, length=65, flags=1):
    key = ctypes.create_string_buffer(65)
    return refuse(rule, "aclrtIpcMemGetExportKey", POINTER(address), SIZE(size), key, SIZE(length), U64(flags))


@case
def ipc_pointer():
    start()
    memory = malloc(4 * MIB)
    refuse_key("ipc_pointer", memory, 4 * MIB + 1)
    refuse_key("ipc_pointer", mapped()[0], 64)


@case
def ipc_align():
    start()
    refuse_key("ipc_align", malloc(4096), 4096)
    refuse_key("ipc_align", malloc(4 * MIB) + 4096, 4096)
    small_pages = malloc(4 * MIB, NORMAL_ONLY)
    key = ctypes.create_string_buffer(65)
    call("aclrtIpcMemGetExportKey", POINTER(small_pages + 4096), SIZE(4096), key, SIZE(65), U64(0))


@case
def ipc_key():
    start()
    refuse_key("ipc_key", malloc(4 * MIB), 4 * MIB, length=64)
    refuse("ipc_key", "aclrtIpcMemImportByKey", ctypes.byref(POINTER()), b"nonsense", U64(0))
    refuse("ipc_key", "aclrtIpcMemSetImportPid", b"1:2:3:4:5", (I32 * 1)(1), SIZE(1))


@case
def ipc_flags():
    start()
    refuse_key("ipc_flags", malloc(4 * MIB), 4 * MIB, flags=2)
    refuse("ipc_flags", "aclrtIpcMemImportByKey", ctypes.byref(POINTER()), b"1:2:3:4:5", U64(2))


@case
def ipc_peer():
    start(0)
    with peer(EXPORT_MALLOC, 1, 1) as other:
        key = other.get()
        refuse("ipc_peer", "aclrtIpcMemImportByKey", ctypes.byref(POINTER()), key.encode(), U64(0))
        call("aclrtDeviceEnablePeerAccess", 1, 0)
        ipc_import(key, flags=0)


@case
def ipc_closed():
    start()
    with peer(EXPORT_MALLOC, 0, 1) as other:
        key = other.get()
        ipc_import(key)
        call("aclrtIpcMemClose", key.encode())
        refuse("ipc_closed", "aclrtIpcMemClose", key.encode())


@case(soc=["910B1", "950"])
def ipc_link():
    start()
    refuse("ipc_link", "aclrtIpcMemSetAttr", b"1:2:3:4:5", 0, U64(0))


# Notify


@case
def notify_handle():
    start()
    notify = out("aclrtCreateNotify", U64(0))
    call("aclrtDestroyNotify", POINTER(notify))
    refuse("notify_handle", "aclrtRecordNotify", POINTER(notify), NULL)


@case
def notify_flags():
    start()
    refuse("notify_flags", "aclrtCreateNotify", ctypes.byref(POINTER()), U64(2))


@case
def notify_limit():
    start()
    limit = 65535 if "950" in LIBRARY.aclrtGetSocName().decode() else 8192
    for _ in range(limit):
        last = out("aclrtCreateNotify", U64(0))
    refuse("notify_limit", "aclrtCreateNotify", ctypes.byref(POINTER()), U64(0))
    call("aclrtDestroyNotify", POINTER(last))
    out("aclrtCreateNotify", U64(0))


# Kernels: the library that stands in for the kernels is made by the test and named by ACLEMU_KERNELS.


def kernel(name=b"emulator_test_add"):
    data = ctypes.create_string_buffer(b"binary")
    binary = out("aclrtBinaryLoadFromData", data, SIZE(6), NULL, last=True)
    return binary, out("aclrtBinaryGetFunction", POINTER(binary), name, last=True)


def refuse_launch(rule, function, blocks=1, size=24, config=None):
    arguments = (U64 * 8)()
    return refuse(rule, "aclrtLaunchKernelWithHostArgs", POINTER(function), blocks, NULL, config, arguments, SIZE(size), NULL, SIZE(0))


@case
def binary_load():
    start()
    for path in (b"relative.o", b"/nowhere/kernel.o"):
        refuse("binary_load", "aclrtBinaryLoadFromFile", path, NULL, ctypes.byref(POINTER()))


@case(kernels=True)
def binary_handle():
    start()
    binary, function = kernel()
    call("aclrtBinaryUnLoad", POINTER(binary))
    refuse("binary_handle", "aclrtBinaryUnLoad", POINTER(binary))
    refuse_launch("binary_handle", function)


@case(kernels=True)
def kernel_name():
    start()
    binary, _ = kernel()
    refuse("kernel_name", "aclrtBinaryGetFunction", POINTER(binary), b"no_such_kernel", ctypes.byref(POINTER()))


@case(kernels=True)
def kernel_blocks():
    start()
    _, function = kernel()
    refuse_launch("kernel_blocks", function, blocks=0)
    batch = LaunchAttribute(1)
    batch.value[0] = 1
    refuse_launch("kernel_blocks", function, blocks=65, config=ctypes.byref(LaunchConfig(ctypes.pointer(batch), 1)))


@case(kernels=True)
def kernel_args():
    start()
    _, function = kernel()
    refuse_launch("kernel_args", function, size=16)
    arguments = out("aclrtKernelArgsInit", POINTER(function), last=True)
    refuse("kernel_args", "aclrtLaunchKernelWithConfig", POINTER(function), 1, NULL, NULL, POINTER(arguments), NULL)
    host = (U64 * 3)()
    refuse("kernel_args", "aclrtLaunchKernel", POINTER(function), 1, host, SIZE(24), NULL)


if __name__ == "__main__":
    CASES[sys.argv[1]][0]()
    print("ok")
