"""Host memory that stands in for device tensors during one operation.

A Stage gives the operation a contiguous CPU tensor for each device tensor: `read` brings the values down, `write` takes results
home, `update` does both. CPU tensors of the same call pass through as they are.
"""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import torch

from . import npu
from .ops_buffers import dense, refuse_overlap


class Stage:
    """The stand-ins of one call. Used by one thread at a time."""

    def __init__(self, device: torch.device, later: bool) -> None:
        """`later`: copies are only queued, to the current stream; the caller waits for it before the host tensors are looked at."""
        self.device = device
        self.later = later
        self._down: List[Tuple[torch.Tensor, bool, bool]] = []
        self._up: List[Tuple[torch.Tensor, torch.Tensor, bool, bool]] = []
        self._keep: List[torch.Tensor] = []

    def _room(self, shape: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, pin_memory=self.later, device="cpu")

    def read(self, tensor: Any) -> torch.Tensor:
        """A host tensor with these values (from arrived() on)."""
        tensor = dense(tensor)
        if not npu.on_npu(tensor):
            return tensor
        host = self._room(tensor.shape, tensor.dtype)
        self._fetch(host, tensor)
        return host

    def write(self, tensor: Any) -> torch.Tensor:
        """A host tensor whose values home() gives to this one."""
        tensor = dense(tensor)
        if not npu.on_npu(tensor):
            return tensor
        host = self._room(tensor.shape, tensor.dtype)
        self._bring(tensor, host)
        return host

    def update(self, tensor: Any) -> torch.Tensor:
        """Both."""
        tensor = dense(tensor)
        if not npu.on_npu(tensor):
            return tensor
        host = self.read(tensor)
        self._bring(tensor, host)
        return host

    def read_all(self, tensors: Sequence[Any]) -> List[torch.Tensor]:
        """read() of each, one after the other in one piece of memory, so that the operation need not join them."""
        return self._together(tensors, True)

    def write_all(self, tensors: Sequence[Any]) -> List[torch.Tensor]:
        """write() of each, in one piece of memory."""
        return self._together(tensors, False)

    def _together(self, tensors: Sequence[Any], down: bool) -> List[torch.Tensor]:
        plain = [dense(tensor) for tensor in tensors]
        if not plain or not all(npu.on_npu(t) and t.dtype is plain[0].dtype for t in plain):
            return [self.read(t) if down else self.write(t) for t in plain]
        whole = self._room(sum(t.numel() for t in plain), plain[0].dtype)
        hosts, at = [], 0
        for tensor in plain:
            host = whole[at : at + tensor.numel()].view(tensor.shape)
            if down:
                self._fetch(host, tensor)
            else:
                self._bring(tensor, host)
            hosts.append(host)
            at += tensor.numel()
        return hosts

    def _fetch(self, host: torch.Tensor, tensor: torch.Tensor) -> None:
        source, turned, negative = npu.bare(tensor)
        if turned or negative:
            self._down.append((host, turned, negative))
        if source.numel():
            npu.movable(host).copy_(npu.movable(source), non_blocking=self.later)
            self._keep.append(source)

    def _bring(self, tensor: torch.Tensor, host: torch.Tensor) -> None:
        refuse_overlap(tensor)
        target, turned, negative = npu.bare(tensor)
        self._up.append((target, host, turned, negative))

    def arrived(self) -> None:
        """The copies down are done: the host tensors may be used, and the device tensors that were only read are let go."""
        for host, turned, negative in self._down:
            _turn(host, turned, negative)
        self._down, self._keep = [], []

    def home(self) -> None:
        """Copies the results up, on the current stream; without `later` they are there on return."""
        with torch.no_grad():
            for target, host, turned, negative in self._up:
                _turn(host, turned, negative)
                if target.numel():
                    npu.movable(target).copy_(npu.movable(host), non_blocking=self.later)


def _turn(host: torch.Tensor, turned: bool, negative: bool) -> None:
    if turned:
        host.copy_(host.conj().resolve_conj())
    if negative:
        host.neg_()
