"""Which operations of npu tensors the device's kernels do, and how their arguments become a way through the group's scratch.

Decided by operation, dtype, operator and sizes alone, which are equal on all members; never by where or how a tensor lies. Every method
gives the Work, or None for what goes through host memory.
"""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import torch

from .._errors import InvalidArgumentError
from . import npu
from . import ops_channel as codes
from . import ops_types as types
from .npu_collectives import Lane
from .npu_run import Run, Sides
from .npu_scratch import Way, announce
from .npu_ways import Ways
from .ops_buffers import dense, same_dtype
from .ops_exchange import _touch
from .work import Work

_Tensors = Sequence[torch.Tensor]
_KERNELS_REDUCE = (torch.float32, torch.float16, torch.bfloat16, torch.int32)
_OPERATORS = {"SUM": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX", "AVG": "SUM"}


class Reduction(NamedTuple):
    """A reduction as kernels do it."""

    dtype: torch.dtype  # of the elements in the slot
    code: int
    operator: int
    average: bool  # the sum is divided afterwards
    each: int  # bytes in the slot of an element as it was asked for
    told: Optional[Tuple[int, int]]  # dtype and operator as asked for, where kernels are given others


def reduction_of(tensors: _Tensors, opts: Any) -> Optional[Reduction]:
    """How kernels do it, None when they do not. Averages of half precision are made in single and rounded once, as on the host."""
    if not tensors:
        return None
    dtype = tensors[0].dtype
    name = types.operator_name(int(opts.reduceOp.op) if opts is not None else 0)
    average = name == "AVG"
    if name not in _OPERATORS or any(tensor.dtype is not dtype for tensor in tensors):
        return None
    if dtype is torch.complex64 and name in ("SUM", "AVG"):
        dtype = torch.float32
    if dtype not in _KERNELS_REDUCE or (average and not dtype.is_floating_point):
        return None
    if average:
        dtype = torch.float32
    asked = types.known_codes(tensors[0].dtype, int(opts.reduceOp.op) if opts is not None else 0)
    given = types.DTYPES[dtype], types._R[_OPERATORS[name]]
    return Reduction(dtype, *given, average, 8 if tensors[0].is_complex() else dtype.itemsize, asked if asked != given else None)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as their parts, one after the other."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class Kernels:
    """The operations of one process group by kernels. Threads: any."""

    def __init__(self, world: Any, channel: Any) -> None:
        """For a channel; without a scratch every method gives None."""
        self._world, self._channel, self._scratch = world, channel, channel.scratch
        self._ways = Ways(channel.scratch)
        self._lane: Any = None

    def _run(self, sync: bool, used: _Tensors, result: _Tensors, prepare: Callable[[Sides], Optional[Way]], divided: Callable[[], _Tensors] = tuple) -> Work:
        """Queues it: on the current stream when torch waits at once, else on the group's. Blocks: for torch_npu's queue."""
        channel, scratch, world = self._channel, self._scratch, self._world
        channel.refuse_closed()
        index = world.device.index
        used = [dense(tensor) for tensor in used]
        for tensor in used:
            if npu.on_npu(tensor) and tensor.device.index != index:
                wish = f"SHMEM_DEVICE=npu:{tensor.device.index}"
                raise InvalidArgumentError(f"a tensor is on {tensor.device} and this group's device is npu:{index}; {wish} chooses it")
        sides = Sides(torch.device(npu.KIND, index))

        def begin() -> None:
            scratch.enter(npu.runtime().current_stream(index))
            with torch.no_grad():
                way = prepare(sides)
                if way is not None:
                    scratch.carry(way)
                for tensor in divided():
                    tensor.div_(channel.size)
                sides.store()

        with scratch.lock:
            self._lane = self._lane or Lane(world)
            work = self._lane.run(sync, used, begin, result)
            work._channel = channel
            scratch.leave(work._stream, work._event)
        channel.sequence += 1
        channel.paths["kernels"] = channel.paths.get("kernels", 0) + 1
        return channel.gave(work)

    # ---- reductions ------------------------------------------------------------------------------------------------------

    def all_reduce(self, tensors: _Tensors, opts: Any, sync: bool, root: Optional[int] = None) -> Optional[Work]:
        """All tensors in one kernel; with a root, only its are written. Collective. Blocks: no."""
        how = reduction_of(tensors, opts) if self._scratch is not None else None
        if how is None:
            return None
        flat: List[torch.Tensor] = []
        writes = root is None or root == self._channel.rank

        def prepare(sides: Sides) -> Way:
            take = sides.update if writes else sides.read
            flat.extend(_flat(take(tensor, None if tensor.is_complex() else how.dtype)) for tensor in tensors)
            return self._ways.all_reduce(flat, how, root)

        return self._run(sync, tensors, tensors, prepare, lambda: flat if how.average and writes else ())

    def reduce_scatter(self, outputs: _Tensors, inputs: Sequence[_Tensors], opts: Any, sync: bool, joined: bool = False) -> Optional[Work]:
        """inputs[rank] are the tensors of which that rank keeps the reduction; `joined`: inputs[0] are tensors of all ranks' parts, end to end.

        Collective. Blocks: no.
        """
        every = [tensor for part in inputs for tensor in part]
        how = reduction_of([*outputs, *every], opts) if self._scratch is not None else None
        if how is None:
            return None
        flat: List[torch.Tensor] = []

        def prepare(sides: Sides) -> Way:
            dtype = None if outputs[0].is_complex() else how.dtype
            parts: Sequence[_Tensors] = [[_flat(sides.read(tensor, dtype)) for tensor in part] for part in inputs]
            if joined:
                parts = _split(parts[0], self._channel.size)
            flat.extend(_flat(sides.write(tensor, dtype)) for tensor in outputs)
            if _touch([tensor for part in parts for tensor in part], flat):
                parts = [[sides.aside(tensor) for tensor in part] for part in parts]
            return self._ways.reduce_scatter(flat, parts, how)

        return self._run(sync, [*outputs, *every], outputs, prepare, lambda: flat if how.average else ())

    def staged(self, what: int, tensors: _Tensors, opts: Any = None, root: int = -1, count: Optional[int] = None) -> None:
        """Tells the members that this PE takes an operation through host memory, so that those which do not are found. Blocks: no."""
        if self._scratch is None:
            return
        self._channel.refuse_closed()
        dtype = types.code_of(tensors[0].dtype) if tensors else 0
        reduces = tensors and what in (codes.ALL_REDUCE, codes.REDUCE, codes.REDUCE_SCATTER)
        reduction = types.known_codes(tensors[0].dtype, int(opts.reduceOp.op) if opts is not None else 0) if reduces else None
        with self._scratch.lock:
            announce(self._channel.team, what, sum(t.numel() for t in tensors) if count is None else count, dtype, reduction[1] if reduction else 0, root, True)

    # ---- movements -------------------------------------------------------------------------------------------------------

    def broadcast(self, tensor: torch.Tensor, root: int, sync: bool) -> Optional[Work]:
        """The root's tensor to all. Collective. Blocks: no."""
        if self._scratch is None:
            return None

        def prepare(sides: Sides) -> Way:
            mine = sides.read if root == self._channel.rank else sides.write
            return self._ways.broadcast([mine(tensor)], types.code_of(tensor.dtype), root)

        return self._run(sync, [tensor], [tensor], prepare)

    def all_gather(self, outputs: Sequence[_Tensors], inputs: _Tensors, sync: bool, joined: bool = False) -> Optional[Work]:
        """outputs[rank] become that rank's inputs; `joined`: outputs[0] are tensors of all ranks' parts, end to end. Collective. Blocks: no."""
        every = [tensor for part in outputs for tensor in part]
        if self._scratch is None:
            return None

        def prepare(sides: Sides) -> Way:
            parts: Sequence[_Tensors] = [[sides.write(tensor) for tensor in part] for part in outputs]
            if joined:
                parts = _split(parts[0], self._channel.size)
            sources = [sides.read(tensor) for tensor in inputs]
            own = all(a.data_ptr() == b.data_ptr() for a, b in zip(sources, parts[self._channel.rank]))
            if not own and _touch(sources, [tensor for part in parts for tensor in part]):
                sources = [sides.aside(tensor) for tensor in sources]
            return self._ways.all_gather(parts, sources, types.code_of(inputs[0].dtype))

        return self._run(sync, [*every, *inputs], every, prepare)

    def all_to_all(self, output: torch.Tensor, source: torch.Tensor, sync: bool) -> Optional[Work]:
        """Equal parts of a tensor, one for each rank. Collective. Blocks: no."""
        if self._scratch is None or output.dtype is not source.dtype:
            return None

        def prepare(sides: Sides) -> Way:
            inside, outside = sides.read(source), sides.write(output)
            if _touch([inside], [outside]):
                inside = sides.aside(inside)
            return self._ways.all_to_all(outside, inside, types.code_of(source.dtype))

        return self._run(sync, [output, source], [output], prepare)

    def exchange(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], rows: Any, sync: bool) -> Optional[Work]:
        """Parts of any sizes, one for each rank. `rows` gives the sizes of a tensor's parts in elements, or None for lists of tensors.

        Collective. Blocks: no.
        """
        if self._scratch is None or any(tensor.dtype is not inputs[0].dtype for tensor in (*outputs, *inputs)):
            return None

        def prepare(sides: Sides) -> None:
            inside, outside = [sides.read(tensor) for tensor in inputs], [sides.write(tensor) for tensor in outputs]
            if _touch(inside, outside):
                inside = [sides.aside(tensor) for tensor in inside]
            if rows is not None:
                inside, outside = _cut(inside[0], rows[1]), _cut(outside[0], rows[0])
            self._scratch.exchange.carry([Run([one]) for one in outside], [Run([one]) for one in inside], types.code_of(inputs[0].dtype))

        return self._run(sync, [*outputs, *inputs], outputs, prepare)

    def gather(self, outputs: _Tensors, tensor: torch.Tensor, root: int, sync: bool) -> Optional[Work]:
        """Every rank's tensor to the root's list. Collective. Blocks: no."""
        if self._scratch is None:
            return None
        parts = outputs if root == self._channel.rank else ()
        self._equal(parts, tensor, "gather", "output", root)

        def prepare(sides: Sides) -> Way:
            inside, outside = sides.read(tensor), [sides.write(part) for part in parts]
            if _touch([inside], outside):
                inside = sides.aside(inside)
            return self._ways.gather(outside, inside, types.code_of(tensor.dtype), root)

        return self._run(sync, [*parts, tensor], parts, prepare)

    def scatter(self, tensor: torch.Tensor, inputs: _Tensors, root: int, sync: bool) -> Optional[Work]:
        """The root's tensors, one to each rank. Collective. Blocks: no."""
        if self._scratch is None:
            return None
        parts = inputs if root == self._channel.rank else ()
        self._equal(parts, tensor, "scatter", "input", root)

        def prepare(sides: Sides) -> Way:
            inside, outside = [sides.read(part) for part in parts], sides.write(tensor)
            if _touch(inside, [outside]):
                inside = [sides.aside(part) for part in inside]
            return self._ways.scatter(outside, inside, types.code_of(tensor.dtype), root)

        return self._run(sync, [tensor, *parts], [tensor], prepare)

    def _equal(self, parts: _Tensors, like: torch.Tensor, what: str, role: str, root: int) -> None:
        """What the root's list must be."""
        if root != self._channel.rank:
            return
        if len(parts) != self._channel.size:
            raise InvalidArgumentError(f"{what}: the {role} list has {len(parts)} tensors, the group has {self._channel.size} ranks")
        same_dtype(what, [like, *parts])
        for i, part in enumerate(parts):
            if part.numel() != like.numel():
                raise InvalidArgumentError(f"{what}: {role} {i} has {part.numel()} elements, the tensor of this rank has {like.numel()}")


def _cut(tensor: torch.Tensor, sizes: Sequence[int]) -> List[torch.Tensor]:
    """Parts of these numbers of elements of a contiguous tensor, end to end."""
    flat, at, parts = tensor.view(-1), 0, []
    for size in sizes:
        parts.append(flat[at : at + size])
        at += size
    return parts


def _split(tensors: _Tensors, n: int) -> List[List[torch.Tensor]]:
    """The parts of contiguous tensors, by rank."""
    flat = [tensor.view(-1) for tensor in tensors]
    return [[one[rank * (one.numel() // n) : (rank + 1) * (one.numel() // n)] for one in flat] for rank in range(n)]
