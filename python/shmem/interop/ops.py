"""The collectives of torch.distributed, as both forms of the process group have them.

Every method takes tensors of any layout, gives a Work, and raises at once when its arguments cannot be. `opts.asyncOp` False
means that torch will wait right after the call, so the operation runs here; else it is queued in the core.
"""

from __future__ import annotations

import ctypes
from typing import Any, List, Sequence

import torch

from .._errors import InvalidArgumentError
from . import ops_channel as channel
from . import ops_types as types
from .ops_buffers import (
    Copies,
    direct,
    gathered,
    nbytes,
    overlaps,
    own_place,
    plain,
    readable,
    same_dtype,
    scattered,
    spread,
    updatable,
    writable,
)
from .ops_channel import _DEFAULT, ALL_REDUCE, Channel, nanoseconds
from .ops_sync import is_sync
from .work import Work

_Tensor = torch.Tensor
_strided = torch.strided
# From this size on a list is written in place instead of through one flat copy. Equal on all ranks, as the sizes are.
_SCATTERED = 64 << 10


class Collectives:
    """Mixed into the process group and the backend; `_channel` is the group's way into the core."""

    _channel: Channel

    # ---- reductions ------------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        """Reduces a tensor over the group, in place. Collective. Blocks: until done unless asyncOp."""
        if len(tensors) != 1:
            return self._channel.joint([self._allreduce(one, opts, False) for one in tensors])
        tensor, sync = tensors[0], is_sync(opts)
        if sync and type(tensor) is _Tensor and tensor.is_cpu and tensor.layout is _strided and direct(tensor):
            known = types.known((tensor.dtype, int(opts.reduceOp.op)))
            if known is not None:
                return self._channel.reduce_here(tensor, tensors, known[0], known[1], opts.timeout)
        return self._allreduce(tensor, opts, sync)

    def _allreduce(self, tensor: Any, opts: Any, sync: bool) -> Work:
        operator = int(opts.reduceOp.op) if opts is not None else 0
        if tensor.layout is not _strided and type(tensor) is _Tensor:
            return self._allreduce_sparse(tensor, operator, opts)
        after: Copies = []
        if type(tensor) is _Tensor and tensor.is_cpu and direct(tensor):
            flat = tensor
        else:
            flat = updatable(tensor, after)
        if flat.is_complex():  # only now: the parts of a conjugate view would be a copy
            flat = types.as_parts(flat, operator)
        dtype, op = types.reduction(flat.dtype, operator)
        return self._channel.run(
            ALL_REDUCE,
            flat,
            flat,
            flat.numel(),
            dtype=dtype,
            operator=op,
            scale=types.factor(opts.reduceOp) if op == types.PREMUL else 0.0,
            timeout_ns=nanoseconds(opts.timeout) if opts is not None else _DEFAULT,
            sync=sync,
            after=after,
            result=(tensor,),
        )

    def _allreduce_sparse(self, tensor: torch.Tensor, operator: int, opts: Any) -> Work:
        from .ops_sparse import allreduce_sparse

        return allreduce_sparse(self, tensor, operator, opts)

    def allreduce_sparse(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        """Sums sparse tensors over the group, in place. Collective. Blocks: until done."""
        return self.allreduce(tensors, opts)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        """Reduces several tensors, in place. Collective. Blocks: until done unless asyncOp."""
        sync = is_sync(opts)
        return self._channel.joint([self._allreduce(tensor, opts, sync) for tensor in tensors])

    def reduce(self, tensors: List[torch.Tensor], opts: Any) -> Work:
        """Reduces a tensor to the root, in place there; elsewhere the tensor is only read. Collective. Blocks: unless asyncOp."""
        operator = int(opts.reduceOp.op)
        tensor = plain(tensors[opts.rootTensor])
        return self._reduce(tensor, tensor, operator, opts.rootRank, opts, is_sync(opts))

    def _reduce(self, source: torch.Tensor, target: Any, operator: int, root: int, opts: Any, sync: bool) -> Work:
        """One reduction to a root; `target` matters there alone and may be the source itself."""
        self._check_rank(root, "root")
        after: Copies = []
        here = self._channel.rank == root
        inside = updatable(source, after) if here and target is source else readable(source)
        outside = inside if target is source else (writable(target, after) if here else None)
        inside, outside = types.as_parts(inside, operator), types.as_parts(outside, operator) if outside is not None else None
        dtype, op = types.reduction(inside.dtype, operator)
        return self._channel.run(
            channel.REDUCE,
            inside,
            outside if here else None,
            inside.numel(),
            dtype=dtype,
            operator=op,
            root=root,
            scale=types.factor(opts.reduceOp) if op == types.PREMUL else 0.0,
            timeout_ns=nanoseconds(opts.timeout),
            sync=sync,
            after=after,
            result=(target,) if here else (source,),
        )

    def reduce_scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any) -> Work:
        """Reduces a list of tensors, rank i keeps the i-th. Collective. Blocks: until done unless asyncOp."""
        parts, output, sync = inputs[0], outputs[0], is_sync(opts)
        self._check_parts(parts, "reduce_scatter", "input")
        same_dtype("reduce_scatter", [output, *parts])
        if parts[self._channel.rank].numel() != output.numel():
            raise InvalidArgumentError(
                f"reduce_scatter: the output has {output.numel()} elements and input {self._channel.rank} has "
                f"{parts[self._channel.rank].numel()}; they must be equal"
            )
        if all(part.numel() == output.numel() for part in parts):
            operator = int(opts.reduceOp.op)
            parts = [types.as_parts(part, operator) for part in parts]
            return self._reduce_scatter(output, gathered(parts), opts, sync, parts)
        return self._reduce_scatter_uneven(output, parts, opts, sync)

    def _reduce_scatter_uneven(self, output: torch.Tensor, parts: List[torch.Tensor], opts: Any, sync: bool) -> Work:
        works = []
        operator = int(opts.reduceOp.op)
        for root, part in enumerate(parts):
            target = output.view(part.shape) if root == self._channel.rank else output
            works.append(self._reduce(part, target, operator, root, opts, sync))
        return self._channel.joint(works)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        """Reduces a tensor of size * n, rank i keeps the i-th part. Collective. Blocks: until done unless asyncOp."""
        return self._reduce_scatter_single(output, input, opts, is_sync(opts))

    def _reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any, sync: bool) -> Work:
        operator = int(opts.reduceOp.op) if opts is not None else 0
        if input.numel() != output.numel() * self._channel.size:
            raise InvalidArgumentError(
                f"reduce_scatter: the input has {input.numel()} elements; {self._channel.size} ranks with an output of "
                f"{output.numel()} need {output.numel() * self._channel.size}"
            )
        same_dtype("reduce_scatter", [output, input])
        source = readable(types.as_parts(plain(input), operator))
        return self._reduce_scatter(plain(output), source, opts, sync, input)

    _reduce_scatter_base = reduce_scatter_single

    def _reduce_scatter(self, output: torch.Tensor, source: Any, opts: Any, sync: bool, keep: Any) -> Work:
        after: Copies = []
        target = writable(output, after)
        if overlaps(source, target) and not own_place(target, source, self._channel.rank):
            target = torch.empty(target.shape, dtype=target.dtype, device="cpu")
            after.insert(0, (output.detach(), target))
        operator = int(opts.reduceOp.op) if opts is not None else 0
        target = types.as_parts(target, operator)
        dtype, op = types.reduction(target.dtype, operator)
        return self._channel.run(
            channel.REDUCE_SCATTER,
            source,
            target,
            target.numel(),
            dtype=dtype,
            operator=op,
            scale=types.factor(opts.reduceOp) if op == types.PREMUL else 0.0,
            timeout_ns=nanoseconds(opts.timeout) if opts is not None else _DEFAULT,
            sync=sync,
            after=after,
            keep=keep,
            result=(output,),
        )

    def reduce_scatter_single_coalesced(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """reduce_scatter_single of several tensors. Collective. Blocks: until done unless asyncOp."""
        sync = is_sync(opts)
        pairs = zip(outputs, inputs)
        return self._channel.joint([self._reduce_scatter_single(output, input, opts, sync) for output, input in pairs])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- movements -------------------------------------------------------------------------------------------------------

    def broadcast(self, tensors: List[torch.Tensor], opts: Any) -> Work:
        """Copies the root's tensor to every rank. Collective. Blocks: until done unless asyncOp."""
        root = opts.rootRank
        self._check_rank(root, "root")
        tensor = tensors[opts.rootTensor]
        after: Copies = []
        flat = readable(tensor) if self._channel.rank == root else writable(tensor, after)
        return self._move(channel.BROADCAST, flat, flat, nbytes(flat), flat, opts, is_sync(opts), after, (tensor,), root=root)

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """Gives every rank everybody's tensor, as a list. Collective. Blocks: until done unless asyncOp."""
        return self._allgather(outputs[0], inputs[0], opts, is_sync(opts))

    def _allgather(self, parts: List[torch.Tensor], input: torch.Tensor, opts: Any, sync: bool) -> Work:
        self._check_parts(parts, "all_gather", "output")
        same_dtype("all_gather", [input, *parts])
        source = readable(input)
        if parts[self._channel.rank].numel() != source.numel():
            raise InvalidArgumentError(
                f"all_gather: the input has {source.numel()} elements and output {self._channel.rank} has "
                f"{parts[self._channel.rank].numel()}; they must be equal"
            )
        after: Copies = []
        even = all(part.numel() == source.numel() for part in parts)
        if even and nbytes(source) >= _SCATTERED:
            return self._allgather_scattered(parts, source, opts, sync)
        target = spread(parts, after)
        if overlaps(source, target):
            source = source.clone()
        if even:
            return self._move(channel.ALL_GATHER, source, target, nbytes(source), source, opts, sync, after, parts, keep=parts)
        counts = (ctypes.c_uint64 * len(parts))(*[nbytes(part) for part in parts])
        return self._move(channel.ALL_GATHER_V, source, target, 0, source, opts, sync, after, parts, keep=parts, counts=counts)

    def _allgather_scattered(self, parts: List[torch.Tensor], source: torch.Tensor, opts: Any, sync: bool) -> Work:
        """A large one goes straight into the tensors of the list, wherever they lie: everybody sends all of his to everybody."""
        after: Copies = []
        target = scattered(parts, source, after)
        size = nbytes(source)
        n = len(parts)
        counts = (ctypes.c_uint64 * (4 * n))(*[size] * n, *[0] * n, *[size] * n, *target.places)
        return self._move(channel.ALL_TO_ALL_V, source, target, 0, source, opts, sync, after, parts, keep=parts, counts=counts)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        """Gives every rank everybody's tensor, end to end in one. Collective. Blocks: until done unless asyncOp."""
        return self._all_gather_single(output, input, opts, is_sync(opts))

    def _all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any, sync: bool) -> Work:
        if output.numel() != input.numel() * self._channel.size:
            raise InvalidArgumentError(
                f"all_gather: the output has {output.numel()} elements; {self._channel.size} ranks with an input of "
                f"{input.numel()} need {input.numel() * self._channel.size}"
            )
        same_dtype("all_gather", [input, output])
        source = readable(input)
        after: Copies = []
        target = writable(output, after)
        if overlaps(source, target) and not own_place(source, target, self._channel.rank):
            source = source.clone()
        return self._move(channel.ALL_GATHER, source, target, nbytes(source), source, opts, sync, after, (output,))

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """allgather of several tensors; outputs[rank][i]. Collective. Blocks: until done unless asyncOp."""
        sync = is_sync(opts)
        turned = [[mine[i] for mine in outputs] for i in range(len(inputs))]
        return self._channel.joint([self._allgather(parts, one, opts, sync) for parts, one in zip(turned, inputs)])

    def all_gather_single_coalesced(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """all_gather_single of several tensors. Collective. Blocks: until done unless asyncOp."""
        sync = is_sync(opts)
        pairs = zip(outputs, inputs)
        return self._channel.joint([self._all_gather_single(output, input, opts, sync) for output, input in pairs])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any) -> Work:
        """Gives the root everybody's tensor, as a list. Collective. Blocks: until done unless asyncOp."""
        root, source = opts.rootRank, readable(inputs[0])
        self._check_rank(root, "root")
        after: Copies = []
        target, parts = None, []
        if self._channel.rank == root:
            parts = outputs[0]
            self._check_equal_parts(parts, source, "gather", "output")
            target = spread(parts, after)
            if overlaps(source, target):
                source = source.clone()
        sync = is_sync(opts)
        return self._move(channel.GATHER, source, target, nbytes(source), source, opts, sync, after, parts, root=root, keep=parts)

    def scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any) -> Work:
        """Gives rank i the root's i-th tensor. Collective. Blocks: until done unless asyncOp."""
        root, output = opts.rootRank, outputs[0]
        self._check_rank(root, "root")
        after: Copies = []
        target = writable(output, after)
        source, parts = None, []
        if self._channel.rank == root:
            parts = inputs[0]
            self._check_equal_parts(parts, output, "scatter", "input")
            source = gathered(parts)
            if overlaps(source, target):
                target = torch.empty(target.shape, dtype=target.dtype, device="cpu")
                after.insert(0, (output.detach(), target))
        sync = is_sync(opts)
        return self._move(channel.SCATTER, source, target, nbytes(target), target, opts, sync, after, (output,), root=root, keep=parts)

    def barrier(self, opts: Any = None) -> Work:
        """Waits until every rank of the group is here; one-sided transfers before it are complete. Collective. Blocks: unless asyncOp."""
        if opts is not None and is_sync(opts):
            return self._channel.barrier_here(opts.timeout)
        timeout = nanoseconds(opts.timeout) if opts is not None else _DEFAULT
        return self._channel.run(channel.BARRIER, None, None, 0, timeout_ns=timeout, sync=is_sync(opts))

    def _move(
        self,
        what: int,
        source: Any,
        target: Any,
        count: int,
        like: Any,
        opts: Any,
        sync: bool,
        after: Copies,
        result: Sequence[torch.Tensor],
        *,
        root: int = -1,
        keep: Any = None,
        counts: Any = None,
    ) -> Work:
        """A collective that moves `count` bytes; the dtype goes along so that peers which differ are told."""
        return self._channel.run(
            what,
            source,
            target,
            count,
            dtype=types.code_of(like.dtype),
            root=root,
            counts=counts,
            timeout_ns=nanoseconds(opts.timeout) if opts is not None else _DEFAULT,
            sync=sync,
            after=after,
            keep=keep,
            result=result,
        )

    # ---- checks ----------------------------------------------------------------------------------------------------------

    def _check_rank(self, rank: int, role: str) -> None:
        if not 0 <= rank < self._channel.size:
            raise InvalidArgumentError(f"{role} {rank} is not a rank of this group of {self._channel.size} (group ranks count from 0)")

    def _check_parts(self, parts: Sequence[torch.Tensor], what: str, role: str) -> None:
        if len(parts) != self._channel.size:
            raise InvalidArgumentError(f"{what}: the {role} list has {len(parts)} tensors, the group has {self._channel.size} ranks")

    def _check_equal_parts(self, parts: Sequence[torch.Tensor], like: Any, what: str, role: str) -> None:
        self._check_parts(parts, what, role)
        same_dtype(what, [like, *parts])
        for i, part in enumerate(parts):
            if part.numel() != like.numel():
                raise InvalidArgumentError(f"{what}: {role} {i} has {part.numel()} elements, the tensor of this rank has {like.numel()}")
