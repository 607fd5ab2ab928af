"""Worlds behind process groups: how a group comes up through torch's store, shares its world with sub-groups, and ends.

    default group  -> one world per creation, or the world of shmem.init() when every rank has the same one
    new_group      -> a team of the default group's world, made by its members alone
    new_group(backend="shmem") beside another default -> the same rule: the world of shmem.init() when its ranks are this
                      group's (so that symmetric tensors are known to it), else a world of its own

A group that made its world finalizes it; one that borrowed it destroys its team alone.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import logging
import os
import sys
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import _bootstrap, _call, _world
from .._errors import InvalidArgumentError, RendezvousError, ShmemError
from .._lib import library
from . import npu
from .ops_channel import Channel
from .work_completions import Completions

_log = logging.getLogger("shmem.torch")
_REUSE = b"reuse"
_FAILED = b"failed:"
_WITH_NPU = b"npu:"
_DEVICE_HEAP = "512M"
# Leaving waits for the others so that nobody loses memory under his feet, yet a script must end.
_LEAVE_SECONDS = 30.0
_EXIT_SECONDS = 2.0
_OPTIONS = ("heap", "transport", "interface", "label", "device", "device_heap")  # of the world
_OF_GROUP = "in_place"  # symmetric npu tensors are used where they lie: a promise that all members give theirs


class GroupWorld:
    """A world as process groups use it: its completion thread, and the groups that live in it."""

    def __init__(self, world: Any, owned: bool) -> None:
        """Starts no thread."""
        self.world = world
        self.owned = owned
        self.pid = os.getpid()
        self.completions = Completions(world.handle)
        self.channels: List[Channel] = []
        # How many teams each set of ranks has made, equal on its members; of the world, which several of these may use in turn.
        self._made: Dict[Tuple[int, ...], int] = _teams.setdefault(world, {})
        self._lock = threading.Lock()
        self._closed = False
        _live.append(self)

    @property
    def alive(self) -> bool:
        """Whether groups of it can still communicate."""
        return not self._closed and self.pid == os.getpid() and bool(self.world.alive)

    def channel(self, members: Sequence[int], rank: int, timeout: timedelta) -> Channel:
        """Makes a team of some ranks, by them alone, and the way into it. Collective over the members. Blocks until they arrive.

        Members tell their teams apart by counting them. torch's group names would not do: ranks that are not asked
        (use_local_synchronization) count differently.
        """
        ranks = tuple(members)
        with self._lock:
            turn = self._made[ranks] = self._made.get(ranks, 0) + 1
        pes = (ctypes.c_int32 * len(members))(*members)
        limit = _call.timeout_ns(timeout.total_seconds())
        arguments = (self.world.handle, pes, len(members), _key(ranks, turn), limit)
        words = _call.start(library().team_create_start, arguments, 1, "new_group")
        made = Channel(words[0], rank, len(members), timeout, self.completions)
        if self.world.device is not None:
            from .npu_scratch import open_scratch

            try:
                made.scratch, made.without_scratch = open_scratch(self.world, made.team, rank, len(members))
            except BaseException:
                library().team_destroy(made.team)
                raise
        with self._lock:
            self.channels.append(made)
        return made

    def leave(self, channel: Channel, why: str) -> None:
        """Ends one group; the last one ends the world when groups made it. Blocks: the last, until the others leave too (at most 30 s)."""
        channel.close(why)
        with self._lock:
            if channel in self.channels:
                self.channels.remove(channel)
            last = not self.channels
        if last:
            self.close(min(_LEAVE_SECONDS, channel.timeout.total_seconds()) if not channel.aborted else 0.0)

    def close(self, wait_seconds: float) -> None:
        """Ends the world (if groups made it) and its threads. Safe to repeat. Blocks: up to wait_seconds."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            channels, self.channels = self.channels, []
        for channel in channels:
            channel.close("its world was closed")
        if self in _live:
            _live.remove(self)
        try:
            if self.owned and self.world.alive:
                self.world.finalize(wait_seconds)
        except ShmemError as problem:
            _log.warning("leaving the world of a process group: %s", problem)
        finally:
            self.completions.close()


_live: List[GroupWorld] = []
_teams: "weakref.WeakKeyDictionary[Any, Dict[Tuple[int, ...], int]]" = weakref.WeakKeyDictionary()
_default: Optional[GroupWorld] = None


def _key(ranks: Tuple[int, ...], turn: int) -> int:
    """The number that tells teams of the same members apart; equal on all members, new for every group."""
    return int.from_bytes(hashlib.blake2b(f"torch/{turn}/{ranks}".encode(), digest_size=8).digest(), "little") | 1


def paths() -> Dict[str, int]:
    """How many operations of device tensors went which way, over all groups that are up."""
    total: Dict[str, int] = {}
    for world in _live:
        for channel in world.channels:
            for path, count in channel.paths.items():
                total[path] = total.get(path, 0) + count
    return total


def scratches() -> List[Dict[str, Any]]:
    """For each group in a world with a device: its ranks, the bytes of its scratch there, and why it has none."""
    return [
        {"size": channel.size, "scratch": channel.scratch.nbytes if channel.scratch is not None else 0, "reason": channel.without_scratch}
        for world in _live
        if world.world.device is not None
        for channel in world.channels
    ]


def default_world() -> Optional[GroupWorld]:
    """The world of the default group, while it is up."""
    return _default if _default is not None and _default.alive else None


def open_default(store: Any, rank: int, size: int, timeout: timedelta, options: Any, npus: bool = True) -> "tuple[GroupWorld, Channel]":
    """The world and channel of a new default group; `npus`: it is to serve npu tensors as well. Collective over all ranks. Blocks until they arrive."""
    global _default
    stale = default_world()
    if stale is not None:  # torch before 2.14 does not tell a plug-in that its group was destroyed
        stale.close(min(_LEAVE_SECONDS, timeout.total_seconds()))
    made = _open(store, rank, size, timeout, options, npus)
    _default = made
    return made, made.channel(range(size), rank, timeout)


def open_subgroup(
    store: Any, members: Sequence[int], rank: int, timeout: timedelta, options: Any, npus: bool = True
) -> "tuple[GroupWorld, Channel]":
    """The world and channel of new_group: a team of the default world, or a world of its own. Collective over the members."""
    world = default_world()
    if world is None:
        world = _open(store, rank, len(members), timeout, options, npus)
        return world, world.channel(range(len(members)), rank, timeout)
    if _chosen(options):
        raise InvalidArgumentError(f"pg_options {sorted(_chosen(options))} belong to the world; give them to init_process_group")
    return world, world.channel(members, rank, timeout)


def open_split(world: GroupWorld, parent: Channel, ranks: Sequence[int]) -> "tuple[GroupWorld, Channel]":
    """The channel of some ranks of a group: a team of its world. Collective over those ranks. Blocks until they arrive."""
    members = [translate(parent, rank, world) for rank in ranks]
    channel = world.channel(members, list(ranks).index(parent.rank), parent.timeout)
    channel.in_place = parent.in_place
    return world, channel


def translate(channel: Channel, rank: int, world: GroupWorld) -> int:
    """The world PE behind a group rank."""
    found = ctypes.c_int32()
    _call.check(library().team_translate(channel.team, rank, world.world.team.handle, ctypes.byref(found)), "translate")
    return found.value


def _chosen(options: Any) -> Dict[str, Any]:
    """What the user gave as pg_options for the world: nothing, torch's own options object, or a dict of ours."""
    if options is None or not isinstance(options, dict):
        return {}
    unknown = sorted(set(options) - {*_OPTIONS, _OF_GROUP})
    if unknown:
        raise InvalidArgumentError(f"pg_options has unknown keys {unknown}; known are {', '.join((*_OPTIONS, _OF_GROUP))}")
    return {key: value for key, value in options.items() if key != _OF_GROUP}


def in_place(options: Any) -> bool:
    """Whether pg_options promise that the members give their symmetric npu tensors together."""
    return isinstance(options, dict) and bool(options.get(_OF_GROUP))


def _open(store: Any, rank: int, size: int, timeout: timedelta, options: Any, npus: bool) -> GroupWorld:
    """Meets through the store: borrows the world of shmem.init() when every rank has one like this group, else makes a new one.

    The store may be older than this group (torchrun's outlives a restart of the group): each rank counts its visits in the
    store itself, so that no rank reads an older key.
    """
    turn = store.add(f"shmem/visits/{rank}", 1)
    prefix = f"shmem/{turn}"
    seconds = timeout.total_seconds()
    chosen = _chosen(options)
    mine = _borrowable(rank, size) if not chosen else None
    npus = npus and _wants_npu(chosen)
    if size == 1:
        return _over(mine) if mine is not None else GroupWorld(_world.World(0, 1, timeout=seconds, **(_with_npu() if npus else {}), **chosen), True)
    store.add(f"{prefix}/has", 1 if mine is not None else 0)
    store.add(f"{prefix}/npu", 1 if npus else 0)
    store.add(f"{prefix}/came", 1)
    if rank == 0:
        word = _publish(store, prefix, size, seconds, mine is not None, npus, chosen)
    else:
        word = _await(store, prefix, seconds, size)
    if word == _REUSE:
        return _over(mine)
    if word.startswith(_WITH_NPU):
        word, chosen = word[len(_WITH_NPU) :], {**_with_npu(), **chosen}
    return GroupWorld(_world.World(rank, size, uid=word, timeout=seconds, **chosen), True)


def _wants_npu(chosen: Dict[str, Any]) -> bool:
    """Whether this rank's program uses its npu and says nothing about ours: then a world that groups make gets the device, where every rank does.

    torch_npu being there says nothing: torch imports it by itself, also in programs of cpu tensors.
    """
    return npu.loaded() and "device" not in chosen and "SHMEM_DEVICE" not in os.environ and bool(npu.runtime().is_initialized())


def _with_npu() -> Dict[str, Any]:
    """What such a world is made with: the device that torch.npu uses; its heap holds little but the groups' scratch."""
    return {"device": f"auto:{npu.runtime().current_device()}", **({} if "SHMEM_DEVICE_SIZE" in os.environ else {"device_heap": _DEVICE_HEAP})}


def _over(world: Any) -> GroupWorld:
    """Groups that borrow one world share its completion thread: two would take each other's completions."""
    for found in _live:
        if found.world is world and found.alive:
            return found
    return GroupWorld(world, False)


def _borrowable(rank: int, size: int) -> Any:
    """The world of shmem.init() when it has this size and this rank in it."""
    if not _world.is_initialized():
        return None
    world = _world.current()
    return world if (world.rank, world.size) == (rank, size) else None


def _publish(store: Any, prefix: str, size: int, seconds: float, has: bool, npus: bool, chosen: Dict[str, Any]) -> bytes:
    """Rank 0 decides and says so: reuse, or the unique id of a new world, with a device when every rank wants one."""
    word = b""
    try:
        if has or npus:
            _until(lambda: store.add(f"{prefix}/came", 0) >= size, seconds, f"{size} ranks to create the process group")
            if store.add(f"{prefix}/has", 0) == size:
                word = _REUSE
        if not word:
            word = (_WITH_NPU if npus and store.add(f"{prefix}/npu", 0) == size else b"") + _bootstrap.unique_id(chosen.get("interface"))
    except BaseException as problem:
        store.set(f"{prefix}/word", _FAILED + str(problem).encode())
        raise
    store.set(f"{prefix}/word", word if word == _REUSE else word.hex().encode())
    return word


def _await(store: Any, prefix: str, seconds: float, size: int) -> bytes:
    """The other ranks hear it."""
    _until(lambda: store.check([f"{prefix}/word"]), seconds, f"rank 0 of {size} to create the process group")
    said = bytes(store.get(f"{prefix}/word"))
    if said.startswith(_FAILED):
        raise RendezvousError(f"rank 0 could not create the process group: {said[len(_FAILED) :].decode('utf-8', 'replace')}", pe=0)
    return said if said == _REUSE else bytes.fromhex(said.decode())


def _until(true: Any, seconds: float, what: str) -> None:
    """Looks again and again, in short steps, so that Ctrl-C works."""
    started = time.monotonic()
    pause = 0.0005
    while not true():
        if time.monotonic() - started > seconds:
            raise RendezvousError(f"waited {seconds:.1f} s for {what}; start all ranks, or give init_process_group a longer timeout")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


@atexit.register
def _leave_at_exit() -> None:
    """A script may end without destroy_process_group: threads end before the interpreter; peers are told, nobody is waited for.

    What was started and not waited for gets a moment to end, unless the script ends with an exception.
    """
    mine = [world for world in _live if world.pid == os.getpid()]
    for world in mine:
        if not hasattr(sys, "last_value"):
            for channel in list(world.channels):
                if channel.courier is not None:
                    channel.courier.drain(_EXIT_SECONDS)
            world.completions.settle_all(_EXIT_SECONDS)
        world.close(0.0)
