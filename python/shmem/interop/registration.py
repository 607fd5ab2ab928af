"""Tells torch.distributed the name `shmem`. Cheap: what makes a group is imported when the first one is made."""

from __future__ import annotations

import sys
from typing import Any, List

NAME = "shmem"


def register() -> None:
    """Registers the backend `shmem`, for npu tensors as well once torch_npu is imported; repeat it after importing that. Threads: any.

    hccl stays the default backend of npu tensors, as gloo stays that of cpu tensors.
    """
    from torch.distributed import Backend

    served = _served(Backend)
    if NAME.upper() in Backend._plugins:
        Backend.backend_capability[NAME] = served
        return
    # A list: old torch walks a string letter by letter.
    Backend.register_backend(NAME, create, extended_api=True, devices=served)


def _served(backend: Any) -> List[str]:
    """The devices to register: npu only where torch_npu has registered its own backend, so that ours never becomes the default."""
    defaults = getattr(backend, "default_device_backend_map", {})
    return ["cpu", "npu"] if "torch_npu" in sys.modules and "npu" in defaults else ["cpu"]


def create(opts: Any, options: Any = None) -> Any:
    """Makes a group or a backend. Collective over its members. Blocks until they arrive, or the timeout."""
    from .process_group import create as make

    return make(opts, options)
