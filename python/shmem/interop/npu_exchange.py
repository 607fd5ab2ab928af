"""Uneven all-to-all through a group's scratch: every member puts its parts to the others' regions and signals, on the stream.

    sender                                   receiver
    wait: my region there was emptied        wait: my region of this sender is full
    put a piece, signal "full"               copy the piece out, signal "emptied"

Only two members know the size of a part, so each pair goes on as far as its part is long; nobody learns the largest. A round takes one
piece of each part that is not done, so no two wait for each other. Before, each tells the others what it will send: who expects another
size finds out (MismatchError on all).
"""

from __future__ import annotations

import ctypes
from typing import Any, List, Sequence

from .. import _abi, _call
from .._lib import library
from .npu_run import Run

LINE = 64  # each signal has a line of its own


def flags(size: int) -> int:
    """Bytes of the signals of a group: full and emptied, for each rank."""
    return -(-2 * size * LINE // 512) * 512


def _piece(count: int, nbytes: int) -> int:
    """What a signal says: which piece of the pair it is, and how long."""
    return (count * 2654435761 ^ nbytes * 40503) & 0x7FFFFFFF


class Exchange:
    """The exchanges of one scratch, which counts their pieces. Used with the scratch's lock held."""

    def __init__(self, scratch: Any, signals: int, regions: int, nbytes: int) -> None:
        """Over the zeroed signals at one address and the regions, one for each rank, at another."""
        self._of, self._signals, self._regions = scratch, signals, regions
        self._room = nbytes // scratch.size // 512 * 512
        self._sent, self._taken = [0] * scratch.size, [0] * scratch.size
        self._pes = [scratch.pe(rank) for rank in range(scratch.size)]

    def carry(self, outputs: Sequence[Run], inputs: Sequence[Run], dtype: int) -> None:
        """Queues one on the current stream. Collective over the group. Blocks: for torch_npu's queue."""
        of = self._of
        stream = of.world.device.stream()
        words = ctypes.c_uint64 * of.size
        sent, taken = words(*[run.nbytes for run in inputs]), words(*[run.nbytes for run in outputs])
        _call.check(library().exchange_announce(of.team, dtype, sent, taken), "all_to_all")
        of.meet(stream)  # everybody is past what used the slots before
        for at, address, size in inputs[of.rank].parts(0, inputs[of.rank].nbytes):
            for behind, target, part in outputs[of.rank].parts(at, at + size):
                of.copy(target, address + behind, part, stream)
        others = [(of.rank + step) % of.size for step in range(1, of.size)]
        rounds = max((self._pieces(run) for run in (*outputs, *inputs)), default=0)
        emptied: List[int] = [0] * of.size  # what the last signal of each receiver will be
        for turn in range(rounds):
            for rank in others:
                if turn < self._pieces(inputs[rank]):
                    emptied[rank] = self._send(rank, inputs[rank], turn, emptied[rank], stream)
            for rank in others:
                if turn < self._pieces(outputs[rank]):
                    self._take(rank, outputs[rank], turn, stream)
        of.world.device.queued(stream)

    def _pieces(self, run: Run) -> int:
        return -(-run.nbytes // self._room)

    def _send(self, rank: int, run: Run, turn: int, emptied: int, stream: int) -> int:
        begin, end = turn * self._room, min((turn + 1) * self._room, run.nbytes)
        if turn:
            self._wait(self._of.size + rank, emptied, stream)
        region = self._regions + self._of.rank * self._room
        for at, address, size in run.parts(begin, end):
            self._of.put(region + at, address, size, rank, stream)
        self._sent[rank] += 1
        value = _piece(self._sent[rank], end - begin)
        self._signal(self._of.rank, value, rank, stream)
        return value

    def _take(self, rank: int, run: Run, turn: int, stream: int) -> None:
        begin, end = turn * self._room, min((turn + 1) * self._room, run.nbytes)
        self._taken[rank] += 1
        value = _piece(self._taken[rank], end - begin)
        self._wait(rank, value, stream)
        for at, address, size in run.parts(begin, end):
            self._of.copy(address, self._regions + rank * self._room + at, size, stream)
        self._signal(self._of.size + self._of.rank, value, rank, stream)

    def _signal(self, which: int, value: int, rank: int, stream: int) -> None:
        at = ctypes.c_void_p(self._signals + which * LINE)
        status = library().signal_on_stream(self._of.world.handle, at, value, _abi.SIGNAL["SIGNAL_SET"], self._pes[rank], stream or None)
        _call.check(status, "all_to_all")

    def _wait(self, which: int, value: int, stream: int) -> None:
        at = ctypes.c_void_p(self._signals + which * LINE)
        _call.check(library().signal_wait_on_stream(self._of.world.handle, at, _abi.COMPARE["CMP_EQ"], value, stream or None), "all_to_all")
