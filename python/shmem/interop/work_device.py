"""Operations on device tensors that go through host memory.

    called --(copies down done)--> started in the core --(ended)--> copies up --(done)--> done

The caller's stream is never waited for by the calling thread: copies down run on a stream of the channel behind what the
caller's stream holds now, and a courier starts the operations of a channel in the order of the calls. A Work is done when its
results are on the device, so whatever is queued after wait() sees them, on any stream.
"""

from __future__ import annotations

import collections
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Deque, Optional, Sequence, Set

import torch

from .._errors import TimeoutError
from . import npu
from .ops_channel import Channel
from .stage import Stage
from .work import Work, announce

_SLICE_SECONDS = 0.05


class Behind(Channel):
    """A channel's team as its courier uses it: coalescing blocks are the caller's affair, and no order is left to be kept."""

    def __init__(self, front: Channel) -> None:
        """Shares everything with the channel in front, and is closed and aborted with it."""
        self.__dict__.update(front.__dict__)
        self._front = front
        self._kept = collections.deque(maxlen=front._kept.maxlen)

    @property
    def closed(self) -> Optional[str]:  # type: ignore[override]
        """Why the channel in front is closed, None while it is open."""
        return self._front.closed

    @property
    def aborted(self) -> bool:  # type: ignore[override]
        """Whether the channel in front was aborted."""
        return self._front.aborted

    @property
    def coalescing(self) -> None:  # type: ignore[override]
        """Never inside a block."""
        return None

    def keep_order(self) -> None:
        """Nothing to do: the courier itself is the order."""


class Courier:
    """Starts the operations of one channel in the order of the calls. Threads: any may hand over."""

    def __init__(self, channel: Channel) -> None:
        """Starts no thread; one is borrowed while there is something to start."""
        self._channel = channel
        self._waiting: Deque[DeviceWork] = collections.deque()
        self._flying: Set[DeviceWork] = set()
        self._state = threading.Condition()
        self._running = False

    def take(self, work: "DeviceWork") -> None:
        """Hands a Work over. Blocks: no."""
        with self._state:
            self._waiting.append(work)
            self._flying.add(work)
            if self._running:
                return
            self._running = True
        self._channel.callbacks.submit(self._serve)

    def _serve(self) -> None:
        while True:
            with self._state:
                if not self._waiting:
                    self._running = False
                    self._state.notify_all()
                    return
                work = self._waiting.popleft()
            work.begin()
            del work

    def settle(self, seconds: Optional[float] = None) -> None:
        """Waits until everything handed over before is started, so that what comes now keeps its turn. Blocks: for the device."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._state:
            while self._running and (deadline is None or time.monotonic() < deadline):
                self._state.wait(_SLICE_SECONDS)

    def ended(self, work: "DeviceWork") -> None:
        """A Work is done; nobody has to wait for it any more."""
        with self._state:
            self._flying.discard(work)
            self._state.notify_all()

    def drain(self, seconds: Optional[float] = None) -> None:
        """Waits until everything handed over is done, well or not. Blocks: until then, at most so long."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._state:
            while self._flying and (deadline is None or time.monotonic() < deadline):
                self._state.wait(_SLICE_SECONDS)


class DeviceWork(Work):
    """One operation on its way through host memory."""

    path = "staged"

    def __init__(self, channel: Channel, stage: Stage, start: Callable[[], Work], arrival: Any, up: Any, result: Sequence[torch.Tensor]) -> None:
        """`arrival` is the event behind the copies down, `start` begins the operation on the host, `up` is the stream for results."""
        super().__init__()
        self._channel = channel
        self._stage: Optional[Stage] = stage
        self._start: Optional[Callable[[], Work]] = start
        self._arrival, self._up = arrival, up
        self._result = result
        self._device = stage.device
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def begin(self) -> None:
        """Starts the operation when its inputs have come down. Called once, by the courier. Blocks: for the device."""
        stage, start = self._stage, self._start
        assert stage is not None and start is not None
        try:
            with npu.runtime().device(self._device):
                self._arrival.synchronize()
                stage.arrived()
        except Exception as problem:  # the device failed: the peers must not wait for a turn that will never come
            self._settle(problem, None)
            self._channel.abort()
            return
        try:
            inner = start()
        except Exception as problem:  # belongs to whoever waits for this Work
            self._settle(problem, None)
            return
        self._start = None
        inner.watch(lambda: self._channel.callbacks.submit(lambda: self._come_home(inner)))

    def _come_home(self, inner: Work) -> None:
        inner._waited = True
        error = inner.exception()
        if error is None:
            try:
                self._bring_up()
            except Exception as problem:  # the device refused a result: its waiter must hear of it
                error = problem
        self._settle(error, inner)

    def _bring_up(self) -> None:
        assert self._stage is not None
        runtime = npu.runtime()
        with runtime.device(self._device), runtime.stream(self._up):
            self._stage.home()
            self._up.synchronize()

    def _settle(self, error: Optional[Exception], inner: Optional[Work]) -> None:
        with self._lock:
            if inner is not None:
                self._source = inner.source_rank()
            self._error, self._done = error, True
            self._stage = self._start = self._arrival = None
            told = self._base, self._watchers or ()
        self._ended.set()
        self._channel.courier.ended(self)
        announce(self._channel, *told)

    def _guard(self) -> Any:
        return self._lock

    def _new_future(self) -> Any:
        return torch.futures.Future(devices=[self._device])

    def _drive(self, timeout: timedelta) -> None:
        seconds = timeout.total_seconds()
        deadline = time.monotonic() + seconds if seconds > 0 else None
        while not self._ended.wait(_SLICE_SECONDS if deadline is None else max(0.0, min(_SLICE_SECONDS, deadline - time.monotonic()))):
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"not finished after wait(timeout={seconds:g} s); it goes on, wait again or raise the timeout")

    def _poll(self, slice_ns: int) -> None:
        """The threads that bring results home set the state themselves."""
