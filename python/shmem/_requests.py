"""Operations that run in the core while Python goes on."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Dict, List, Optional

from . import _abi, _call
from ._lib import library

_PENDING = _abi.STATUS["PENDING"]
_guard = threading.Lock()
_kept: Dict[int, Any] = {}  # request -> operands of requests whose Request object died before they ended


def keep_until_done(handle: int, operands: Any) -> None:
    """Keeps the operands of a forgotten request; they are looked at again at the next asynchronous call."""
    _kept[handle] = operands  # no lock: a collection may run this inside of reap, on its very thread


def reap() -> None:
    """Lets go of the operands of forgotten requests that have ended. Never blocks."""
    if not _kept:
        return
    lib = library()
    with _guard:
        for handle in list(_kept):
            if lib.request_wait(handle, 0) != _PENDING:
                lib.request_release(handle)
                del _kept[handle]


class Request:
    """An operation under way. Dropping it is safe: the operation goes on, and its operands live until it ends."""

    def __init__(self, handle: int, operation: str, operands: Any, *, words: int = 0, after: Optional[Callable[[List[int]], Any]] = None) -> None:
        """Made by operations with async_op=True, isend and irecv; handle 0 says that it has finished already."""
        reap()
        self.operation = operation
        self._handle = handle
        self._operands = operands
        self._words = words
        self._after = after
        self._result: Any = None
        self._error: Optional[BaseException] = None
        self._pid = os.getpid()
        self._getpid = os.getpid
        self._ending = threading.Lock()
        if handle == 0:
            self._end(0)

    def done(self) -> bool:
        """Whether it has ended, well or badly. Any thread; does not block."""
        return self._advance(0)

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits for the end and gives the result, or raises its error; False after a timeout of this wait alone.

        Any thread; blocks up to timeout; Ctrl-C leaves the wait and the operation goes on.
        """
        import time

        limit = None if timeout is None else time.monotonic() + timeout
        while not self._advance(_call.SLICE_NS if limit is None else max(0, min(_call.SLICE_NS, int((limit - time.monotonic()) * 1e9)))):
            if limit is not None and time.monotonic() >= limit:
                return False
        if self._error is not None:
            raise self._error
        return self._result

    def cancel(self) -> None:
        """Gives the operation up: a receive is withdrawn, a collective ends its team. Does not block."""
        from ._errors import CanceledError

        with self._ending:
            if self._handle:
                handle, self._handle = self._handle, 0
                library().request_release(handle)
                self._error = CanceledError(f"{self.operation}: canceled by this process", operation=self.operation)
                self._operands = None

    def _advance(self, slice_ns: int) -> bool:
        handle = self._handle
        if not handle:
            return self._settled()
        status = library().request_wait(handle, slice_ns)
        if status == _PENDING:
            return False
        with self._ending:  # another thread may have seen the end first, and released the handle
            if self._handle:
                self._end(status)
        return True

    def _settled(self) -> bool:
        with self._ending:  # the thread that took the handle may still be making the result
            return True

    def _end(self, status: int) -> None:
        handle, self._handle = self._handle, 0
        try:
            if status < 0:
                _call.fail(status, self.operation)
            words = _call.results(handle, self._words) if self._words and handle else []
            self._result = self._after(words) if self._after is not None else True
        except Exception as problem:
            self._error = problem
        finally:
            if handle:
                library().request_release(handle)
            self._operands = None
            self._after = None

    def __del__(self) -> None:
        """Leaves an unfinished operation running, unless in a forked child."""
        try:
            if self._handle and self._pid == self._getpid():
                keep_until_done(self._handle, (self._operands, self._after))
        except AttributeError:
            pass

    def __repr__(self) -> str:
        """Operation and state."""
        return f"Request({self.operation}, {'running' if self._handle else 'failed' if self._error else 'done'})"
