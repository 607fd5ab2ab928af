"""What each collective does with a slot of the group's scratch: what is copied in, which kernel runs, what is copied out.

A member's part may be shorter than the longest (`mine` bytes, others' in `sizes`): the slot is laid out for the longest, and what
lies behind the shorter ones is nobody's.

    all_reduce, reduce      slot = my tensor; small: out of the slot, large: in place in it
    broadcast               root's tensor -> slots
    all_gather              my tensor -> my part of all slots
    reduce_scatter          slot = my tensors by rank -> my output
    all_to_all              slot = parts by sender, [parts by receiver]
    gather, scatter         put to, or got from, the root's slot between two barriers
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Callable, List, Optional, Sequence

import torch

from . import ops_channel as codes
from .npu_run import Run
from .npu_scratch import Way
from .ops_buffers import nbytes

_SMALL = 64 << 10  # the core's own limit: from there on a reduction goes in place


def _nothing(slot: int, begin: int, end: int, stream: int) -> None:
    """A step that there is nothing to do in."""


class Ways:
    """Makes the ways of one scratch."""

    def __init__(self, scratch: Any) -> None:
        """Over a group's scratch."""
        self._of = scratch

    def _in(self, slot: int, run: Run, begin: int, end: int, stream: int) -> None:
        for at, address, size in run.parts(begin, end):
            self._of.copy(slot + at, address, size, stream)

    def _out(self, slot: int, run: Run, begin: int, end: int, stream: int) -> None:
        for at, address, size in run.parts(begin, end):
            self._of.copy(address, slot + at, size, stream)

    def all_reduce(self, tensors: Sequence[torch.Tensor], how: Any, root: Optional[int] = None) -> Way:
        """All tensors of a call in one; with a root, its alone are written."""
        run, size = Run(tensors), tensors[0].element_size()
        writes = root is None or root == self._of.rank
        code = codes.ALL_REDUCE if root is None else codes.REDUCE

        def result(slot: int, begin: int, end: int) -> int:
            """Where the kernel leaves it. Whether it may be elsewhere than in the slot depends on sizes alone, as the kernel does."""
            if end - begin > _SMALL:
                return slot
            here = run.at(begin, end) if writes else None
            return slot + _SMALL if here is None else here

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            self._of.kernel(way, slot, result(slot, begin, end), (end - begin) // size, stream, codes.ALL_REDUCE)

        def store(slot: int, begin: int, end: int, stream: int) -> None:
            at = result(slot, begin, end)
            if writes and at != run.at(begin, end):
                self._out(at, run, begin, end, stream)

        def load(slot: int, begin: int, end: int, stream: int) -> None:
            self._in(slot, run, begin, end, stream)

        named = -1 if root is None else root
        way = Way(code, run.nbytes, self._of.room(1), load, begin_, store, how.code, how.operator, named, how.each, how.told, root is not None)
        return way

    def broadcast(self, tensors: Sequence[torch.Tensor], dtype: int, root: int) -> Way:
        """The root's tensors to all."""
        run, mine = Run(tensors), root == self._of.rank

        def source(slot: int, begin: int, end: int) -> int:
            at = run.at(begin, end) if mine else None
            return slot if at is None else at

        def load(slot: int, begin: int, end: int, stream: int) -> None:
            if mine and source(slot, begin, end) == slot:
                self._in(slot, run, begin, end, stream)

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            self._of.kernel(way, source(slot, begin, end), slot, end - begin, stream)

        def store(slot: int, begin: int, end: int, stream: int) -> None:
            if not mine:
                self._out(slot, run, begin, end, stream)

        way = Way(codes.BROADCAST, run.nbytes, self._of.room(1), load, begin_, store, dtype, 0, root)
        return way

    def all_gather(self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], dtype: int) -> Way:
        """outputs[rank] are that rank's tensors, end to end."""
        run, parts = Run(inputs), _Parts(outputs)
        most = self._of.room(self._of.size + 1)

        def source(slot: int, begin: int, end: int) -> int:
            at = run.at(begin, end)
            return slot + most * self._of.size if at is None else at

        def load(slot: int, begin: int, end: int, stream: int) -> None:
            if run.at(begin, end) is None:
                self._in(slot + most * self._of.size, run, begin, end, stream)

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            self._of.kernel(way, source(slot, begin, end), slot, end - begin, stream)

        def store(slot: int, begin: int, end: int, stream: int) -> None:
            parts.each(slot, begin, end, lambda at, address, size: self._of.copy(address, at, size, stream))

        way = Way(codes.ALL_GATHER, parts.longest, most, load, begin_, store, dtype)
        return way

    def reduce_scatter(self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], how: Any) -> Way:
        """inputs[rank] are what that rank keeps the reduction of."""
        run, parts, size = Run(outputs), _Parts(inputs), outputs[0].element_size()
        most = self._of.room(self._of.size + 1)

        def target(slot: int, begin: int, end: int) -> int:
            at = run.at(begin, end)
            return slot + most * self._of.size if at is None else at

        def load(slot: int, begin: int, end: int, stream: int) -> None:
            parts.each(slot, begin, end, lambda at, address, size: self._of.copy(at, address, size, stream))

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            self._of.kernel(way, slot, target(slot, begin, end), (end - begin) // size, stream)

        def store(slot: int, begin: int, end: int, stream: int) -> None:
            if run.at(begin, end) is None:
                self._out(slot + most * self._of.size, run, begin, end, stream)

        way = Way(codes.REDUCE_SCATTER, parts.longest, most, load, begin_, store, how.code, how.operator, each=how.each, told=how.told)
        return way

    def all_to_all(self, output: torch.Tensor, source: torch.Tensor, dtype: int) -> Way:
        """Equal parts of a tensor, one for each rank."""
        n = self._of.size
        parts, sent = _Parts(_split(output, n)), _Parts(_split(source, n))
        most = self._of.room(2 * n)

        def whole(begin: int, end: int) -> bool:
            return begin == 0 and end == parts.longest and end > 0

        def load(slot: int, begin: int, end: int, stream: int) -> None:
            if not whole(begin, end):
                sent.each(slot + most * n, begin, end, lambda at, address, size: self._of.copy(at, address, size, stream))

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            src = source.data_ptr() if whole(begin, end) else slot + most * n
            self._of.kernel(way, src, slot, end - begin, stream)

        def store(slot: int, begin: int, end: int, stream: int) -> None:
            parts.each(slot, begin, end, lambda at, address, size: self._of.copy(address, at, size, stream))

        way = Way(codes.ALL_TO_ALL, parts.longest, most, load, begin_, store, dtype)
        return way

    def gather(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor, dtype: int, root: int) -> Way:
        """Every rank's tensor to the root's list."""
        run, parts, rank = Run([tensor]), _Parts([[one] for one in outputs]), self._of.rank

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            self._of.meet(stream)
            for at, address, size in run.parts(begin, end):
                self._of.put(slot + rank * (end - begin) + at, address, size, root, stream)
            self._of.meet(stream)

        def store(slot: int, begin: int, end: int, stream: int) -> None:
            parts.each(slot, begin, end, lambda at, address, size: self._of.copy(address, at, size, stream))

        most = self._of.room(self._of.size)
        return Way(codes.GATHER, run.nbytes, most, _nothing, begin_, store if rank == root else _nothing, dtype, 0, root, several=True)

    def scatter(self, tensor: torch.Tensor, inputs: Sequence[torch.Tensor], dtype: int, root: int) -> Way:
        """The root's tensors, one to each rank."""
        run, parts, rank = Run([tensor]), _Parts([[one] for one in inputs]), self._of.rank

        def load(slot: int, begin: int, end: int, stream: int) -> None:
            parts.each(slot, begin, end, lambda at, address, size: self._of.copy(at, address, size, stream))

        def begin_(slot: int, begin: int, end: int, stream: int) -> None:
            self._of.meet(stream)
            for at, address, size in run.parts(begin, end):
                self._of.get(address, slot + rank * (end - begin) + at, size, root, stream)
            self._of.meet(stream)

        most = self._of.room(self._of.size)
        return Way(codes.SCATTER, run.nbytes, most, load if rank == root else _nothing, begin_, _nothing, dtype, 0, root, several=True)


class _Parts:
    """The tensors of each rank, as one run that knows where each rank's begins."""

    def __init__(self, of: Sequence[Sequence[torch.Tensor]]) -> None:
        self._sizes: List[int] = [sum(nbytes(one) for one in mine) for mine in of]
        self._starts = [0, *accumulate(self._sizes)]
        self._run = Run([one for mine in of for one in mine])
        self.longest = max(self._sizes, default=0)

    def each(self, slot: int, begin: int, end: int, move: Callable[[int, int, int], None]) -> None:
        """Calls move(place in the slot, address, size) for the pieces of bytes [begin, end) of every rank's part."""
        if begin == 0 and end == self.longest == min(self._sizes, default=0):  # the slot is the run itself: neighbours are one piece
            for at, address, size in self._run.parts(0, self._run.nbytes):
                move(slot + at, address, size)
            return
        for rank, size in enumerate(self._sizes):
            start = self._starts[rank]
            for at, address, length in self._run.parts(start + min(begin, size), start + min(end, size)):
                move(slot + rank * (end - begin) + at, address, length)


def _split(tensor: torch.Tensor, n: int) -> List[List[torch.Tensor]]:
    return [[part] for part in tensor.reshape(-1).chunk(n)] if tensor.numel() else [[] for _ in range(n)]
