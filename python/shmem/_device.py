"""A world's device as Python sees it: which one, the streams in use, and one-sided calls in the order of the current stream.

torch_npu is asked only when the program has imported it. What a call of this package starts on device memory comes after
everything that the program has put on torch.npu.current_stream() before, and before what it puts there later: no synchronize is
needed on this side. Streams beside the current one are the program's to order, as with every torch operator.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Callable, Optional, Set

from . import _abi, _call
from ._far import FAR
from ._lib import library

_SYMMETRIC, _OTHER = _abi.MEMORY["MEMORY_DEVICE"], _abi.MEMORY["MEMORY_ON_DEVICE"]


class Device:
    """One device of this process in the service of a world. Threads: any."""

    def __init__(self, handle: int, facts: Any) -> None:
        """Made when the world is up, from what gshmem_info says of the device."""
        self.handle = handle
        self._pid = os.getpid()
        self.index = int(facts["id"])
        self.kernels = bool(self._state())
        self.heap_bytes = self.scratch_bytes = 0  # of the symmetric heap, and what a process group may take of it
        self._used: Set[int] = set()

    def _state(self) -> int:
        out = ctypes.c_uint64()
        return out.value if library().device_state(self.handle, ctypes.byref(out)) >= 0 else 0

    def stream(self) -> int:
        """The current stream of torch_npu with all that was called before on it; 0, the library's own, without torch_npu."""
        if "torch_npu" not in sys.modules or os.getpid() != self._pid:  # a forked child: torch would fail before our own words
            return 0
        return int(sys.modules["torch"].npu.current_stream(self.index).npu_stream)  # reading it empties torch_npu's queue

    def queued(self, stream: int) -> None:
        """Notes that work of ours is on a stream: quiet, barriers and finalize wait for it."""
        self._used.add(stream)

    def settle(self, operation: str, timeout: Optional[float] = None) -> None:
        """Waits for the current stream and for every stream with work of ours. Raises what became of that work. Blocks."""
        streams, self._used = self._used | {self.stream()}, set()
        for stream in streams:
            _call.start(library().stream_wait_start, (self.handle, stream or None, _call.timeout_ns(timeout)), 0, operation)

    def finish(self, operation: str) -> None:
        """Waits for what the host started on the device, which runs on the library's own stream. Blocks."""
        _call.start(library().stream_wait_start, (self.handle, None, _abi.DEFAULT_TIMEOUT), 0, operation)

    def synchronize(self) -> None:
        """Waits for everything on the device, before memory that it may use changes hands. Blocks."""
        if "torch_npu" in sys.modules and os.getpid() == self._pid:
            sys.modules["torch"].npu.synchronize(self.index)

    def is_symmetric(self, address: Any) -> bool:
        """Whether an address is in the symmetric heap on the device."""
        return self._kind(address) == _SYMMETRIC

    def holds(self, address: Any) -> bool:
        """Whether an address is memory of the device, symmetric or not."""
        return self._kind(address) in (_SYMMETRIC, _OTHER)

    def _kind(self, address: Any) -> int:
        kind = ctypes.c_int32()
        return kind.value if library().kind_of(self.handle, address, ctypes.byref(kind)) >= 0 else 0


class DeviceCalls:
    """The one-sided functions of gshmem.h for a world with a device, in the order of the current stream.

    put and get between device memory are queued there; everything else waits for the stream first, in slices that Ctrl-C can leave,
    and is done on return.
    """

    def __init__(self, device: Device) -> None:
        """Serves the world of a device."""
        self._device = device

    def put(self, handle: Any, dst: Any, src: Any, nbytes: int, pe: int) -> int:
        """gshmem_put_on_stream between device memory, else gshmem_put. Blocks: with host memory on a side."""
        return self._move("put", dst, src, handle, dst, src, nbytes, pe)

    put_nbi = put

    def get(self, handle: Any, dst: Any, src: Any, nbytes: int, pe: int) -> int:
        """gshmem_get_on_stream between device memory, else gshmem_get. Blocks: with host memory on a side."""
        return self._move("get", src, dst, handle, dst, src, nbytes, pe)

    get_nbi = get

    def _move(self, name: str, symmetric: Any, local: Any, *arguments: Any) -> int:
        """Either of them: symmetric is the side of the PE, local the other."""
        device = self._device
        if not (device.is_symmetric(symmetric) and device.holds(local)):
            device.settle(name)
            return int(getattr(FAR, name)(*arguments))
        stream = device.stream()
        status = int(getattr(library(), name + "_on_stream")(*arguments, stream or None))
        device.queued(stream)
        return status

    def __getattr__(self, name: str) -> Callable[..., int]:
        """The other functions, each after the current stream."""
        function = getattr(FAR, name)

        def settled(*arguments: Any) -> int:
            self._device.settle(name)
            status = int(function(*arguments))
            self._device.finish(name)
            return status

        setattr(self, name, settled)
        return settled


def find(handle: int, told: Any) -> Optional[Device]:
    """The Device of a world, None without one that torch could have tensors on."""
    device = told.get("device") or {}
    if device.get("kind") != "npu" or device.get("state") != "up":
        return None
    found = Device(handle, device["facts"])
    found.heap_bytes = int(device["heap"]["bytes"])
    found.scratch_bytes = int(device.get("group_scratch", 0))
    return found
