"""What the programs that break rules share: the register of cases, and `refuse`. Not a test."""

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


class EventHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


# The library that stands in for the kernels is made by the test and named by ACLEMU_KERNELS.


def kernel(name=b"emulator_test_add"):
    data = ctypes.create_string_buffer(b"binary")
    binary = out("aclrtBinaryLoadFromData", data, SIZE(6), NULL, last=True)
    return binary, out("aclrtBinaryGetFunction", POINTER(binary), name, last=True)
