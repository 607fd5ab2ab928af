"""Whether torch will wait right after a call.

From 2.14 on the options say so (asyncOp). Before, most do not: then the caller is looked at. When it is torch's own function
with async_op=False, or its blocking send or recv, the operation may run in this thread; anything unknown is asynchronous.
"""

from __future__ import annotations

import inspect
import sys
from types import CodeType
from typing import Any, FrozenSet, Optional

import torch.distributed as dist

_COLLECTIVES = (
    "all_reduce",
    "all_reduce_coalesced",
    "reduce",
    "broadcast",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_coalesced",
    "gather",
    "scatter",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all_single",
    "all_to_all",
    "barrier",
)
_TOLD = hasattr(dist.AllreduceOptions(), "asyncOp")


def _codes(names: Any) -> FrozenSet[CodeType]:
    module = sys.modules["torch.distributed.distributed_c10d"]
    found = (getattr(module, name, None) for name in names)
    return frozenset(inspect.unwrap(function).__code__ for function in found if function is not None)


_old_callers: Optional[FrozenSet[CodeType]] = None
_MESSAGES = _codes(("send", "recv"))


def _told(opts: Any) -> bool:
    """True when the options say that torch waits at once."""
    return opts is not None and not opts.asyncOp


def _looked(opts: Any) -> bool:
    """The same for torch that does not say, from the caller of the calling method."""
    global _old_callers
    if _old_callers is None:
        _old_callers = _codes(_COLLECTIVES)
    frame = sys._getframe(2)
    return frame.f_code in _old_callers and not frame.f_locals.get("async_op", True)


is_sync = _told if _TOLD else _looked


def is_blocking_message(depth: int = 2) -> bool:
    """True inside dist.send or dist.recv, which wait at once; dist.isend, dist.irecv and other callers do not."""
    frame = sys._getframe(depth)
    for _ in range(2):
        if frame is None:
            return False
        if frame.f_code in _MESSAGES:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
