"""Which way the PEs of a new world find each other, and the way through a torch store.

The core knows the ways that need no Python (unique id, environment of our launcher or of MPI, endpoint, file, single).
This module adds what only Python can do: a job started by torchrun meets through torch's store.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any, Dict, NamedTuple, Optional

from . import _abi
from ._call import check
from ._errors import RendezvousError
from ._lib import library

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_counts: Dict[str, int] = {}


class Plan(NamedTuple):
    """How to come up: what goes into gshmem_options."""

    method: str
    rank: int
    size: int
    uid: Optional[bytes] = None
    reason: str = ""


def unique_id(interface: Optional[str] = None) -> bytes:
    """Makes the unique id of a new job: the caller will be PE 0; hand the bytes to the other PEs and keep them private.

    They hold the job's secret. The caller listens from now on, until the job is up or the process ends. Any thread; does not block.
    """
    out = (ctypes.c_uint8 * _abi.UID_BYTES)()
    check(library().uid_create(interface.encode() if interface else None, out), "unique_id")
    return bytes(out)


def started_by_torchrun() -> bool:
    """Whether the environment is torchrun's and nothing nearer (our launcher, a rendezvous) is set."""
    ours = "SHMEM_RANK" in os.environ or "SHMEM_RENDEZVOUS" in os.environ
    return not ours and all(name in os.environ for name in _TORCHRUN)


def through_store(store: Any, rank: int, size: int, interface: Optional[str], timeout: float, scope: str = "shmem") -> Plan:
    """Meets through any store with set, check and get (torch's are): PE 0 publishes a unique id, the others read it.

    The n-th use of a scope has its own key, so all PEs must use it equally often. Collective over the size PEs. Blocks up to timeout.
    """
    turn = _counts.get(scope, 0)
    _counts[scope] = turn + 1
    key = f"{scope}/{turn}/uid"
    if rank == 0:
        uid = unique_id(interface)
        store.set(key, uid.hex())
    else:
        uid = _poll(store, key, timeout, size)
    return Plan("uid", rank, size, uid, f"torch store, key {key}")


def _poll(store: Any, key: str, timeout: float, size: int) -> bytes:
    """Waits for a key in short steps, so that Ctrl-C works."""
    deadline = time.monotonic() + timeout
    pause = 0.001
    while not store.check([key]):
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"init: PE 0 of {size} did not publish its unique id within {timeout:.1f} s (key {key!r}); is rank 0 running and calling shmem.init?"
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    return bytes.fromhex(store.get(key).decode())


def from_torchrun(interface: Optional[str], timeout: float) -> Plan:
    """Meets through the store of torchrun's job, or of the process group when there is one already."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if size == 1:
        return Plan("single", 0, 1, None, "torchrun with one process")
    try:
        store = _torch_store(rank, size, timeout)
    except ImportError as problem:
        raise RendezvousError(
            "init: the environment is torchrun's but torch cannot be imported; start with shmem-run, or pass rank, size and endpoint"
        ) from problem
    run = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return through_store(store, rank, size, interface, timeout, f"shmem/{run}/{attempt}")


_kept_store: Any = None


def _torch_store(rank: int, size: int, timeout: float) -> Any:
    """The store of the initialized process group, else torchrun's own."""
    global _kept_store
    import datetime

    import torch.distributed as dist

    if dist.is_initialized():
        return dist.distributed_c10d._get_default_store()
    if _kept_store is None:
        agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        tcp = dist.TCPStore(  # type: ignore[attr-defined,unused-ignore]
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            size,
            rank == 0 and not agent,
            datetime.timedelta(seconds=max(timeout, 1)),
            multi_tenant=True,
            wait_for_workers=False,
        )
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        _kept_store = dist.PrefixStore(f"/shmem/attempt_{attempt}", tcp)  # type: ignore[attr-defined,unused-ignore]
    return _kept_store


def torch_is_imported() -> bool:
    """Whether torch is already in this process."""
    return "torch" in sys.modules
