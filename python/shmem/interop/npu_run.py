"""Device tensors as runs of bytes: what an operation reads and writes, in one order, whatever pieces it lies in.

A tensor that is not contiguous, has another dtype than the operation, or lies on the host gets a stand-in on the device. All of it is
queued on the current stream; the caller holds that stream's turn until store() was called.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch

from . import npu
from .ops_buffers import dense, direct, nbytes, refuse_overlap


class Run:
    """Pieces of device memory that stand for one range of bytes. Pieces that follow each other in memory are one."""

    __slots__ = ("_pieces", "nbytes")

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        """Over contiguous tensors, in this order."""
        self._pieces: List[Tuple[int, int, int]] = []  # where it begins in the run, its address, its length
        self.nbytes = 0
        for tensor in tensors:
            size = nbytes(tensor)
            if not size:
                continue
            address = tensor.data_ptr()
            if self._pieces and sum(self._pieces[-1][1:]) == address:
                first, at, length = self._pieces.pop()
                self._pieces.append((first, at, length + size))
            else:
                self._pieces.append((self.nbytes, address, size))
            self.nbytes += size

    def parts(self, begin: int, end: int) -> Iterator[Tuple[int, int, int]]:
        """The pieces of [begin, end): how far behind begin each starts, its address and its length."""
        for first, address, length in self._pieces:
            low, high = max(begin, first), min(end, first + length)
            if low < high:
                yield low - begin, address + low - first, high - low

    def at(self, begin: int, end: int) -> Optional[int]:
        """Where [begin, end) lies when it is in one piece."""
        for first, address, length in self._pieces:
            if first <= begin and end <= first + length:
                return address + begin - first
        return None


class Sides:
    """The tensors of one operation as contiguous memory of a device. Used by one thread, within the operation's stream."""

    def __init__(self, device: torch.device) -> None:
        """Holds nothing yet."""
        self.device = device
        self.made: List[torch.Tensor] = []  # stand-ins must live until the stream has passed
        self._after: List[Tuple[torch.Tensor, torch.Tensor]] = []

    def read(self, tensor: Any, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """A contiguous tensor on the device with these values, as this dtype."""
        tensor = dense(tensor).detach()
        dtype = dtype or tensor.dtype
        if npu.on_npu(tensor) and direct(tensor) and tensor.dtype is dtype:
            return tensor
        if not npu.on_npu(tensor):
            made = tensor.resolve_conj().resolve_neg().contiguous().to(self.device)
        else:
            made = self._packed(tensor)
        if made.dtype is not dtype:
            made = made.to(dtype)
        self.made.append(made)
        return made

    def write(self, tensor: Any, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """A contiguous tensor on the device whose values store() brings to this one."""
        tensor = dense(tensor).detach()
        dtype = dtype or tensor.dtype
        if npu.on_npu(tensor) and direct(tensor) and tensor.dtype is dtype:
            return tensor
        refuse_overlap(tensor)
        made = torch.empty(tensor.shape, dtype=dtype, device=self.device)
        self.made.append(made)
        self._after.append((tensor, made))
        return made

    def update(self, tensor: Any, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        """Both: it has the values now, and store() brings them back."""
        inside = self.read(tensor, dtype)
        tensor = dense(tensor).detach()
        if inside.data_ptr() != tensor.data_ptr() or inside.dtype is not tensor.dtype:
            refuse_overlap(tensor)
            self._after.append((tensor, inside))
        return inside

    def aside(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy, for an input that the results would be written over."""
        made = torch.empty(tensor.shape, dtype=tensor.dtype, device=self.device)
        npu.movable(made).copy_(npu.movable(tensor))
        self.made.append(made)
        return made

    def store(self) -> None:
        """Queues the copies to the tensors that had stand-ins. Blocks: for host tensors, and conjugate views."""
        for tensor, made in self._after:
            made = made.view(tensor.shape)
            if not npu.on_npu(tensor):
                tensor.copy_(made.cpu())
                continue
            target, turned, negative = npu.bare(tensor)
            if turned or negative:
                made = _turned(made, turned, negative)
            if target.numel():
                if made.dtype is target.dtype:
                    target, made = npu.movable(target), npu.movable(made)
                target.copy_(made)

    def _packed(self, tensor: torch.Tensor) -> torch.Tensor:
        source, turned, negative = npu.bare(tensor)
        made = torch.empty(source.shape, dtype=source.dtype, device=source.device)
        if source.numel():
            npu.movable(made).copy_(npu.movable(source))
        return _turned(made, turned, negative) if turned or negative else made


def _turned(tensor: torch.Tensor, turned: bool, negative: bool) -> torch.Tensor:
    """Conjugated and negated. Through the host: the device need not have these for every dtype."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    npu.movable(host).copy_(npu.movable(tensor))
    if turned:
        host = host.conj().resolve_conj()
    if negative:
        host = -host
    made = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    npu.movable(made).copy_(npu.movable(host))
    return made
