"""Teams: ordered sets of a world's PEs with collectives of their own."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from . import _call
from ._errors import InvalidArgumentError
from ._lib import library

if TYPE_CHECKING:
    from ._world import World


class Team:
    """An ordered set of PEs of one world; ranks count from 0 within it.

    Teams are independent of each other: collectives of one never disturb another, whatever their overlap.
    `rank` is this PE's rank in it, `size` how many members there are, `world` where it belongs.
    """

    def __init__(self, world: "World", handle: int, *, whole: bool = False) -> None:
        """Takes over a team handle of the core; users get teams from a world, split_* and Team.create."""
        lib = library()
        self.world = world
        self.handle = handle
        self.rank = _call.check(lib.team_my_pe(handle), "team_my_pe")
        self.size = _call.check(lib.team_n_pes(handle), "team_n_pes")
        self._whole = whole
        self._destroyed = whole  # the world's own team ends with the world
        self._destroy = lib.team_destroy
        self._getpid = os.getpid
        self._pid = os.getpid()

    @staticmethod
    def create(pes: Sequence[int], *, key: int = 0, world: Optional["World"] = None, timeout: Optional[float] = None) -> "Team":
        """Makes a team of any PEs in any order, by its members alone. Collective over the listed PEs. Blocks until they arrive.

        `key` tells apart teams that are made at the same time with the same members: all members give the same, each use once.
        """
        from ._world import current

        where = world if world is not None else current()
        listed = [int(pe) for pe in pes]
        if not listed:
            raise InvalidArgumentError("Team.create: the list of PEs is empty; a team has at least one member")
        array = (ctypes.c_int32 * len(listed))(*listed)
        words = _call.start(library().team_create_start, (where.handle, array, len(listed), key, _call.timeout_ns(timeout)), 1, "team_create")
        return Team(where, words[0])

    def split_strided(self, start: int, stride: int, size: int, *, timeout: Optional[float] = None) -> Optional["Team"]:
        """Splits off ranks start, start+stride, ...; others get None. Collective. Blocks until all arrive."""
        arguments = (self.handle, start, stride, size, _call.timeout_ns(timeout))
        words = _call.start(library().team_split_strided_start, arguments, 1, "team_split_strided")
        return Team(self.world, words[0]) if words[0] else None

    def split_2d(self, xrange: int, *, timeout: Optional[float] = None) -> Tuple["Team", "Team"]:
        """Splits into rows of xrange and columns; gives my row and my column. Collective. Blocks until all arrive."""
        words = _call.start(library().team_split_2d_start, (self.handle, xrange, _call.timeout_ns(timeout)), 2, "team_split_2d")
        return Team(self.world, words[0]), Team(self.world, words[1])

    def translate(self, rank: int, to: Optional["Team"] = None) -> Optional[int]:
        """The rank in another team (the world's without one) of a rank here; None when that PE is no member. Does not block."""
        other = to if to is not None else self.world.team
        out = ctypes.c_int32()
        _call.check(library().team_translate(self.handle, rank, other.handle, ctypes.byref(out)), "team_translate")
        return out.value if out.value >= 0 else None

    @property
    def pes(self) -> List[int]:
        """The world PE of each rank. Does not block."""
        found = [self.translate(rank) for rank in range(self.size)]
        return [pe for pe in found if pe is not None]

    def set_timeout(self, timeout: Optional[float]) -> None:
        """Sets the default deadline of this team's operations here. Does not block."""
        _call.check(library().team_set_timeout(self.handle, _call.timeout_ns(timeout)), "team_set_timeout")

    def check(self) -> None:
        """Raises what poisoned the team, and does nothing while it is healthy. Does not block."""
        _call.check(library().team_health(self.handle), "team_health")

    def destroy(self) -> None:
        """Ends this handle; shared resources go when all members have done so. Repeating it does nothing. Does not block."""
        if not self._destroyed:
            self._destroyed = True
            _call.check(self._destroy(self.handle), "team_destroy")

    def abort(self) -> None:
        """Ends this handle and gives up what the team has under way, kernels too: here, and in seconds at members that wait for it. Does not block."""
        if not self._destroyed:
            self._destroyed = True
            _call.check(library().team_abort(self.handle), "team_abort")

    def __del__(self) -> None:
        """Destroys the handle, unless in a forked child."""
        try:
            if not self._destroyed and self._pid == self._getpid():
                self._destroyed = True
                self._destroy(self.handle)
        except AttributeError:
            pass

    def __enter__(self) -> "Team":
        """Gives itself."""
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """Destroys the handle."""
        self.destroy()

    def __repr__(self) -> str:
        """Rank and size."""
        return f"Team(rank={self.rank}, size={self.size}{', world' if self._whole else ''})"


def resolve(team: Optional[Team]) -> Team:
    """The team given, else the current world's."""
    if team is not None:
        return team
    from ._world import current

    return current().team
