"""The process group of a pool's processes: made once, used by many tests."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=150)
NEW = hasattr(torch._C._distributed_c10d, "FakeWork")  # torch >= 2.14: the hybrid form


def join(ctx: Any, backend: str = "shmem", **more: Any) -> None:
    """Makes the default group with a store of this run; leaves an existing one of the same backend alone."""
    if dist.is_initialized():
        if dist.get_backend() == backend and not more:
            return
        dist.destroy_process_group()
    register()
    _joined.append(backend)  # a FileStore deletes its file when it dies, so no two share one
    store = dist.FileStore(os.path.join(ctx.scratch, f"store-{len(_joined)}"), ctx.n)
    dist.init_process_group(backend, store=store, rank=ctx.me, world_size=ctx.n, timeout=more.pop("timeout", TIMEOUT), **more)


def leave() -> None:
    """Ends the default group."""
    if dist.is_initialized():
        dist.destroy_process_group()


def register() -> None:
    """What the entry point of an installed package does."""
    from shmem.interop.registration import register

    register()


def gloo(ctx: Any) -> Any:
    """A gloo group of the same ranks, to compare with; made once per process."""
    found = _gloo.get(id(dist.group.WORLD))
    if found is None:
        found = _gloo[id(dist.group.WORLD)] = dist.new_group(backend="gloo")
    return found


def tell(ctx: Any, what: str) -> None:
    """Says through a file that this rank is there: no operation of any group, so that nobody's waiting is disturbed."""
    open(os.path.join(ctx.scratch, f"{what}.{ctx.me}"), "w").close()


def told(ctx: Any, what: str, ranks: Any, seconds: float = 120) -> None:
    """Waits until ranks have told."""
    end = time.monotonic() + seconds
    while not all(os.path.exists(os.path.join(ctx.scratch, f"{what}.{rank}")) for rank in ranks):
        assert time.monotonic() < end, f"{what}: not all of {ranks} came to it"
        time.sleep(0.005)


_gloo: dict = {}
_joined: list = []
