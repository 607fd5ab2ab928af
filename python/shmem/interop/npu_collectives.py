"""Collectives by kernels of the device, queued on a stream, for tensors on the symmetric heap.

Kernels reach the peers' memory themselves, so the tensor that peers read or write must be symmetric: allocated by all members with
shmem.empty(device="npu") and its kin, at one place. A symmetric tensor given by one member means that all members give theirs;
every other tensor goes through host memory (ops_device.py, _collectives.py). What peers touch:

    all_reduce                          in and out (out of at most 64 KiB may be any)
    broadcast, all_gather, all_to_all   out
    reduce_scatter                      in
"""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import torch

from .. import _abi, _block
from .._call import fail
from .._errors import MismatchError, NotSymmetricError, PoisonedError
from .._lib import library
from . import npu
from .ops_buffers import direct, nbytes, overlaps
from .work import Work, error_of

_C = _abi.COLLECTIVE
_PEERS_TOUCH = {
    _C["ALL_REDUCE"]: (True, True),
    _C["BROADCAST"]: (False, True),
    _C["ALL_GATHER"]: (False, True),
    _C["ALL_TO_ALL"]: (False, True),
    _C["REDUCE_SCATTER"]: (True, False),
}
_REDUCED = frozenset(_abi.DTYPE[name] for name in ("F32", "F16", "BF16", "I32"))
_OPERATORS = frozenset(_abi.REDUCE[name] for name in ("SUM", "PROD", "MIN", "MAX"))
_SMALL = 64 << 10


def fits(world: Any, what: int, inside: Any, outside: Any, dtype: int = 0, operator: int = 0) -> bool:
    """Whether kernels can do this collective where the tensors lie."""
    device = world.device
    if device is None or not device.kernels or what not in _PEERS_TOUCH:
        return False
    if operator and (dtype not in _REDUCED or operator not in _OPERATORS):
        return False
    if inside is not outside and (overlaps(inside, outside) or inside.data_ptr() == outside.data_ptr()):
        return False
    reads, writes = _PEERS_TOUCH[what]
    if what == _C["ALL_REDUCE"] and outside is not inside and nbytes(outside) <= _SMALL:
        writes = False
    return all(_plain(world, tensor, shared) for tensor, shared in ((inside, reads), (outside, writes)))


def _plain(world: Any, tensor: Any, shared: bool) -> bool:
    """Whether a tensor is memory of the world's device in one piece, and where peers touch it, at the same place on every PE."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return False
    if not npu.on_npu(tensor) or tensor.device.index != world.device.index or not direct(tensor) or not tensor.numel():
        return False
    if not shared:
        return True
    try:
        block = _block.find(world, tensor.data_ptr())
    except NotSymmetricError:
        return False
    return block.on_device and block.team is not None and block.team is world.team


def queue(world: Any, team: int, what: int, inside: Any, outside: Any, count: int, dtype: int = 0, operator: int = 0, root: int = 0) -> None:
    """Queues it on the current stream. Collective over the team. Blocks: for torch_npu's queue."""
    stream = world.device.stream()
    status = library().collective_on_stream(team, what, inside.data_ptr(), outside.data_ptr(), count, dtype, operator, root, stream or None)
    if status < 0:
        fail(status, "collective_on_stream")
    world.device.queued(stream)


def numbered(team: int) -> bool:
    """Whether kernels know a team: there is room for 2048 in the device's state."""
    index = ctypes.c_int32(-1)
    return library().team_index(team, ctypes.byref(index)) >= 0 and index.value >= 0


def explained(world: Any, problem: Exception) -> Exception:
    """The error of an operation that went through the host, in the device's words where these tell what members disagreed about."""
    if isinstance(problem, (MismatchError, PoisonedError)) and world.device is not None:
        status = library().device_health(world.handle)
        if status == _abi.STATUS["EMISMATCH"]:
            return error_of(status, problem.operation or "collective")
    return problem


class Lane:
    """The stream of a process group's asynchronous kernels. Threads: any."""

    def __init__(self, world: Any) -> None:
        """Takes a stream of torch_npu's pool."""
        self._world = world
        self._stream = npu.runtime().Stream(device=world.device.index)
        npu.note_stream(self._stream)

    def run(self, sync: bool, tensors: Sequence[torch.Tensor], begin: Any, result: Sequence[torch.Tensor]) -> "KernelWork":
        """Runs `begin` with the stream for it current: the caller's, or one behind it. Gives the Work of what it queued."""
        runtime = npu.runtime()
        current = runtime.current_stream(self._world.device.index)
        npu.note_stream(current)
        stream = current if sync else self._stream
        if not sync:
            stream.wait_stream(current)
            for tensor in tensors:
                if npu.on_npu(tensor) and not self._world.device.is_symmetric(tensor.data_ptr()):
                    npu.bare(tensor)[0].record_stream(stream)  # so that the caching allocator does not hand it out before the kernel is done
        with runtime.stream(stream):
            begin()
            event = runtime.Event()
            event.record(stream)
        return KernelWork(self._world, event, stream, result)


class KernelWork(Work):
    """A collective on a stream. Waiting for it makes the current stream wait, not this thread."""

    path = "kernels"
    _done = True
    _channel: Any = None  # of the group whose operation it is, which may end before the world does

    def __init__(self, world: Any, event: Any, stream: Any, result: Sequence[torch.Tensor]) -> None:
        """Made by a Lane."""
        super().__init__()
        self._world, self._event, self._stream = world, event, stream
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        """Orders the current stream behind the operation; raises when the device's operations, or the group's, are over: a PE died. Blocks: no."""
        status = library().device_health(self._world.handle)
        if status < 0:
            fail(status, "wait")
        if self._channel is not None:
            self._channel.refuse_cut()
        npu.runtime().current_stream(self._world.device.index).wait_event(self._event)
        self._waited = True
        return True

    def is_completed(self) -> bool:
        """Whether the device has done it. Blocks: no."""
        return bool(self._event.query())

    def get_future(self) -> Any:
        """A future of the written tensors, done at once: whoever waits for it has his stream ordered behind the operation."""
        if self._future is None:
            future: torch.futures.Future[Any] = torch.futures.Future(devices=[torch.device(npu.KIND, self._world.device.index)])
            with npu.runtime().stream(self._stream):
                future.set_result(list(self._result))
            self._future = future
        return self._future
