"""The threads behind asynchronous operations.

One thread per world blocks in the core until requests have ended, and settles their Works. Callbacks of futures run on other
threads, because a callback may itself start a collective and wait for it: a callback that finds no idle thread gets a new one.
All are daemons, end with their world, and are gone before the interpreter is.
"""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from .. import _abi
from .._errors import FinalizedError
from .._lib import library
from .work import PendingWork, error_of

SLICE_NS = 50_000_000
_BATCH = 64
_IDLE_SECONDS = 5.0
_PENDING = _abi.STATUS["PENDING"]
_log = logging.getLogger("shmem.torch")


class Callbacks:
    """Runs functions one per idle thread; never makes one wait for another."""

    def __init__(self) -> None:
        """Starts no thread."""
        self._lock = threading.Lock()
        self._idle: List["queue.SimpleQueue[Optional[Callable[[], None]]]"] = []
        self._closed = False

    def submit(self, function: Callable[[], None]) -> None:
        """Hands a function to an idle thread, or to a new one. Blocks: no."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(function)
            return
        threading.Thread(target=self._serve, args=(function,), name="shmem-callback", daemon=True).start()

    def _serve(self, function: Optional[Callable[[], None]]) -> None:
        inbox: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        while function is not None:
            try:
                function()
            except Exception:
                _log.exception("a callback of a collective failed")
            function = None  # drop what it holds before sleeping
            with self._lock:
                if self._closed:
                    return
                self._idle.append(inbox)
            function = self._next(inbox)

    def _next(self, inbox: Any) -> Optional[Callable[[], None]]:
        try:
            return inbox.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            pass
        with self._lock:
            if inbox in self._idle:
                self._idle.remove(inbox)
                return None
        return inbox.get()  # it was handed something just now

    def close(self) -> None:
        """Sends idle threads home; busy ones go when their callback ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)


class Completions:
    """Settles the Works of one world as their requests end."""

    def __init__(self, world: int) -> None:
        """Starts no thread; the first asynchronous operation does."""
        self._world = world
        self._lock = threading.Lock()
        self._pending: Dict[int, PendingWork] = {}
        self._early: Dict[int, bool] = {}  # reported before add() was called
        self._thread: Optional[threading.Thread] = None
        self._stop = False
        self.callbacks = Callbacks()

    def add(self, request: int, work: PendingWork) -> None:
        """Hands over a Work whose request was started with ASYNC | NOTIFY."""
        work.request = request
        with self._lock:
            if self._early.pop(request, None) is None:
                self._pending[request] = work
                work = None  # type: ignore[assignment]
            if self._thread is None and not self._stop:
                self._thread = threading.Thread(target=self._serve, name="shmem-completions", daemon=True)
                self._thread.start()
        if work is not None:
            work.settle()

    def _serve(self) -> None:
        wait = library().completions_wait
        ended = (ctypes.c_uint64 * _BATCH)()
        count = ctypes.c_uint32()
        while not self._stop:
            status = wait(self._world, SLICE_NS, ended, _BATCH, ctypes.byref(count))
            if status < 0:
                self._lose(error_of(status, "completions"))
                return
            if status != _PENDING:
                for request in ended[: count.value]:
                    self._settle(request)

    def _settle(self, request: int) -> None:
        with self._lock:
            work = self._pending.pop(request, None)
            if work is None:
                self._early[request] = True
        if work is not None:
            work.settle()

    def _lose(self, error: Exception) -> None:
        with self._lock:
            lost, self._pending = list(self._pending.values()), {}
        for work in lost:
            work.fail(error)

    def abort(self, error: Exception, channel: Any) -> None:
        """Gives up the pending operations of one group."""
        with self._lock:
            mine = [work for work in self._pending.values() if work._channel is channel]
        for work in mine:
            work.fail(error)

    def drain(self, channel: Any) -> None:
        """Waits for the pending operations of one group. Blocks: until they end."""
        with self._lock:
            mine = [work for work in self._pending.values() if work._channel is channel]
        for work in mine:
            work.wait()

    def settle_all(self, seconds: float) -> None:
        """Gives pending operations a moment to end. Blocks: up to that long."""
        deadline = time.monotonic() + seconds
        while self._pending and time.monotonic() < deadline:
            time.sleep(0.002)

    def close(self) -> None:
        """Ends the thread and fails what is still pending; the world is closed or will be left. Blocks: at most a slice."""
        self._stop = True
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(2.0)
        self._lose(FinalizedError("the world of this operation was finalized before it ended"))
        self.callbacks.close()
