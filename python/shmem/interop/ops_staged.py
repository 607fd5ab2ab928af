"""How an operation of npu tensors goes through host memory, and the messages, which all do.

A synchronous call does so in this thread on the caller's stream; an asynchronous one in the background (work_device.py).
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import torch

from .._errors import ShmemError
from . import npu
from .npu_collectives import explained
from .ops_channel import Channel
from .ops_exchange import Exchanges
from .ops_sync import is_blocking_message
from .stage import Stage
from .work import FinishedWork, Work
from .work_device import Behind, Courier, DeviceWork

_Tensors = List[torch.Tensor]
_Shape = Callable[[Stage, Exchanges], Callable[[], Work]]


class HostSide(Exchanges):
    """The operations on the host tensors of a channel's device operations."""

    def __init__(self, channel: Channel) -> None:
        """Over a channel that asks for no order."""
        self._channel = channel


class StagedExchanges(Exchanges):
    """What DeviceExchanges is made on."""

    _host: Optional[HostSide] = None
    _down: Any = None
    _up: Any = None
    _world: Any

    def _prepare(self, device: torch.device) -> HostSide:
        """The channel's streams, courier and host side, made at the first device operation."""
        channel = self._channel
        if channel.courier is None:
            channel.courier, channel.behind = Courier(channel), Behind(channel)
        if self._host is None:
            self._host = HostSide(channel.behind)
        if self._down is None or self._down.device != device:
            self._down, self._up = npu.runtime().Stream(device=device), npu.runtime().Stream(device=device)
            npu.note_stream(self._down)
            npu.note_stream(self._up)
        return self._host

    def _staged(self, device: torch.device, sync: bool, shape: _Shape, result: Sequence[torch.Tensor]) -> Work:
        """Runs an operation through host memory. `shape` makes the stand-ins and gives what starts the operation on them.

        Collective. Blocks: until done when `sync`, else no.
        """
        channel = self._channel
        channel._check_open()
        host = self._prepare(device)
        channel.sequence += 1
        channel.paths["staged"] = channel.paths.get("staged", 0) + 1
        if sync:
            return self._staged_here(device, shape, host, result)
        runtime = npu.runtime()
        stage = Stage(device, later=True)
        with runtime.device(device):
            self._down.wait_stream(runtime.current_stream(device))
            with runtime.stream(self._down):
                start = shape(stage, host)
                arrival = runtime.Event()
                arrival.record(self._down)
        work = DeviceWork(channel, stage, start, arrival, self._up, result)
        channel.gave(work)
        channel.courier.take(work)
        return work

    def _staged_here(self, device: torch.device, shape: _Shape, host: HostSide, result: Sequence[torch.Tensor]) -> Work:
        with npu.runtime().device(device):
            stage = Stage(device, later=False)
            start = shape(stage, host)
            stage.arrived()
            try:
                inner = start()
                inner.wait()
            except ShmemError as problem:
                raise explained(self._world.world, problem) from None
            stage.home()
        done = FinishedWork()
        done._result = result
        done._source = inner.source_rank()
        return self._channel.gave(done)

    # ---- messages --------------------------------------------------------------------------------------------------------

    def send(self, tensors: _Tensors, dst: int, tag: int = 0) -> Work:
        """Sends a tensor to a rank. Collective: no. Blocks: inside dist.send until it may be reused, else no."""
        device = npu.device_of(tensors)
        if device is None:
            return super().send(tensors, dst, tag)
        self._check_rank(dst, "destination")

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            source = [stage.read(tensors[0])]
            return lambda: host.send(source, dst, tag)

        return self._staged(device, is_blocking_message(), shape, ())

    def recv(self, tensors: _Tensors, src: int, tag: int = 0) -> Work:
        """Receives a tensor from a rank. Collective: no. Blocks: inside dist.recv until it is here, else no."""
        device = npu.device_of(tensors)
        if device is None:
            return super().recv(tensors, src, tag)
        self._check_rank(src, "source")
        return self._receive(device, tensors, lambda host, target: host.recv(target, src, tag), is_blocking_message())

    def recv_anysource(self, tensors: _Tensors, tag: int = 0) -> Work:
        """Receives a tensor from whoever sends first; the Work knows who. Collective: no. Blocks: as recv."""
        device = npu.device_of(tensors)
        if device is None:
            return super().recv_anysource(tensors, tag)
        return self._receive(device, tensors, lambda host, target: host.recv_anysource(target, tag), is_blocking_message())

    recvAnysource = recv_anysource

    def _receive(self, device: torch.device, tensors: _Tensors, begin: Callable[[Exchanges, _Tensors], Work], sync: bool) -> Work:
        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            target = [stage.write(tensors[0])]
            return lambda: begin(host, target)

        return self._staged(device, sync, shape, tensors)

    def batch_isend_irecv(self, kinds: Sequence[str], tensors: _Tensors, ranks: Sequence[int]) -> Work:
        """Several messages at once, as torch_npu asks for them on some chips: "isend" or "irecv", tensor, rank. Blocks: no."""
        works = [self.send([t], rank) if kind == "isend" else self.recv([t], rank) for kind, t, rank in zip(kinds, tensors, ranks)]
        return self._channel.joint(works)
