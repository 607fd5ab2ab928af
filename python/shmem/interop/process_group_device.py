"""The process group and the backend of programs that have torch_npu: the same as without, serving npu tensors as well."""

from __future__ import annotations

from typing import Any, List

import torch

from . import npu
from .ops_device import DeviceExchanges
from .process_group import OldProcessGroup, ShmemProcessGroup
from .process_group_backend import ShmemBackend


class DeviceBackend(DeviceExchanges, ShmemBackend):
    """torch's Backend over a team of the core, for cpu and npu tensors."""


class _Served(DeviceExchanges):
    """What both forms of the group add."""

    _world: Any

    def _make_backend(self, name: str) -> Any:
        return DeviceBackend(self._world, self._channel, name)

    def _served(self) -> List[torch.device]:
        return [torch.device("cpu"), torch.device(npu.KIND)]


class DeviceProcessGroup(_Served, ShmemProcessGroup):
    """torch's process group over a team of the core, for cpu and npu tensors."""


class OldDeviceProcessGroup(_Served, OldProcessGroup):
    """The same for torch before 2.14."""
