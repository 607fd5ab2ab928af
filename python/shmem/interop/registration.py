"""Tells torch.distributed the name `shmem`. Cheap: what makes a group is imported when the first one is made."""

from __future__ import annotations

from typing import Any

NAME = "shmem"


def register() -> None:
    """Registers the backend `shmem` for cpu tensors; does nothing when it is registered. Threads: any."""
    from torch.distributed import Backend

    if NAME.upper() in Backend._plugins:
        return
    # A list: old torch walks a string letter by letter.
    Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])


def create(opts: Any, options: Any = None) -> Any:
    """Makes a group or a backend. Collective over its members. Blocks until they arrive, or the timeout."""
    from .process_group import create as make

    return make(opts, options)
