"""What a collective gives back to torch: something to wait for, to ask, and to hang callbacks on.

    pending --(the core's engine finishes it)--> done
       |                                          |-- fine: the results are where they belong
       '-- wait() may be called by anyone, any number of times; the first to see the end carries the results out

A Work of an asynchronous call completes without a call from its owner: the completion thread (work_completions.py) sees the
end of the request, copies staged results home and completes the future.
"""

from __future__ import annotations

import ctypes
import threading
import time
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

import torch
from torch._C._distributed_c10d import Work as _TorchWork

from .. import _abi
from .._errors import MismatchError, TimeoutError, from_status
from .._lib import library
from .ops_buffers import Copies, carry_out

SLICE_NS = 50_000_000
_PENDING = _abi.STATUS["PENDING"]
_NO_LIMIT = timedelta(0)
_Words = ctypes.c_uint64 * 3


def error_of(status: int, operation: str) -> Exception:
    """The exception of a failed call, with the core's words of this thread."""
    text = library().last_error()
    return from_status(status, text.decode("utf-8", "replace") if text else "", operation)


class Work(_TorchWork):
    """An operation of a process group. Threads: any method on any thread."""

    _done = False
    _waited = False  # nobody will come for it through C++ any more
    _error: Optional[Exception] = None
    _result: Sequence[torch.Tensor] = ()
    _source = -1
    _base: Any = None  # the future that the end completes ...
    _future: Any = None  # ... and the one given out, which carries the error where C++ can see it
    _watchers: Optional[List[Callable[[], None]]] = None

    def wait(self, timeout: timedelta = _NO_LIMIT) -> bool:
        """Waits for the end; raises what went wrong. Blocks: until done, or for `timeout` when one is given."""
        if not self._done:
            self._drive(timeout)
        self._waited = True
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """The same as wait(): results in host memory need no stream."""
        self.wait()

    def is_completed(self) -> bool:
        """True once the operation ended, well or not. Blocks: no."""
        if not self._done:
            self._poll(0)
        return self._done

    def is_success(self) -> bool:
        """True once the operation ended well."""
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[Exception]:
        """What went wrong, or None."""
        return self._error

    def result(self) -> List[torch.Tensor]:
        """The tensors the operation wrote."""
        return list(self._result)

    def source_rank(self) -> int:
        """The rank a message came from."""
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """A torch future of the written tensors, completed by another thread; an error is one that C++ sees too."""
        if self._future is None:
            self._make_future()
        return self._future

    def _make_future(self) -> None:
        base: Any = self._new_future()
        # A result of set_exception is a value to C++ (DDP would take it for success); an exception out of a callback is not.
        future = base.then(lambda _: self._value())
        with self._guard():
            if self._future is not None:
                return
            self._base, self._future = base, future
            ended = self._done
        if ended:
            base.set_result(None)

    def _new_future(self) -> Any:
        return torch.futures.Future()

    def _value(self) -> List[torch.Tensor]:
        self._waited = True
        if self._error is not None:
            raise self._error
        return list(self._result)

    def _guard(self) -> Any:
        return _finished_guard

    def _drive(self, timeout: timedelta) -> None:
        raise NotImplementedError

    def _poll(self, slice_ns: int) -> None:
        raise NotImplementedError

    def watch(self, callback: Callable[[], None]) -> None:
        """Calls back once when the operation has ended, at once when it has already."""
        with self._guard():
            if not self._done:
                if self._watchers is None:
                    self._watchers = []
                self._watchers.append(callback)
                return
        callback()


_finished_guard = threading.Lock()


class FinishedWork(Work):
    """An operation that ended before its call returned."""

    _done = True


class PendingWork(Work):
    """An operation the core is running; `request` names it there."""

    def __init__(self, channel: Any, operation: str, keep: Any, after: Copies, result: Sequence[torch.Tensor]) -> None:
        """Holds everything the operation reads and writes until it has ended."""
        super().__init__()
        self._channel = channel
        self._operation = operation
        self._keep = keep
        self._after = after
        self._result = result
        self._lock = threading.Lock()
        self.request = 0
        self._expected = -1  # bytes a receive must bring, -1 for other operations

    def _guard(self) -> Any:
        return self._lock

    def _drive(self, timeout: timedelta) -> None:
        seconds = timeout.total_seconds()
        started = time.monotonic()
        while not self._done:
            slice_ns = SLICE_NS
            if seconds > 0:
                left = seconds - (time.monotonic() - started)
                if left <= 0:
                    raise TimeoutError(
                        f"{self._operation}: not finished after wait(timeout={seconds:g} s); it goes on, wait again or raise the timeout",
                        operation=self._operation,
                    )
                slice_ns = min(slice_ns, int(left * 1e9) + 1)
            self._poll(slice_ns)

    def _poll(self, slice_ns: int) -> None:
        with self._lock:
            if self._done:
                return
            status = library().request_wait(self.request, slice_ns)
            if status == _PENDING:
                return
            told = self._end(None if status >= 0 else error_of(status, self._operation))
        self._announce(told)

    def settle(self) -> None:
        """The core says the request has ended: take the outcome and give the request back. Called once, by the completion thread."""
        self._poll(0)
        with self._lock:
            self._release()

    def fail(self, error: Exception) -> None:
        """Gives the operation up and ends it with this error: its group was aborted, or its world is gone."""
        with self._lock:
            self._release()
            if self._done:
                return
            told = self._end(error)
        self._announce(told)

    def _release(self) -> None:
        request, self.request = self.request, 0
        if request:
            library().request_release(request)

    def _end(self, error: Optional[Exception]) -> Any:
        """Carries the results out and gives what is to be told. The caller holds the lock."""
        try:
            if error is None and self._expected >= 0:
                error = self._take_message()
            if error is None and self._after:
                carry_out(self._after)
        except Exception as problem:  # a copy home failed: the waiter must hear of it, not this thread
            error = problem
        self._error = error
        self._keep = None
        self._after = []
        self._done = True
        return self._base, self._watchers or ()

    def _take_message(self) -> Optional[Exception]:
        words = _Words()
        status = library().request_result(self.request, words, 3)
        if status < 0:
            return error_of(status, self._operation)
        self._source = words[0]
        return short_message(self._operation, words[2], self._expected, words[0])

    def _announce(self, told: Any) -> None:
        announce(self._channel, *told)


def announce(channel: Any, base: Any, watchers: Sequence[Callable[[], None]]) -> None:
    """Tells the world that an operation has ended: its future (on a callback thread), then the operations it is part of."""
    if base is not None:
        channel.callbacks.submit(lambda: base.set_result(None))
    for callback in watchers:
        callback()


def short_message(operation: str, came: int, expected: int, source: int) -> Optional[Exception]:
    """The error of a message that does not fill its tensor, None when it does."""
    if came == expected:
        return None
    return MismatchError(
        f"{operation}: rank {source} sent {came} bytes and the tensor here has {expected}; send and receive the same size",
        operation=operation,
        pe=source,
    )


class JointWork(Work):
    """Several operations as one: done when all are."""

    def __init__(self, channel: Any, parts: Sequence[Work]) -> None:
        """Watches every part."""
        super().__init__()
        self._parts = list(parts)
        self._channel = channel
        self._lock = threading.Lock()
        self._left = len(self._parts)
        self._result = [tensor for part in self._parts for tensor in part._result]
        if not self._parts:
            self._done = True
        for part in self._parts:
            part.watch(self._part_ended)

    def _guard(self) -> Any:
        return self._lock

    def _part_ended(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
            self._error = next((part._error for part in self._parts if part._error is not None), None)
            self._done = True
            base, watchers = self._base, self._watchers or ()
        announce(self._channel, base, watchers)

    def _drive(self, timeout: timedelta) -> None:
        for part in self._parts:
            part.wait(timeout)

    def _poll(self, slice_ns: int) -> None:
        for part in self._parts:
            part.is_completed()
