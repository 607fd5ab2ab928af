"""Ascend's `shmem.core`: init by a unique id, buffers, puts, gets and signals on streams.

Streams are ints or objects with such a number; 0 (and None where it is allowed) is the library's default stream.
"""

from __future__ import annotations

from . import direct as direct
from . import utils as utils
from .init_final import UniqueID, finalize, get_unique_id, get_version, init
from .memory import buffer, free, get_peer_buffer
from .rma import get, put, put_signal, quiet, signal_op, signal_wait

__all__ = [
    "UniqueID",
    "buffer",
    "finalize",
    "free",
    "get",
    "get_peer_buffer",
    "get_unique_id",
    "get_version",
    "init",
    "put",
    "put_signal",
    "quiet",
    "signal_op",
    "signal_wait",
]

