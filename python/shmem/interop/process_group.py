"""The process group `shmem`, and which form of it a torch and a backend string get.

    torch >= 2.14, one backend for the group   hybrid: a ProcessGroup with the Backend registered inside (fast and complete)
    torch >= 2.14, a mixed string              the bare Backend, beside the others
    torch <  2.14                              a ProcessGroup; a mixed string raises, because torch would drop the others
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any, Dict, List, Optional

import torch
from torch.distributed import ProcessGroup

from .._errors import InvalidArgumentError, UnsupportedError
from . import npu
from .ops_channel import Channel
from .ops_exchange import Exchanges
from .process_group_dynamo import hide
from .process_group_memory import Memory
from .process_group_world import GroupWorld, in_place, open_default, open_subgroup
from .registration import NAME

# Backend can be subclassed from 2.14 on; FakeWork came with that.
HYBRID = hasattr(torch._C._distributed_c10d, "FakeWork")
_CPU = torch.device("cpu")


class ShmemProcessGroup(Memory, Exchanges, ProcessGroup):
    """torch's process group over a team of the core."""

    def __init__(self, store: Any, world: GroupWorld, channel: Channel, name: str) -> None:
        """Made by the creator function."""
        if HYBRID:
            super().__init__(store, channel.rank, channel.size)
        else:
            super().__init__(channel.rank, channel.size)  # type: ignore[call-arg]  # before torch 2.14
        self._world = world
        self._channel = channel
        self._group = name
        if HYBRID:
            self._register_inside(name)

    def _register_inside(self, name: str) -> None:
        self._backend = self._make_backend(name)
        self._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        for device in self._served():
            self._register_backend(device, ProcessGroup.BackendType.CUSTOM, self._backend)

    def _make_backend(self, name: str) -> Any:
        from .process_group_backend import ShmemBackend

        return ShmemBackend(self._world, self._channel, name)

    def _served(self) -> List[torch.device]:
        return [_CPU]

    def getBackendName(self) -> str:
        """The name in messages."""
        return "shmem"

    def getRank(self) -> int:
        """My rank in the group."""
        return self._channel.rank

    def getSize(self) -> int:
        """How many ranks the group has."""
        return self._channel.size

    @property
    def supports_window(self) -> bool:
        """Windows (dist.distributed_c10d._new_window) work."""
        return True

    def new_window(self, tensor: Optional[torch.Tensor] = None) -> Any:
        """Makes a one-sided window. Collective with a tensor. Blocks until every rank does."""
        from .window import Window

        return Window(self, tensor)

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the limit of operations that name none."""
        self._channel.set_timeout(timeout)

    _set_default_timeout = set_timeout

    def abort(self) -> None:
        """Gives up what is pending; peers in it are told. Does not block."""
        self._channel.abort()
        self.shutdown()

    def shutdown(self) -> None:
        """Ends the group; the last of a world waits for the other ranks (at most 30 s)."""
        if HYBRID:
            self._backend.shutdown()
        else:
            self._world.leave(self._channel, "destroyed")

    def _get_sequence_number_for_group(self) -> int:
        return self._channel.sequence

    def _set_sequence_number_for_group(self) -> None:
        """The count starts at 0 on every rank by itself."""

    def _wait_for_pending_works(self) -> None:
        self._channel.drain()


class _NoBackend:
    """What old torch gets when it asks a group without a registered backend for one."""

    supports_coalescing = False
    supports_splitting = False
    supports_shrinking = False
    supports_reconfigure = False
    supports_window = False
    supports_time_estimate = False


class OldProcessGroup(ShmemProcessGroup):
    """What torch before 2.14 needs besides: names and devices, which it keeps in a backend object that a Python group does not have."""

    _group_name = ""
    _group_desc = ""

    def setGroupName(self, name: str) -> None:
        """Keeps the name torch gives the group."""
        self._group_name = name

    def getGroupName(self) -> str:
        """The name torch gave the group."""
        return self._group_name

    def setGroupDesc(self, description: str) -> None:
        """Keeps the description torch gives the group."""
        self._group_desc = description

    def getGroupDesc(self) -> str:
        """The description torch gave the group."""
        return self._group_desc

    @property
    def group_name(self) -> Any:
        """The name torch gave the group."""
        return self._group_name

    @property
    def group_desc(self) -> str:
        """The description torch gave the group."""
        return self._group_desc

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    def _set_group_desc(self, description: str) -> None:
        self._group_desc = description

    @property
    def _device_types(self) -> List[torch.device]:
        return self._served()

    def _get_backend(self, device: Any) -> Any:
        # destroy_process_group of old torch tells a plug-in nothing; this question is all that reaches it.
        if sys._getframe(1).f_code.co_name == "_shutdown_backend":
            self.shutdown()
        return _NoBackend()


def create(opts: Any, options: Any = None) -> Any:
    """torch calls this for every group (extended_api): gives the process group, or the backend of a mixed string.

    Collective over the group's members. Blocks until they arrive, or the timeout.
    """
    mixed = _mixed(sys._getframe(1))
    if mixed and not HYBRID:
        raise UnsupportedError(
            f"the backend string {mixed!r} names several backends, and torch {torch.__version__} would create shmem alone; "
            "use 'shmem' (or one of the others) for the whole group, or torch 2.14 or newer"
        )
    kind = _backend_kind() if mixed else _group_kind()
    world, channel, name = _open(opts, options, not mixed or f"{npu.KIND}:{NAME}" in mixed.split(","))
    hide()  # everything that serves this group is loaded now
    return kind(world, channel, name) if mixed else kind(opts.store, world, channel, name)


def _group_kind() -> Any:
    """The class of a new group: programs that have torch_npu get the one that serves npu tensors as well."""
    if npu.loaded():
        from . import process_group_device as device

        return device.DeviceProcessGroup if HYBRID else device.OldDeviceProcessGroup
    return ShmemProcessGroup if HYBRID else OldProcessGroup


def _backend_kind() -> Any:
    if npu.loaded():
        from .process_group_device import DeviceBackend

        return DeviceBackend
    from .process_group_backend import ShmemBackend

    return ShmemBackend


def _open(opts: Any, options: Any, npus: bool) -> "tuple[GroupWorld, Channel, str]":
    members = list(opts.global_ranks_in_group)
    name = str(opts.group_id)
    if not members:
        world, channel = open_default(opts.store, opts.group_rank, opts.group_size, opts.timeout, options, npus)
    else:
        if members[opts.group_rank : opts.group_rank + 1] == [] or len(members) != opts.group_size:
            raise InvalidArgumentError(f"group {name}: rank {opts.group_rank} of {opts.group_size} does not fit the ranks {members}")
        world, channel = open_subgroup(opts.store, members, opts.group_rank, opts.timeout, options, npus)
    channel.in_place = in_place(options)
    return world, channel, name


def _mixed(frame: Any) -> str:
    """The backend string when torch is about to create other backends for the same group too, else ''."""
    for _ in range(3):
        config = frame.f_locals.get("backend_config") if frame is not None else None
        if config is not None and hasattr(config, "get_device_backend_map"):
            devices: Dict[str, str] = config.get_device_backend_map()
            several = len({str(name) for name in devices.values()}) > 1
            return ",".join(f"{device}:{name}" for device, name in devices.items()) if several else ""
        frame = frame.f_back if frame is not None else None
    return ""
