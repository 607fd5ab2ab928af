"""Rules of memory that travels to other processes, notifies and kernels. One function per rule: it breaks the rule. See rules.py."""

import ctypes
import os

from acl import *  # noqa: F403
from breach import *  # noqa: F403


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
