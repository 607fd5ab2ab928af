"""Memory, notifies and events shared between processes: programs for test_runtime.py. Not a test by itself."""

import ctypes
import os
import time

from acl import *  # noqa: F403
from breach import EXPORT_MALLOC, EXPORT_VMM, EventHandle, blocked_stream, ipc_import

NULL = POINTER(None)


def pattern(size, seed):
    return bytes((seed * 31 + i * 7 + (i >> 8)) & 255 for i in range(size))


def peers_share_mapped_memory():
    start(0)
    with peer(EXPORT_VMM, 0, 1, 1) as other:
        shared = bytes.fromhex(other.get())
        address = reserve(2 * MIB)
        map_memory(address, 2 * MIB, import_handle(shared))
        assert read(address, 256) == bytes(range(256))
        assert int.from_bytes(shared[8:], "little") == 0  # DEFAULT handles are 64 bits


def fabric_handles_need_no_peer_access():
    start(0)
    with peer(EXPORT_VMM, 1, 1, 2) as other:
        address = reserve(2 * MIB)
        map_memory(address, 2 * MIB, import_handle(bytes.fromhex(other.get()), kind=2))
        assert read(address, 256) == bytes(range(256))


WRITER = """
start(int(sys.argv[1]))
call("aclrtDeviceEnablePeerAccess", 0, 0)
shared = bytes.fromhex(input())
address = reserve(2 * MIB)
map_memory(address, 2 * MIB, import_handle(shared))
write(address + 7, b"from the peer")
handle = stream()
call("aclrtValueWrite", POINTER(address + 64), U64(77), 0, POINTER(handle))
synchronize(handle)
say("done", hex(address))
input()
"""


def a_peer_writes_and_signals():
    start(0)
    address, handle = mapped()
    write(address, bytes(128))
    call("aclrtValueWait", POINTER(address + 64), U64(77), 1, NULL)
    with peer(WRITER, 1) as other:
        other.put(export(handle).hex())
        call("aclrtSynchronizeStreamWithTimeout", NULL, 200000)
        assert read(address + 7, 13) == b"from the peer"
        done, there = other.get().split()
        assert int(there, 16) != address, "processes must not hand out the same addresses"


def pid_lists_let_the_named_in():
    start(0)
    memory, (_, handle) = malloc(4 * MIB), mapped()
    write(memory, pattern(64, 3))
    program = """
start(0)
say(os.getpid())
key = input()
memory = out("aclrtIpcMemImportByKey", key.encode(), U64(1))
mine = malloc(64)
copy_async(mine, memory, 64, D2D)
synchronize()
say(read(mine, 64).hex())
import_handle(bytes.fromhex(input()))
say("imported")
"""
    with peer(program) as other:
        pids = (I32 * 1)(int(other.get()))
        key = ctypes.create_string_buffer(65)
        call("aclrtIpcMemGetExportKey", POINTER(memory), SIZE(4 * MIB), key, SIZE(65), U64(0))
        call("aclrtIpcMemSetImportPid", key, pids, SIZE(1))
        other.put(key.value.decode())
        assert other.get() == pattern(64, 3).hex()
        shared = export(handle, flags=0)
        call("aclrtMemSetPidToShareableHandleV2", (ctypes.c_uint8 * 128)(*shared), 1, pids, SIZE(1))
        other.put(shared.hex())
        assert other.get() == "imported"


def notifies_and_events_cross_processes():
    start(0)
    notify, event, handle = out("aclrtCreateNotify", U64(0)), out("aclrtCreateEventWithFlag", 0x40), EventHandle()
    key = ctypes.create_string_buffer(65)
    call("aclrtNotifyGetExportKey", POINTER(notify), key, SIZE(65), U64(2))
    call("aclrtIpcGetEventHandle", POINTER(event), ctypes.byref(handle))
    program = """
class EventHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]
start(1)
notify = out("aclrtNotifyImportByKey", input().encode(), U64(2))
event = out("aclrtIpcOpenEventHandle", EventHandle(input().encode()), last=True)
call("aclrtStreamWaitEvent", POINTER(None), POINTER(event))
code, _ = try_call("aclrtSynchronizeStreamWithTimeout", POINTER(None), 50)
say(code)
synchronize()
call("aclrtRecordNotify", POINTER(notify), POINTER(None))
synchronize()
say("recorded")
"""
    blocked, release = blocked_stream()
    call("aclrtRecordEvent", POINTER(event), POINTER(blocked))
    with peer(program) as other:
        other.put(key.value.decode())
        other.put(handle.reserved.decode())
        assert other.get() == "507046"
        call("aclrtWaitAndResetNotify", POINTER(notify), NULL, 0)
        release()
        call("aclrtSynchronizeStreamWithTimeout", NULL, 200000)
        assert other.get() == "recorded"
        call("aclrtWaitAndResetNotify", POINTER(notify), NULL, 0)  # the first wait has reset it
        assert try_call("aclrtSynchronizeStreamWithTimeout", NULL, 50)[0] == 507046


def a_killed_peer_leaves_its_memory_mapped():
    start(0)
    with peer(EXPORT_VMM, 0, 1, 1) as other:
        address = reserve(2 * MIB)
        map_memory(address, 2 * MIB, import_handle(bytes.fromhex(other.get())))
        other.process.kill()
        other.process.wait()
        assert read(address, 256) == bytes(range(256))


def nothing_grows():
    start()
    with peer(EXPORT_VMM, 0, 1, 1) as vmm, peer(EXPORT_MALLOC, 0, 1) as ipc:
        shared, key = bytes.fromhex(vmm.get()), ipc.get()

        def one_round():
            memory, pinned, handle = malloc(4 * MIB), out("aclrtMallocHost", SIZE(64)), stream()
            address, own = mapped()
            imported, there = import_handle(shared), reserve(2 * MIB)
            map_memory(there, 2 * MIB, imported)
            ipc_import(key)
            event, notify = out("aclrtCreateEvent"), out("aclrtCreateNotify", U64(0))
            copy_async(memory, address, 64, D2D, handle)
            call("aclrtRecordEvent", POINTER(event), POINTER(handle))
            synchronize(handle)
            call("aclrtIpcMemClose", key.encode())
            for at in (address, there):
                call("aclrtUnmapMem", POINTER(at))
                call("aclrtReleaseMemAddress", POINTER(at))
            for physical_handle in (own, imported):
                call("aclrtFreePhysical", POINTER(physical_handle))
            for name, value in [("aclrtDestroyEvent", event), ("aclrtDestroyNotify", notify), ("aclrtFree", memory),
                                ("aclrtFreeHost", pinned), ("aclrtDestroyStream", handle)]:
                call(name, POINTER(value))

        def held():
            counts = [LIBRARY.aclemu_live(kind) for kind in (b"malloc", b"map", b"ipc", b"pinned")]
            counts += [LIBRARY.aclemu_live_handles(), LIBRARY.aclemu_live_reservations(), LIBRARY.aclemu_live_events(),
                       LIBRARY.aclemu_live_notifies(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))]
            with open("/proc/self/maps") as maps:
                return [*counts, sum("acl-emulator" in line for line in maps)]

        one_round()
        first = held()
        for _ in range(20):
            one_round()
        end = time.monotonic() + 60
        while held() != first and time.monotonic() < end:
            time.sleep(0.01)  # a thread is listed for a moment after it was joined
        assert held() == first, (first, held())
        assert out("aclrtGetMemInfo", 1, ctypes.byref(SIZE()), kind=SIZE, last=True)
