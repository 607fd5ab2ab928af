"""Symmetric memory for PyTorch: every process owns an equally laid-out heap that all others read, write and update.

    import shmem

    shmem.init()                        # started by shmem-run, torchrun, MPI, or alone
    t = shmem.zeros(1024)               # a torch tensor at the same place on every PE
    shmem.put(t, mine, pe=1)            # no help from PE 1 needed
    shmem.barrier()
    shmem.all_reduce(t)
    shmem.finalize()

Importing starts nothing and imports neither torch nor numpy. Names are loaded when they are first used.
"""

from __future__ import annotations

from . import _conflict
from ._version import __version__

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from . import symm as symm
    from ._atomics import atomic_add as atomic_add
    from ._atomics import atomic_and as atomic_and
    from ._atomics import atomic_compare_swap as atomic_compare_swap
    from ._atomics import atomic_fetch as atomic_fetch
    from ._atomics import atomic_fetch_add as atomic_fetch_add
    from ._atomics import atomic_fetch_and as atomic_fetch_and
    from ._atomics import atomic_fetch_inc as atomic_fetch_inc
    from ._atomics import atomic_fetch_or as atomic_fetch_or
    from ._atomics import atomic_fetch_xor as atomic_fetch_xor
    from ._atomics import atomic_inc as atomic_inc
    from ._atomics import atomic_or as atomic_or
    from ._atomics import atomic_set as atomic_set
    from ._atomics import atomic_swap as atomic_swap
    from ._atomics import atomic_xor as atomic_xor
    from ._bootstrap import unique_id as unique_id
    from ._collectives import all_gather as all_gather
    from ._collectives import all_gather_v as all_gather_v
    from ._collectives import all_reduce as all_reduce
    from ._collectives import all_to_all as all_to_all
    from ._collectives import all_to_all_v as all_to_all_v
    from ._collectives import barrier as barrier
    from ._collectives import barrier_on_stream as barrier_on_stream
    from ._collectives import broadcast as broadcast
    from ._collectives import gather as gather
    from ._collectives import reduce as reduce
    from ._collectives import reduce_scatter as reduce_scatter
    from ._collectives import scatter as scatter
    from ._collectives import sync as sync
    from ._errors import *  # noqa: F403
    from ._memory import Buffer as Buffer
    from ._memory import buffer as buffer
    from ._memory import collect as collect
    from ._memory import empty as empty
    from ._memory import empty_like as empty_like
    from ._memory import free as free
    from ._memory import full as full
    from ._memory import is_symmetric as is_symmetric
    from ._memory import ones as ones
    from ._memory import peer as peer
    from ._memory import symmetric_copy as symmetric_copy
    from ._memory import zeros as zeros
    from ._memory import zeros_like as zeros_like
    from ._messages import Message as Message
    from ._messages import irecv as irecv
    from ._messages import isend as isend
    from ._messages import recv as recv
    from ._messages import send as send
    from ._requests import Request as Request
    from ._rma import Pieces as Pieces
    from ._rma import fence as fence
    from ._rma import g as g
    from ._rma import get as get
    from ._rma import get_many as get_many
    from ._rma import get_nbi as get_nbi
    from ._rma import iget as iget
    from ._rma import iput as iput
    from ._rma import p as p
    from ._rma import put as put
    from ._rma import put_many as put_many
    from ._rma import put_nbi as put_nbi
    from ._rma import quiet as quiet
    from ._signals import put_signal as put_signal
    from ._signals import put_signal_nbi as put_signal_nbi
    from ._signals import signal as signal
    from ._signals import test as test
    from ._signals import wait_on_stream as wait_on_stream
    from ._signals import wait_until as wait_until
    from ._team import Team as Team
    from ._world import World as World
    from ._world import abort as abort
    from ._world import current as current
    from ._world import finalize as finalize
    from ._world import heap_stats as heap_stats
    from ._world import info as info
    from ._world import init as init
    from ._world import is_initialized as is_initialized
    from ._world import my_pe as my_pe
    from ._world import n_pes as n_pes

# The surface: module -> names. Everything else of the package is private.
_SURFACE: Dict[str, str] = {
    "_atomics": "atomic_add atomic_and atomic_compare_swap atomic_fetch atomic_fetch_add atomic_fetch_and atomic_fetch_inc atomic_fetch_or "
    "atomic_fetch_xor atomic_inc atomic_or atomic_set atomic_swap atomic_xor",
    "_bootstrap": "unique_id",
    "_collectives": "all_gather all_gather_v all_reduce all_to_all all_to_all_v barrier barrier_on_stream broadcast gather reduce reduce_scatter scatter sync",
    "_errors": "AbortedError AlignmentError AsymmetricAllocationError AuthenticationError CallError CanceledError ConfigError FinalizedError "
    "ForkedError HeapExhaustedError InternalError InvalidArgumentError InvalidPEError LibraryError MismatchError NotInitializedError "
    "NotSymmetricError ObjectError OutOfMemoryError PeerDeadError PeerError PeerLeftError PeerUnreachableError PoisonedError ProcessError "
    "RendezvousError ShmemError StaleHandleError SystemError TimeoutError TruncatedError UnsupportedError VersionError",
    "_memory": "Buffer buffer collect empty empty_like free full is_symmetric ones peer symmetric_copy zeros zeros_like",
    "_messages": "Message irecv isend recv send",
    "_requests": "Request",
    "_rma": "Pieces fence g get get_many get_nbi iget iput p put put_many put_nbi quiet",
    "_signals": "put_signal put_signal_nbi signal test wait_on_stream wait_until",
    "_team": "Team",
    "_world": "World abort current finalize heap_stats info init is_initialized my_pe n_pes",
}
_SUBMODULES = ("compat", "core", "interop", "symm")
# Ascend SHMEM's own names (shmem.compat has them all); they are no part of `from shmem import *`.
_ASCEND = (
    "InitAttr InitStatus OpEngineType OptionalAttr aclshmem_align aclshmem_calloc aclshmem_create_tensor aclshmem_finalize aclshmem_finialize "
    "aclshmem_free aclshmem_free_tensor aclshmem_get_unique_id aclshmem_getmem aclshmem_getmem_nbi aclshmem_global_exit aclshmem_info_get_name "
    "aclshmem_info_get_version aclshmem_init aclshmem_init_using_unique_id aclshmem_malloc aclshmem_ptr aclshmem_putmem aclshmem_putmem_nbi "
    "aclshmem_signal_wait_until aclshmem_team_get_config aclshmemx_get_heap_base aclshmemx_init_status aclshmemx_putmem_signal "
    "aclshmemx_putmem_signal_nbi calc_nbytes construct_tensor_from_ptr get_ffts_config pe_count set_conf_store_tls set_conf_store_tls_key "
    "set_extern_logger set_log_level team_destroy team_my_pe team_n_pes team_split_2d team_split_strided team_translate_pe _NATIVE_LOADED"
)
_HOME = {name: module for module, names in _SURFACE.items() for name in names.split()}

__all__ = sorted(_HOME) + ["__version__"]  # noqa: PLE0605

_conflict.warn()


def __getattr__(name: str) -> Any:
    """Loads a public name from its module at first use."""
    import importlib

    home = _HOME.get(name)
    if home is not None:
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    if name in _ASCEND.split():
        return getattr(importlib.import_module(f"{__name__}.compat"), name)
    if name in _SUBMODULES or name == "_pyshmem":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    """The public names."""
    return list(__all__)
