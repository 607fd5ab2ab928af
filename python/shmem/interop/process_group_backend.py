"""The bare backend, for torch >= 2.14: serves mixed strings ("cpu:shmem,cuda:gloo") and stands inside the hybrid group.

Everything reaches it through C++. Every supports_* property and `options` must be defined here: reading an inherited one
recurses without end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, List, Sequence

from torch._C._distributed_c10d import Backend

from .ops_channel import Channel
from .ops_exchange import Exchanges
from .process_group_memory import Memory
from .process_group_world import GroupWorld, open_split

# The debug wrapper of torch (DETAIL) keeps only the C++ half of a backend; Python's half lives here until shutdown.
_alive: List[Any] = []


class ShmemBackend(Memory, Exchanges, Backend):
    """torch's Backend over a team of the core."""

    def __init__(self, world: GroupWorld, channel: Channel, name: str) -> None:
        """Serves a team; made by the creator function or by split."""
        super().__init__(channel.rank, channel.size)
        self._world = world
        self._channel = channel
        self._group = name
        self._own_options: Any = None
        _alive.append(self)

    def getBackendName(self) -> str:
        """The name in messages."""
        return "shmem"

    @property
    def supports_splitting(self) -> bool:
        """split_group works: a part of the ranks becomes a team of the same world."""
        return True

    @property
    def supports_coalescing(self) -> bool:
        """start_coalescing gains nothing here; torch issues the operations one by one."""
        return False

    @property
    def supports_shrinking(self) -> bool:
        """Not offered: make a new group of the survivors."""
        return False

    @property
    def supports_reconfigure(self) -> bool:
        """Not offered: make a new group."""
        return False

    @property
    def supports_window(self) -> bool:
        """A backend cannot give C++ a window made in Python; the hybrid group can (init_process_group("shmem"))."""
        return False

    @property
    def supports_time_estimate(self) -> bool:
        """Not offered."""
        return False

    @property
    def _supports_time_estimate(self) -> bool:
        return False

    @property
    def options(self) -> Any:
        """torch's options object of this backend."""
        if self._own_options is None:
            self._own_options = Backend.Options("shmem")
        return self._own_options

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the limit of operations that name none."""
        self._channel.set_timeout(timeout)

    def abort(self) -> None:
        """Gives up what is pending; peers in it are told. Does not block."""
        self._channel.abort()

    def shutdown(self) -> None:
        """Ends the group; the last of a world waits for the other ranks (at most 30 s)."""
        if self in _alive:
            _alive.remove(self)
        self._world.leave(self._channel, "destroyed")

    def eager_connect_single_device(self, device: Any) -> None:
        """Nothing to do: a team is connected when it is made."""

    def perform_nocolor_split(self, device: Any) -> None:
        """Nothing to do: a team is made by its members alone."""

    def split(self, store: Any, ranks: Sequence[int], opts: Any) -> "ShmemBackend":
        """Makes the backend of a part of this group's ranks. Collective over them. Blocks until they arrive."""
        name = getattr(opts, "group_name", "") or f"{self._group}/split"
        world, channel = open_split(self._world, self._channel, list(ranks))
        return type(self)(world, channel, name)

    def _get_sequence_number_for_group(self) -> int:
        return self._channel.sequence

    def _set_sequence_number_for_group(self) -> None:
        """The count starts at 0 on every rank by itself."""

    def _wait_for_pending_works(self) -> None:
        self._channel.drain()

    def _enable_collectives_timing(self) -> None:
        """Works carry no timing; torch only offers to switch it on."""
