"""What the programs of tests/npu/test_device.py share: a PE and its device, in the words of gshmem.h. No torch."""

import ctypes
import os
import time

import shmem
from shmem import _abi
from shmem._lib import Options, library

OK, UNSUPPORTED, TIMEOUT, STALE, POISONED, PEER_DEAD, PEER_LEFT = 0, -105, -106, -201, -202, -301, -303
SUM, PROD, MIN, MAX = 1, 2, 3, 4
FOREVER = -1


class Failed(Exception):
    """A call of the library failed."""

    def __init__(self, status, words):
        super().__init__(f"{status}: {words}")
        self.status = status


class PE:
    """This PE and its device, in the words of gshmem.h."""

    def __init__(self):
        self.world = shmem.init()
        self.me, self.n = self.world.rank, self.world.size
        self.handle, self.team = self.world.handle, self.world.team.handle
        self.next, self.before = (self.me + 1) % self.n, (self.me - 1) % self.n
        self.lib = library()
        self.path = os.environ["SHMEM_RENDEZVOUS"].removeprefix("file:")

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status < 0:
            raise Failed(status, f"{name}: {self.lib.last_error().decode()}")
        return status

    def lib_options(self, me):
        options = Options()
        options.size, options.me, options.n = ctypes.sizeof(Options), me, self.n
        options.method, options.endpoint = b"file", os.environ["SHMEM_RENDEZVOUS"].removeprefix("file:").encode() + b".second"
        return options

    def refused(self, status, words, name, *arguments):
        try:
            self.call(name, *arguments)
        except Failed as failed:
            assert failed.status == status and words in str(failed), failed
            return str(failed)
        raise AssertionError(f"{name} was not refused")

    def alloc(self, size, team=None, flags=_abi.ZERO | _abi.ON_DEVICE):
        block, address = ctypes.c_uint64(), ctypes.c_void_p()
        self.call("alloc", team or self.team, size, 0, flags, FOREVER, ctypes.byref(block), ctypes.byref(address))
        return address.value, block.value

    def local(self, size, flags=_abi.ZERO | _abi.ON_DEVICE):
        block, address = ctypes.c_uint64(), ctypes.c_void_p()
        self.call("alloc_local", self.handle, size, 0, flags, ctypes.byref(block), ctypes.byref(address))
        return address.value

    def store(self, at, data, pe=None):
        memory = ctypes.create_string_buffer(bytes(data), len(data))
        self.call("put", self.handle, at, ctypes.addressof(memory), len(data), self.me if pe is None else pe)

    def load(self, at, size, pe=None):
        memory = ctypes.create_string_buffer(size)
        self.call("get", self.handle, ctypes.addressof(memory), at, size, self.me if pe is None else pe)
        return memory.raw

    def stream(self):
        out = ctypes.c_void_p()
        self.call("stream_create", self.handle, ctypes.byref(out))
        return out.value

    def wait(self, stream=None, timeout=240.0):
        self.call("stream_wait", self.handle, stream, int(timeout * 1e9))

    def tell(self, what):
        """Says through a file that this PE is there: no call of the library, so that nobody's waiting or death is disturbed."""
        open(f"{self.path}.{what}.{self.me}", "w").close()

    def told(self, what, pes):
        """Waits until PEs have told."""
        until = time.monotonic() + 240
        while not all(os.path.exists(f"{self.path}.{what}.{pe}") for pe in pes):
            assert time.monotonic() < until, f"nobody told {what}"
            time.sleep(0.005)

    def barrier(self):
        self.call("barrier", self.team)


def pattern(pe, size, salt=0):
    return bytes((pe * 37 + i * 11 + (i >> 8) + salt + 1) & 0xFF for i in range(size))


def expect(what, got, want):
    if got != want:
        i = next(k for k in range(len(want)) if got[k] != want[k])
        raise AssertionError(f"{what}: byte {i} of {len(want)} is {got[i]}, not {want[i]}")
