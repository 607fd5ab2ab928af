"""The ACL runtime through ctypes, for the programs that the tests start. Not a test."""

import contextlib
import ctypes
import os
import subprocess
import sys

LIBRARY = ctypes.CDLL("libascendcl.so")
POINTER, SIZE, U64, I32 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int32
MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
H2D, D2H, D2D, DEFAULT = 1, 2, 3, 4
HUGE_FIRST, NORMAL_ONLY = 0, 2
HBM_HUGE, DDR_NORMAL, DDR_P2P_HUGE = 4, 3, 6

LIBRARY.aclGetRecentErrMsg.restype = ctypes.c_char_p
LIBRARY.aclrtGetSocName.restype = ctypes.c_char_p
LIBRARY.aclemu_rule.restype = ctypes.c_char_p
for _counter in ("aclemu_live", "aclemu_live_handles", "aclemu_live_reservations", "aclemu_live_events",
                 "aclemu_live_notifies", "aclemu_calls"):
    getattr(LIBRARY, _counter).restype = U64


class Location(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("type", ctypes.c_uint32)]


class Prop(ctypes.Structure):
    _fields_ = [("handle_type", I32), ("allocation_type", I32), ("attribute", I32), ("location", Location), ("reserve", U64)]


class Access(ctypes.Structure):
    _fields_ = [("flags", I32), ("location", Location), ("reserved", ctypes.c_uint8 * 12)]


class PointerAttributes(ctypes.Structure):
    _fields_ = [("location", Location), ("page", ctypes.c_uint32), ("reserved", ctypes.c_uint32 * 4)]


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", I32), ("value", ctypes.c_uint8 * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("attributes", ctypes.POINTER(LaunchAttribute)), ("count", SIZE)]


class Failed(Exception):
    """A call that did not return 0: the code and the runtime's text."""

    def __init__(self, name, code, text):
        super().__init__(f"{name} returned {code}: {text}")
        self.name, self.code, self.text = name, code, text


def try_call(name, *arguments):
    """Calls an entry point; gives (code, text)."""
    wrapped = [POINTER(a) if isinstance(a, int) and a > 0x7FFFFFFF else a for a in arguments]
    code = getattr(LIBRARY, name)(*wrapped)
    text = LIBRARY.aclGetRecentErrMsg() if code else b""
    return code, (text or b"").decode()


def call(name, *arguments):
    code, text = try_call(name, *arguments)
    if code:
        raise Failed(name, code, text)


def out(name, *arguments, kind=POINTER, last=False):
    """Calls an entry point whose first (or last) parameter receives a value; gives that value."""
    value = kind()
    reference = ctypes.byref(value)
    call(name, *((*arguments, reference) if last else (reference, *arguments)))
    return value.value


def start(device=0):
    call("aclInit", None)
    call("aclrtSetDevice", device)


def prop(device=0, attribute=HBM_HUGE, where=1):
    return Prop(0, 0, attribute, Location(device, where), 0)


def malloc(size, policy=HUGE_FIRST):
    return out("aclrtMalloc", SIZE(size), policy)


def physical(size=2 * MIB, device=0, **options):
    return out("aclrtMallocPhysical", SIZE(size), ctypes.byref(prop(device, **options)), U64(0))


def reserve(size, at=None, flags=0):
    return out("aclrtReserveMemAddress", SIZE(size), SIZE(0), POINTER(at), U64(flags))


def map_memory(address, size, handle):
    call("aclrtMapMem", POINTER(address), SIZE(size), SIZE(0), POINTER(handle), U64(0))


def mapped(size=2 * MIB, device=0, **options):
    """A reservation with its own memory; gives (address, handle)."""
    address, handle = reserve(size), physical(size, device, **options)
    map_memory(address, size, handle)
    return address, handle


def export(handle, flags=1, kind=1):
    """A shareable handle as bytes."""
    buffer = (ctypes.c_uint8 * 128)()
    call("aclrtMemExportToShareableHandleV2", POINTER(handle), U64(flags), kind, buffer)
    return bytes(buffer)


def import_handle(shared, kind=1):
    buffer = (ctypes.c_uint8 * 128)(*shared)
    return out("aclrtMemImportFromShareableHandleV2", buffer, kind, U64(0), last=True)


def copy(to, source, size, kind=DEFAULT, room=None):
    call("aclrtMemcpy", POINTER(to), SIZE(room or size), POINTER(source), SIZE(size), kind)


def copy_async(to, source, size, kind, stream=None):
    call("aclrtMemcpyAsync", POINTER(to), SIZE(size), POINTER(source), SIZE(size), kind, POINTER(stream))


def write(address, data):
    buffer = ctypes.create_string_buffer(bytes(data), len(data))
    copy(address, ctypes.addressof(buffer), len(data), H2D)


def read(address, size):
    buffer = ctypes.create_string_buffer(size)
    copy(ctypes.addressof(buffer), address, size, D2H)
    return buffer.raw


def stream():
    return out("aclrtCreateStream")


def synchronize(handle=None):
    call("aclrtSynchronizeStream", POINTER(handle))


def host_function(work):
    """A callback for aclrtLaunchHostFunc; keep the result alive until it ran."""
    return ctypes.CFUNCTYPE(None, POINTER)(lambda _: work())


@contextlib.contextmanager
def peer(program, *arguments):
    """Another process over the emulator that runs `program`; talk to it by lines."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from acl import *\n" + program, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ,
    )
    try:
        yield Lines(process)
    finally:
        process.kill()
        process.wait()


class Lines:
    def __init__(self, process):
        self.process = process
        self.pid = process.pid

    def get(self):
        line = self.process.stdout.readline()
        assert line, f"the peer ended with {self.process.wait()}"
        return line.strip()

    def put(self, text=""):
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()


def say(*values):
    print(*values, flush=True)
