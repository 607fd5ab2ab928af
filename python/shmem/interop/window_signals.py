"""Signals between the ranks of a group: counters on the heap that one rank raises at another, channel by channel.

A counter only grows: its owner remembers how much of it he has taken. So a signal is never lost and none waits for another.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Dict, List, Optional, Tuple

import torch

from .. import _abi, _block, _call
from .._errors import InvalidArgumentError
from .._lib import library
from .ops_buffers import nbytes
from .work import Work, announce

_ADD = _abi.SIGNAL["SIGNAL_ADD"]
_AT_LEAST = _abi.COMPARE["CMP_GE"]
_WORD = 8
check = _call.check


def gather_words(group: Any, mine: torch.Tensor) -> torch.Tensor:
    """Everybody's int64 words, one row per rank. Collective. Blocks until every rank is here."""
    table = torch.empty((group._channel.size, mine.numel()), dtype=torch.int64, device="cpu")
    group._channel.run(_abi.COLLECTIVE["ALL_GATHER"], mine, table, nbytes(mine), dtype=_abi.DTYPE["I64"], sync=True, result=(table,))
    return table


def pes_of(group: Any) -> List[int]:
    """The world PE of each rank."""
    from .process_group_world import translate

    return [translate(group._channel, rank, group._world) for rank in range(group._channel.size)]


class Signals:
    """One counter per channel and sending rank, on every rank. Threads: any, one waiter per channel and rank at a time."""

    def __init__(self, group: Any, channels: int = 1) -> None:
        """Makes the counters, zero, and learns where the others have theirs. Collective. Blocks until every rank does."""
        self._group = group
        self._channels = channels
        self._size = group._channel.size
        self._rank = group._channel.rank
        self._world = group._world.world
        self._block = _block.allocate_local(self._world, channels * self._size * _WORD, zero=True)
        heap = self._world.heap_stats()["low"]
        table = gather_words(group, torch.tensor([self._block.address - heap], dtype=torch.int64, device="cpu"))
        self._places: List[int] = [int(row[0]) + heap for row in table]
        self._pes = pes_of(group)
        self._taken: Dict[Tuple[int, int], int] = {}

    def _slot(self, channel: int, sender: int) -> int:
        if not 0 <= channel < self._channels:
            raise InvalidArgumentError(f"channel {channel} is not one of the {self._channels} channels, which count from 0")
        return (channel * self._size + sender) * _WORD

    def _check_rank(self, rank: int) -> None:
        if not 0 <= rank < self._size:
            raise InvalidArgumentError(f"rank {rank} is not a rank of this group of {self._size}")

    def raise_at(self, rank: int, channel: int = 0) -> None:
        """Adds one at a rank, after everything put there before. Collective: no. Blocks: no."""
        self._check_rank(rank)
        word = self._places[rank] + self._slot(channel, self._rank)
        check(self._world.calls.put_signal(self._world.handle, word, word, 0, word, 1, _ADD, self._pes[rank]), "signal")

    def await_from(self, rank: int, seconds: Optional[float] = None, channel: int = 0) -> None:
        """Takes one signal of a rank. Collective: no. Blocks: until it is there, or the timeout (the group's when None)."""
        self._check_rank(rank)
        word = self._block.address + self._slot(channel, rank)
        wanted = self._taken.get((channel, rank), 0) + 1
        limit = seconds if seconds is not None else self._group._channel.timeout.total_seconds()
        arguments = (self._world.handle, word, _WORD, 0, _AT_LEAST, wanted, _call.timeout_ns(limit))
        _call.start(library().wait_until_start, arguments, 0, "wait_signal")
        self._taken[(channel, rank)] = wanted

    def later(self, rank: int, seconds: Optional[float]) -> Work:
        """The same as a Work. Collective: no. Blocks: no."""
        work = _LaterWork(self._group._channel)
        self._group._channel.callbacks.submit(lambda: work.run(lambda: self.await_from(rank, seconds)))
        return work

    def barrier(self, channel: int, seconds: Optional[float]) -> None:
        """Everybody signals everybody and waits for all. Collective. Blocks: until every rank is here, or the timeout."""
        check(self._world.calls.quiet(self._world.handle, _abi.DEFAULT_TIMEOUT), "barrier")
        for rank in range(self._size):
            self.raise_at(rank, channel)
        for rank in range(self._size):
            self.await_from(rank, seconds, channel)


class _LaterWork(Work):
    """A wait that runs on a thread of its own."""

    def __init__(self, channel: Any) -> None:
        super().__init__()
        self._channel = channel
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def _guard(self) -> Any:
        return self._lock

    def run(self, wait: Any) -> None:
        error: Optional[Exception] = None
        try:
            wait()
        except Exception as problem:  # belongs to whoever waits for this Work
            error = problem
        with self._lock:
            self._error, self._done = error, True
            told = self._base, self._watchers or ()
        self._ended.set()
        announce(self._channel, *told)

    def _drive(self, timeout: timedelta) -> None:
        seconds = timeout.total_seconds()
        if not self._ended.wait(seconds if seconds > 0 else None):
            from .._errors import TimeoutError

            raise TimeoutError(f"wait_signal: not finished after wait(timeout={seconds:g} s); wait again or raise the timeout", operation="wait_signal")

    def _poll(self, slice_ns: int) -> None:
        """The thread that waits sets the state itself."""
