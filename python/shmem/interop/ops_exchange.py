"""All-to-all, messages, coalescing blocks and the monitored barrier, as both forms of the process group have them."""

from __future__ import annotations

import ctypes
import time
from datetime import timedelta
from typing import Any, List, Sequence

import torch

from .. import _abi, _call
from .._errors import InvalidArgumentError, PeerError, TimeoutError
from .._lib import library
from . import ops_channel as channel
from .ops import Collectives
from .ops_buffers import Copies, gathered, nbytes, overlaps, readable, same_dtype, spread, writable
from .ops_sync import is_blocking_message, is_sync
from .work import Work, error_of

# Tags of torch are C ints; the monitored barrier talks beyond them.
_MONITOR_TAG = 1 << 40


class Exchanges(Collectives):
    """The rest of torch's operations over Collectives."""

    _monitored = 0

    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, output_splits: Sequence[int], input_splits: Sequence[int], opts: Any = None
    ) -> Work:
        """Sends the i-th part of a tensor to rank i, parts along dimension 0. Collective. Blocks: until done unless asyncOp."""
        same_dtype("all_to_all", [input, output])
        sync = is_sync(opts)
        source, after = readable(input), []  # type: ignore[var-annotated]
        target = writable(output, after)
        if overlaps(source, target) or (nbytes(source) and source.data_ptr() == target.data_ptr()):
            source = source.clone()
        if not len(input_splits) and not len(output_splits) and input.numel() == output.numel():
            piece = self._rows(source, (), "input")[0]
            return self._move(channel.ALL_TO_ALL, source, target, piece, source, opts, sync, after, (output,))
        outgoing = self._rows(source, input_splits, "input")
        incoming = self._rows(target, output_splits, "output")
        counts = _placed(outgoing, incoming)
        return self._move(channel.ALL_TO_ALL_V, source, target, 0, source, opts, sync, after, (output,), counts=counts)

    alltoall_base = all_to_all_single

    def _rows(self, tensor: torch.Tensor, splits: Sequence[int], role: str) -> List[int]:
        """The bytes of each rank's part of a tensor split along dimension 0."""
        n = self._channel.size
        rows = tensor.size(0) if tensor.dim() else tensor.numel()
        if not splits:
            if rows % n:
                raise InvalidArgumentError(f"all_to_all: dimension 0 of the {role} is {rows}, not a multiple of {n} ranks; give split sizes")
            return [nbytes(tensor) // n] * n
        if len(splits) != n or sum(splits) != rows or min(splits) < 0:
            raise InvalidArgumentError(
                f"all_to_all: the {role} split sizes {list(splits)} must be {n} numbers >= 0 that add up to its dimension 0, {rows}"
            )
        row = nbytes(tensor) // rows if rows else 0
        return [split * row for split in splits]

    def alltoall(self, outputs: List[torch.Tensor], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """Sends the i-th tensor to rank i. Collective. Blocks: until done unless asyncOp."""
        self._check_parts(outputs, "all_to_all", "output")
        self._check_parts(inputs, "all_to_all", "input")
        same_dtype("all_to_all", [*inputs, *outputs])
        sync = is_sync(opts)
        after: Copies = []
        source, target = gathered(inputs), spread(outputs, after)
        if _touch(inputs, outputs):
            source = torch.cat([readable(one).detach().reshape(-1) for one in inputs])
        counts = _placed([nbytes(one) for one in inputs], [nbytes(one) for one in outputs])
        keep = (inputs, outputs)
        return self._move(channel.ALL_TO_ALL_V, source, target, 0, source, opts, sync, after, outputs, counts=counts, keep=keep)

    # ---- messages --------------------------------------------------------------------------------------------------------

    def send(self, tensors: List[torch.Tensor], dst: int, tag: int = 0) -> Work:
        """Sends a tensor to a rank. Collective: no. Blocks: inside dist.send until it may be reused, else no."""
        self._check_rank(dst, "destination")
        tensor = readable(tensors[0])
        sync = is_blocking_message()
        return self._channel.message(library().send, "send", tensor, dst, tag, sync=sync, after=[], receive=False)

    def recv(self, tensors: List[torch.Tensor], src: int, tag: int = 0) -> Work:
        """Receives a tensor from a rank. Collective: no. Blocks: inside dist.recv until it is here, else no."""
        self._check_rank(src, "source")
        return self._recv(tensors[0], src, tag, is_blocking_message())

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int = 0) -> Work:
        """Receives a tensor from whoever sends first; the Work knows who. Collective: no. Blocks: as recv."""
        return self._recv(tensors[0], _abi.ANY_SOURCE, tag, is_blocking_message())

    recvAnysource = recv_anysource

    def _recv(self, tensor: torch.Tensor, src: int, tag: int, sync: bool) -> Work:
        after: Copies = []
        target = writable(tensor, after)
        return self._channel.message(library().recv, "recv", target, src, tag, sync=sync, after=after, receive=True)

    # ---- several at once -------------------------------------------------------------------------------------------------

    def start_coalescing(self, device: Any = None) -> None:
        """Begins a block whose operations end as one Work. Blocks: no."""
        if self._channel.coalescing is not None:
            raise InvalidArgumentError("a coalescing block is open already; end it first")
        self._channel.coalescing = []

    def end_coalescing(self, device: Any = None) -> Work:
        """Ends the block and gives the Work of all its operations. Blocks: no."""
        works, self._channel.coalescing = self._channel.coalescing, None
        if works is None:
            raise InvalidArgumentError("no coalescing block is open; call start_coalescing first")
        from .work import JointWork

        return self._channel.gave(JointWork(self._channel, works))

    def _start_coalescing(self, device: Any = None) -> None:
        self.start_coalescing(device)

    def _end_coalescing(self, device: Any = None) -> Work:
        return self.end_coalescing(device)

    # ---- the barrier that names who is missing ---------------------------------------------------------------------------

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier in which rank 0 finds out who does not come, and says so; nobody is harmed by a failure.

        Collective. Blocks: until all are here, or the timeout.
        """
        limit = getattr(timeout, "timeout", timeout)
        if limit is None or limit < timedelta(0):
            limit = self._channel.timeout
        self._monitored += 1
        deadline = time.monotonic() + limit.total_seconds()
        if self._channel.rank == 0:
            self._monitor(deadline, limit, wait_all_ranks)
        else:
            self._report(deadline)

    def _monitor(self, deadline: float, limit: timedelta, wait_all_ranks: bool) -> None:
        missing: List[int] = []
        for rank in range(1, self._channel.size):
            if missing and not wait_all_ranks:
                break
            try:
                self._pass_token(library().recv, rank, max(deadline, time.monotonic() + 0.001 * bool(missing)))
            except (TimeoutError, PeerError):
                missing.append(rank)
        if missing:
            raise TimeoutError(
                f"monitored_barrier: rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))} of {self._channel.size} "
                f"did not come within {limit.total_seconds():g} s",
                operation="monitored_barrier",
                pe=missing[0],
            )
        for rank in range(1, self._channel.size):
            self._pass_token(library().send, rank, deadline + 1)

    def _report(self, deadline: float) -> None:
        self._pass_token(library().send, 0, deadline)
        try:
            self._pass_token(library().recv, 0, deadline)
        except TimeoutError as problem:
            raise TimeoutError(
                "monitored_barrier: rank 0 did not answer in time; either it is late or another rank is missing (its message names which)",
                operation="monitored_barrier",
                pe=0,
            ) from problem

    def _pass_token(self, function: Any, rank: int, deadline: float) -> None:
        token = (ctypes.c_uint8 * 1)()
        request = ctypes.c_uint64()
        left = max(1, int((deadline - time.monotonic()) * 1e9))
        tag = _MONITOR_TAG + self._monitored
        try:
            status = function(self._channel.team, token, 1, rank, tag, 0, left, min(left, 50_000_000), ctypes.byref(request))
        except BaseException:
            _call.left(request)
            raise
        if status < 0:
            raise error_of(status, "monitored_barrier")
        if request.value:
            self._channel.finish(request.value, "monitored_barrier")


def _placed(outgoing: Sequence[int], incoming: Sequence[int]) -> Any:
    """The table of ALL_TO_ALL_V: bytes to each, where they begin, bytes from each, where they go."""
    table: List[int] = []
    for sizes in (outgoing, incoming):
        table.extend(sizes)
        at = 0
        for size in sizes:
            table.append(at)
            at += size
    return (ctypes.c_uint64 * len(table))(*table)


def _touch(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """True when some input shares memory with some output."""
    spans = [(one.data_ptr(), one.data_ptr() + nbytes(one)) for one in inputs if one.numel()]
    for other in outputs:
        low, high = other.data_ptr(), other.data_ptr() + nbytes(other)
        if any(a < high and low < b for a, b in spans):
            return True
    return False


