"""From a C call to Python: status to exception, and waits that Ctrl-C can leave.

A call that can wait runs in slices of at most SLICE_NS. Between two slices the interpreter runs signal handlers; what they
raise ends the wait and gives the operation up (gshmem_request_release).
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, List, Optional, Tuple

from . import _abi
from ._errors import InvalidArgumentError, from_status
from ._lib import library

SLICE_NS = 50_000_000
_PENDING = _abi.STATUS["PENDING"]
_byref = ctypes.byref
_Word = ctypes.c_uint64


def fail(status: int, operation: Optional[str] = None) -> None:
    """Raises the exception of a negative status, with the core's words."""
    text = library().last_error()
    raise from_status(status, text.decode("utf-8", "replace") if text else "", operation)


def check(status: int, operation: Optional[str] = None) -> int:
    """Gives a status back unless it is an error, which it raises."""
    if status < 0:
        fail(status, operation)
    return status


def timeout_ns(timeout: Optional[float]) -> int:
    """Seconds as the core wants them: None is the default of the team or world, infinity none, 0 polls."""
    if timeout is None:
        return _abi.DEFAULT_TIMEOUT
    if timeout != timeout or timeout < 0:
        raise InvalidArgumentError(f"timeout is {timeout!r}; give seconds >= 0, float('inf') for none, or None for the default")
    if math.isinf(timeout) or timeout > 9e9:
        return _abi.FOREVER
    return int(timeout * 1e9)


def finish(request: int, operation: Optional[str] = None, words: int = 0) -> List[int]:
    """Waits for a request that is pending, then takes its result words and releases it.

    An exception out of a signal handler (Ctrl-C) gives the operation up.
    """
    release = library().request_release
    try:
        return _finish(request, operation, words)
    finally:
        release(request)


def _finish(request: int, operation: Optional[str], words: int) -> List[int]:
    wait = library().request_wait
    status = _PENDING
    while status == _PENDING:
        status = wait(request, SLICE_NS)
    if status < 0:
        fail(status, operation)
    return results(request, words) if words else []


def results(request: int, words: int) -> List[int]:
    """The result words of a finished request."""
    out = (_Word * words)()
    check(library().request_result(request, out, words))
    return list(out)


def start(function: Callable[..., int], arguments: Tuple[Any, ...], words: int = 0, operation: Optional[str] = None) -> List[int]:
    """Runs a *_start function (its last two arguments, slice_ns and request_out, are supplied here) to its end."""
    request = _Word()
    release = library().request_release
    try:  # a signal handler may raise as soon as the function, which waits for a slice, has returned
        status = function(*arguments, SLICE_NS, _byref(request))
        if status < 0:
            fail(status, operation)
        return _finish(request.value, operation, words) if status or words else []
    finally:
        if request.value:
            release(request.value)


def left(request: Any) -> None:
    """Gives up what a start function began when a signal handler raised before the start's answer was looked at.

    `request` is the word for its handle. What was released before is not found any more, which is fine.
    """
    if request.value:
        library().request_release(request.value)
