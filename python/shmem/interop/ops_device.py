"""The collectives of torch.distributed for npu tensors, beside those for cpu tensors.

What kernels do goes through the group's scratch on the device (ops_kernels.py). Everything else goes through host memory (stage.py):
every dtype and operator that cpu tensors have. A synchronous call does so in this thread on the caller's stream; an asynchronous one
in the background (work_device.py). Operations of cpu tensors wait until those before them have started: the order of the calls is the
order on the team, whatever the device.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import torch

from .._errors import UnsupportedError
from . import npu
from . import npu_collectives as kernels
from . import ops_channel as codes
from . import ops_types as types
from .ops_buffers import nbytes
from .ops_exchange import Exchanges
from .ops_kernels import Kernels
from .ops_staged import StagedExchanges
from .ops_sync import is_sync
from .stage import Stage
from .work import FinishedWork, Work

_Tensors = List[torch.Tensor]
_HOST_CODES = {
    "reduce_scatter_single": codes.REDUCE_SCATTER,
    "reduce_scatter_single_coalesced": codes.REDUCE_SCATTER,
    "all_gather_single": codes.ALL_GATHER,
    "all_gather_single_coalesced": codes.ALL_GATHER,
}


class DeviceExchanges(StagedExchanges):
    """Mixed into the process group and the backend of programs that have torch_npu."""

    _lane: Any = None
    _numbered: Optional[bool] = None
    _kernels: Optional[Kernels] = None
    _world: Any

    def _by_device(self) -> Kernels:
        """The group's operations by kernels."""
        if self._kernels is None:
            self._kernels = Kernels(self._world.world, self._channel)
        return self._kernels

    def _by_kernels(
        self, what: int, inside: torch.Tensor, outside: torch.Tensor, count: int, sync: bool, *, dtype: int = 0, operator: int = 0, root: int = 0
    ) -> Optional[Work]:
        """Queues a collective in place, in a group whose members promise to give their symmetric tensors together; None elsewhere."""
        world, channel = self._world.world, self._channel
        if not channel.in_place or not kernels.fits(world, what, inside, outside, dtype, operator):
            return None
        channel._check_open()
        if self._numbered is None:
            self._numbered = kernels.numbered(channel.team)
        if not self._numbered:
            return None
        channel.sequence += 1
        channel.paths["kernels"] = channel.paths.get("kernels", 0) + 1

        def begin() -> None:
            kernels.queue(world, channel.team, what, inside, outside, count, dtype, operator, root)

        self._lane = self._lane or kernels.Lane(world)
        return channel.gave(self._lane.run(sync, (inside, outside), begin, (outside,)))

    def _reduced_by_kernels(self, what: int, inside: torch.Tensor, outside: torch.Tensor, opts: Any, sync: bool) -> Optional[Work]:
        """The same for a reduction; `opts` has torch's operator."""
        if not self._channel.in_place or self._world.world.device is None or inside.dtype is not outside.dtype:
            return None
        found = types.known_codes(inside.dtype, int(opts.reduceOp.op) if opts is not None else 0)
        if found is None:
            return None
        return self._by_kernels(what, inside, outside, outside.numel(), sync, dtype=found[0], operator=found[1])

    # ---- reductions ------------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: _Tensors, opts: Any = None) -> Work:
        """Reduces a tensor over the group, in place. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of(tensors)
        if device is None:
            self._channel.keep_order()
            self._by_device().staged(codes.ALL_REDUCE, tensors, opts)
            return super().allreduce(tensors, opts)
        if any(tensor.layout is not torch.strided for tensor in tensors):
            return self._allreduce_sparse_device(tensors, opts)
        if len(tensors) == 1:
            work = self._reduced_by_kernels(codes.ALL_REDUCE, tensors[0], tensors[0], opts, is_sync(opts))
            if work is not None:
                return work
        work = self._by_device().all_reduce(tensors, opts, is_sync(opts))
        if work is not None:
            return work

        self._by_device().staged(codes.ALL_REDUCE, tensors, opts)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            hosts = [stage.update(tensor) for tensor in tensors]
            return lambda: host.allreduce(hosts, opts)

        return self._staged(device, is_sync(opts), shape, tensors)

    def _allreduce_sparse_device(self, tensors: _Tensors, opts: Any) -> Work:
        """Sparse tensors change their size: their host copies are made and taken home by torch."""
        if len(tensors) != 1:
            raise UnsupportedError("all_reduce: several sparse npu tensors in one call; reduce them one by one")
        tensor, host = tensors[0], tensors[0].detach().cpu()
        self._channel.keep_order()
        super().allreduce([host], opts).wait()
        with torch.no_grad():
            tensor.copy_(host.to(tensor.device))
        done = FinishedWork()
        done._result = tensors
        return self._channel.gave(done)

    def allreduce_coalesced(self, tensors: _Tensors, opts: Any = None) -> Work:
        """Reduces several tensors, in place. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of(tensors)
        if device is None:
            self._by_device().staged(codes.ALL_REDUCE, tensors, opts)
            return super().allreduce_coalesced(tensors, opts)
        work = self._by_device().all_reduce(tensors, opts, is_sync(opts))
        if work is not None:
            return work

        self._by_device().staged(codes.ALL_REDUCE, tensors, opts)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            hosts = [stage.update(tensor) for tensor in tensors]
            return lambda: host.allreduce_coalesced(hosts, opts)

        return self._staged(device, is_sync(opts), shape, tensors)

    def reduce(self, tensors: _Tensors, opts: Any) -> Work:
        """Reduces a tensor to the root, in place there; elsewhere it is only read. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of(tensors)
        if device is None:
            self._by_device().staged(codes.REDUCE, tensors[:1], opts, opts.rootRank)
            return super().reduce(tensors, opts)
        self._check_rank(opts.rootRank, "root")
        work = self._by_device().all_reduce([tensors[opts.rootTensor]], opts, is_sync(opts), opts.rootRank)
        if work is not None:
            return work

        self._by_device().staged(codes.REDUCE, tensors[:1], opts, opts.rootRank)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            mine = stage.update if opts.rootRank == self._channel.rank else stage.read
            hosts = [mine(tensor) for tensor in tensors]
            return lambda: host.reduce(hosts, opts)

        return self._staged(device, is_sync(opts), shape, tensors)

    def reduce_scatter(self, outputs: _Tensors, inputs: List[_Tensors], opts: Any) -> Work:
        """Reduces a list of tensors, rank i keeps the i-th. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of([*outputs, *inputs[0]])
        if device is None:
            self._by_device().staged(codes.REDUCE_SCATTER, outputs[:1], opts, count=0)
            return super().reduce_scatter(outputs, inputs, opts)
        parts, own = inputs[0], self._channel.rank
        if len(parts) == self._channel.size and parts[own].numel() == outputs[0].numel():
            work = self._by_device().reduce_scatter(outputs[:1], [[part] for part in parts], opts, is_sync(opts))
            if work is not None:
                return work

        self._by_device().staged(codes.REDUCE_SCATTER, outputs[:1], opts, count=0)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            target, parts = [stage.write(outputs[0])], [stage.read_all(inputs[0])]
            return lambda: host.reduce_scatter(target, parts, opts)

        return self._staged(device, is_sync(opts), shape, outputs)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        """Reduces a tensor of size * n, rank i keeps the i-th part. Collective. Blocks: until done unless asyncOp."""
        sync = is_sync(opts)
        if input.numel() == output.numel() * self._channel.size:
            work = self._reduced_by_kernels(codes.REDUCE_SCATTER, input, output, opts, sync)
            if work is not None:
                return work
        return self._scattered("reduce_scatter_single", [output], [input], opts, sync)

    def _scattered(self, name: str, outputs: _Tensors, inputs: _Tensors, opts: Any, sync: bool) -> Work:
        """reduce_scatter_single, of one or of several."""
        n, on_npu = self._channel.size, npu.device_of([*outputs, *inputs]) is not None
        if on_npu and len(outputs) == len(inputs) and all(i.numel() == o.numel() * n for o, i in zip(outputs, inputs)):
            work = self._by_device().reduce_scatter(outputs, [inputs], opts, sync, joined=True)
            if work is not None:
                return work
        if len(outputs) == 1 and not name.endswith("coalesced"):
            return self._one_each(name, outputs, inputs, opts, sync)
        return self._several(name, outputs, inputs, opts, sync)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: _Tensors, inputs: _Tensors, opts: Any = None) -> Work:
        """reduce_scatter_single of several tensors. Collective. Blocks: until done unless asyncOp."""
        return self._scattered("reduce_scatter_single_coalesced", outputs, inputs, opts, is_sync(opts))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _one_each(self, name: str, outputs: _Tensors, inputs: _Tensors, opts: Any, sync: bool) -> Work:
        """An operation of one tensor out and one in."""
        device = npu.device_of([*outputs, *inputs])
        if device is None:
            self._by_device().staged(_HOST_CODES[name], inputs, opts)
            return getattr(super(), name)(outputs[0], inputs[0], opts)

        self._by_device().staged(_HOST_CODES[name], inputs, opts)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            target, source = stage.write(outputs[0]), stage.read(inputs[0])
            return lambda: getattr(host, name)(target, source, opts)

        return self._staged(device, sync, shape, outputs)

    def _several(self, name: str, outputs: _Tensors, inputs: _Tensors, opts: Any, sync: bool) -> Work:
        """The same for lists."""
        device = npu.device_of([*outputs, *inputs])
        if device is None:
            self._by_device().staged(_HOST_CODES[name], inputs, opts)
            return getattr(super(), name)(outputs, inputs, opts)

        self._by_device().staged(_HOST_CODES[name], inputs, opts)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            targets, sources = [stage.write(t) for t in outputs], [stage.read(t) for t in inputs]
            return lambda: getattr(host, name)(targets, sources, opts)

        return self._staged(device, sync, shape, outputs)

    # ---- movements -------------------------------------------------------------------------------------------------------

    def broadcast(self, tensors: _Tensors, opts: Any) -> Work:
        """Copies the root's tensor to every rank. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of(tensors)
        if device is None:
            self._by_device().staged(codes.BROADCAST, tensors[:1], None, opts.rootRank)
            return super().broadcast(tensors, opts)
        if 0 <= opts.rootRank < self._channel.size:
            tensor = tensors[opts.rootTensor]
            work = self._by_kernels(codes.BROADCAST, tensor, tensor, nbytes(tensor), is_sync(opts), root=opts.rootRank)
            work = work or self._by_device().broadcast(tensor, opts.rootRank, is_sync(opts))
            if work is not None:
                return work

        self._by_device().staged(codes.BROADCAST, tensors[:1], None, opts.rootRank)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            mine = stage.read if opts.rootRank == self._channel.rank else stage.write
            hosts = [mine(tensor) for tensor in tensors]
            return lambda: host.broadcast(hosts, opts)

        return self._staged(device, is_sync(opts), shape, tensors)

    def allgather(self, outputs: List[_Tensors], inputs: _Tensors, opts: Any = None) -> Work:
        """Gives every rank everybody's tensor, as a list. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of([*outputs[0], *inputs])
        if device is None:
            self._by_device().staged(codes.ALL_GATHER, inputs[:1], count=0)
            return super().allgather(outputs, inputs, opts)
        if self._gathers([[one] for one in outputs[0]], inputs[:1]):
            work = self._by_device().all_gather([[one] for one in outputs[0]], inputs[:1], is_sync(opts))
            if work is not None:
                return work

        self._by_device().staged(codes.ALL_GATHER, inputs[:1], count=0)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            targets, sources = [stage.write_all(outputs[0])], [stage.read(inputs[0])]
            return lambda: host.allgather(targets, sources, opts)

        return self._staged(device, is_sync(opts), shape, outputs[0])

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        """Gives every rank everybody's tensor, end to end in one. Collective. Blocks: until done unless asyncOp."""
        sync = is_sync(opts)
        if input.dtype is output.dtype and output.numel() == input.numel() * self._channel.size:
            work = self._by_kernels(codes.ALL_GATHER, input, output, nbytes(input), sync)
            if work is not None:
                return work
        return self._gathered("all_gather_single", [output], [input], opts, sync)

    def _gathers(self, outputs: Sequence[_Tensors], inputs: _Tensors) -> bool:
        """Whether outputs[rank] can take that rank's tensors; what cannot is refused by the operation on the host."""
        own, every = self._channel.rank, [tensor for part in outputs for tensor in part]
        return (
            len(outputs) == self._channel.size
            and all(len(part) == len(inputs) for part in outputs)
            and all(one.dtype is inputs[0].dtype for one in (*every, *inputs))
            and all(a.numel() == b.numel() for a, b in zip(outputs[own], inputs))
        )

    def _gathered(self, name: str, outputs: _Tensors, inputs: _Tensors, opts: Any, sync: bool) -> Work:
        """all_gather_single, of one or of several."""
        n, on_npu = self._channel.size, npu.device_of([*outputs, *inputs]) is not None
        pairs = list(zip(outputs, inputs))
        if on_npu and len(outputs) == len(inputs) and all(o.numel() == i.numel() * n and o.dtype is i.dtype for o, i in pairs):
            work = self._by_device().all_gather([outputs], inputs, sync, joined=True)
            if work is not None:
                return work
        if len(outputs) == 1 and not name.endswith("coalesced"):
            return self._one_each(name, outputs, inputs, opts, sync)
        return self._several(name, outputs, inputs, opts, sync)

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: List[_Tensors], inputs: _Tensors, opts: Any = None) -> Work:
        """allgather of several tensors; outputs[rank][i]. Collective. Blocks: until done unless asyncOp."""
        every = [tensor for mine in outputs for tensor in mine]
        device = npu.device_of([*every, *inputs])
        if device is None:
            self._by_device().staged(codes.ALL_GATHER, inputs, count=0)
            return super().allgather_coalesced(outputs, inputs, opts)
        if self._gathers(outputs, inputs):
            work = self._by_device().all_gather(outputs, inputs, is_sync(opts))
            if work is not None:
                return work

        self._by_device().staged(codes.ALL_GATHER, inputs, count=0)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            targets, sources = [[stage.write(t) for t in mine] for mine in outputs], [stage.read(t) for t in inputs]
            return lambda: host.allgather_coalesced(targets, sources, opts)

        return self._staged(device, is_sync(opts), shape, every)

    def all_gather_single_coalesced(self, outputs: _Tensors, inputs: _Tensors, opts: Any = None) -> Work:
        """all_gather_single of several tensors. Collective. Blocks: until done unless asyncOp."""
        return self._gathered("all_gather_single_coalesced", outputs, inputs, opts, is_sync(opts))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: List[_Tensors], inputs: _Tensors, opts: Any) -> Work:
        """Gives the root everybody's tensor, as a list. Collective. Blocks: until done unless asyncOp."""
        parts = outputs[0] if outputs else []
        device = npu.device_of([*parts, *inputs])
        if device is None:
            self._by_device().staged(codes.GATHER, inputs[:1], None, opts.rootRank)
            return super().gather(outputs, inputs, opts)
        self._check_rank(opts.rootRank, "root")
        work = self._by_device().gather(parts, inputs[0], opts.rootRank, is_sync(opts))
        if work is not None:
            return work

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            targets = [stage.write_all(mine) for mine in outputs]
            sources = [stage.read(tensor) for tensor in inputs]
            return lambda: host.gather(targets, sources, opts)

        return self._staged(device, is_sync(opts), shape, parts)

    def scatter(self, outputs: _Tensors, inputs: List[_Tensors], opts: Any) -> Work:
        """Gives rank i the root's i-th tensor. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of([*outputs, *(inputs[0] if inputs else [])])
        if device is None:
            self._by_device().staged(codes.SCATTER, outputs[:1], None, opts.rootRank)
            return super().scatter(outputs, inputs, opts)
        self._check_rank(opts.rootRank, "root")
        work = self._by_device().scatter(outputs[0], inputs[0] if inputs else (), opts.rootRank, is_sync(opts))
        if work is not None:
            return work

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            sources = [stage.read_all(mine) for mine in inputs]
            targets = [stage.write(tensor) for tensor in outputs]
            return lambda: host.scatter(targets, sources, opts)

        return self._staged(device, is_sync(opts), shape, outputs)

    def barrier(self, opts: Any = None) -> Work:
        """Waits until every rank of the group is here and what was called before by kernels is done. Collective. Blocks: for these, and unless asyncOp."""
        self._channel.keep_order()
        if self._channel.scratch is not None:
            limit = opts.timeout.total_seconds() if opts is not None else -1.0
            self._channel.scratch.settle(opts is not None and is_sync(opts), limit if limit >= 0 else self._channel.timeout.total_seconds())
        return super().barrier(opts)

    # ---- exchanges -------------------------------------------------------------------------------------------------------

    def all_to_all_single(self, output: torch.Tensor, input: torch.Tensor, output_splits: Sequence[int], input_splits: Sequence[int], opts: Any = None) -> Work:
        """Sends the i-th part of a tensor to rank i, parts along dimension 0. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of([output, input])
        if device is None:
            self._by_device().staged(codes.ALL_TO_ALL_V, [input], count=0)
            return super().all_to_all_single(output, input, output_splits, input_splits, opts)
        even = not len(output_splits) and not len(input_splits) and input.numel() == output.numel() and input.dtype is output.dtype
        if even and input.dim() and input.size(0) % self._channel.size == 0:
            work = self._by_kernels(codes.ALL_TO_ALL, input, output, nbytes(input) // self._channel.size, is_sync(opts))
            work = work or self._by_device().all_to_all(output, input, is_sync(opts))
            if work is not None:
                return work

        if not even:
            rows = [
                [part // output.element_size() for part in self._rows(t, splits, role)]
                for t, splits, role in ((output, output_splits, "output"), (input, input_splits, "input"))
            ]
            work = self._by_device().exchange([output], [input], rows, is_sync(opts))
            if work is not None:
                return work
        self._by_device().staged(codes.ALL_TO_ALL_V, [input], count=0)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            target, source = stage.write(output), stage.read(input)
            return lambda: host.all_to_all_single(target, source, output_splits, input_splits, opts)

        return self._staged(device, is_sync(opts), shape, [output])

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: _Tensors, inputs: _Tensors, opts: Any = None) -> Work:
        """Sends the i-th tensor to rank i. Collective. Blocks: until done unless asyncOp."""
        device = npu.device_of([*outputs, *inputs])
        if device is None:
            self._by_device().staged(codes.ALL_TO_ALL_V, inputs[:1], count=0)
            return super().alltoall(outputs, inputs, opts)

        self._check_parts(outputs, "all_to_all", "output")
        self._check_parts(inputs, "all_to_all", "input")
        work = self._by_device().exchange(outputs, inputs, None, is_sync(opts))
        if work is not None:
            return work
        self._by_device().staged(codes.ALL_TO_ALL_V, inputs[:1], count=0)

        def shape(stage: Stage, host: Exchanges) -> Callable[[], Work]:
            targets, sources = stage.write_all(outputs), stage.read_all(inputs)
            return lambda: host.alltoall(targets, sources, opts)

        return self._staged(device, is_sync(opts), shape, outputs)
