"""One process group's way into the core: starts a collective or a message and makes the Work of it.

A synchronous call runs in the caller's thread in slices, so that Ctrl-C works; an asynchronous one is queued in the core, whose
engine runs it with no call from here. Either way the call arrives exactly once.
"""

from __future__ import annotations

import collections
import ctypes
from datetime import timedelta
from typing import Any, Deque, Dict, List, Optional, Sequence

import torch

from .. import _abi
from .._call import left
from .._errors import AbortedError, FinalizedError
from .._lib import library
from .ops_buffers import Copies, carry_out
from .work import SLICE_NS, FinishedWork, JointWork, PendingWork, Work, error_of, short_message
from .work_completions import Completions

_C = _abi.COLLECTIVE
BARRIER, BROADCAST, ALL_REDUCE, REDUCE = _C["BARRIER"], _C["BROADCAST"], _C["ALL_REDUCE"], _C["REDUCE"]
ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = _C["ALL_GATHER"], _C["REDUCE_SCATTER"], _C["ALL_TO_ALL"]
GATHER, SCATTER = _C["GATHER"], _C["SCATTER"]
ALL_GATHER_V, ALL_TO_ALL_V = _C["ALL_GATHER_V"], _C["ALL_TO_ALL_V"]

NAMES = {code: name.lower() for name, code in _C.items()}
_QUEUED = _abi.ASYNC | _abi.NOTIFY
_DEFAULT = _abi.DEFAULT_TIMEOUT
_PENDING = _abi.STATUS["PENDING"]
_Word = ctypes.c_uint64
_byref = ctypes.byref
_ZERO = timedelta(0)

# Numbers that never change, as ctypes objects: a call takes them faster than Python numbers.
_ALL_REDUCE, _NO_ROOT, _NO_SCALE, _NULL = ctypes.c_int32(ALL_REDUCE), ctypes.c_int32(-1), ctypes.c_double(0.0), ctypes.c_void_p()
_BARRIER, _NONE, _NO_COUNT = ctypes.c_int32(BARRIER), ctypes.c_int32(0), ctypes.c_uint64(0)
_HERE, _DEFAULT_, _SLICE = ctypes.c_uint32(0), ctypes.c_int64(_DEFAULT), ctypes.c_int64(SLICE_NS)

# torch before 2.14 does not keep a Work written in Python alive while C++ holds it, and C++ then waits for ever.
_WORKS_NEED_KEEPING = not hasattr(torch._C._distributed_c10d, "FakeWork")
_KEPT = 4096


def nanoseconds(timeout: timedelta) -> int:
    """A timeout of torch as the core wants it; torch writes "not given" as a negative one."""
    if timeout < _ZERO:
        return _DEFAULT
    return int(timeout.total_seconds() * 1e9)


class Channel:
    """A team of the core in the service of one process group. Threads: any; the core orders collectives per team."""

    def __init__(self, team: int, rank: int, size: int, timeout: timedelta, completions: Completions) -> None:
        """Takes the team over."""
        lib = library()
        self.team = team
        self._team = _Word(team)
        self.rank = rank
        self.size = size
        self.timeout = timeout
        self.completions = completions
        self.callbacks = completions.callbacks
        self.aborted = False
        self.cut = False  # aborted while kernels may have been under way
        self.closed: Optional[str] = None
        self.sequence = 0
        self.coalescing: Optional[List[Work]] = None
        self.courier: Any = None  # starts operations of device tensors (work_device), once there was one ...
        self.behind: Any = None  # ... through this channel
        self.paths: Dict[str, int] = {}  # how many operations of device tensors went which way
        self.scratch: Any = None  # what their kernels work on (npu_scratch), where the members agreed on some ...
        self.in_place = False  # the members give their symmetric device tensors together (pg_options in_place)
        self.without_scratch = ""  # ... and else why not
        self.collective = lib.collective
        self._kept: Deque[Work] = collections.deque(maxlen=_KEPT)
        self.set_timeout(timeout)

    def set_timeout(self, timeout: timedelta) -> None:
        """The limit of every operation that names none."""
        self.timeout = timeout
        status = library().team_set_timeout(self.team, nanoseconds(timeout))
        if status < 0:
            raise error_of(status, "set_timeout")

    def run(
        self,
        what: int,
        source: Any,
        target: Any,
        count: int,
        *,
        dtype: int = 0,
        operator: int = 0,
        root: int = -1,
        scale: float = 0.0,
        counts: Any = None,
        timeout_ns: int = _DEFAULT,
        sync: bool = False,
        after: Optional[Copies] = None,
        keep: Any = None,
        result: Sequence[torch.Tensor] = (),
    ) -> Work:
        """Runs one collective. `source` and `target` are contiguous tensors or None, `after` the copies that end it.

        Collective. Blocks: until done when `sync`, else no.
        """
        self._check_open()
        self.sequence += 1
        request = _Word()
        flags, slice_ns = (0, SLICE_NS) if sync else (_QUEUED, 0)
        try:
            status = self.collective(
                self.team,
                what,
                source.data_ptr() if source is not None else None,
                target.data_ptr() if target is not None else None,
                count,
                dtype,
                operator,
                root,
                scale,
                counts,
                flags,
                timeout_ns,
                slice_ns,
                _byref(request),
            )
        except BaseException:  # a signal handler's
            left(request)
            raise
        held = (source, target, counts, keep)
        return self._started(status, request.value, NAMES[what], sync, held, after, result)

    def reduce_here(self, tensor: torch.Tensor, result: Sequence[torch.Tensor], dtype: Any, operator: Any, timeout: timedelta) -> Work:
        """run(ALL_REDUCE) of a contiguous tensor in place in this thread, with nothing that a small one would feel.

        Collective. Blocks: until done.
        """
        if self.closed is not None or self.coalescing is not None:
            codes = {"dtype": dtype.value, "operator": operator.value}
            return self.run(ALL_REDUCE, tensor, tensor, tensor.numel(), sync=True, result=result, **codes)
        self.sequence += 1
        request = _Word()
        at = tensor.data_ptr()
        limit = _DEFAULT_ if timeout < _ZERO else nanoseconds(timeout)
        count = tensor.numel()
        try:
            status = self.collective(self._team, _ALL_REDUCE, at, at, count, dtype, operator, _NO_ROOT, _NO_SCALE, _NULL, _HERE, limit, _SLICE, _byref(request))
            if status:
                self._end_here(status, request.value, "all_reduce")
        except BaseException:
            left(request)
            raise
        done = FinishedWork()
        done._result = result
        return done

    def barrier_here(self, timeout: timedelta) -> Work:
        """run(BARRIER) in this thread, with nothing that a small one would feel. Collective. Blocks: until done."""
        if self.closed is not None or self.coalescing is not None:
            return self.run(BARRIER, None, None, 0, timeout_ns=nanoseconds(timeout), sync=True)
        self.sequence += 1
        request = _Word()
        limit = _DEFAULT_ if timeout < _ZERO else nanoseconds(timeout)
        try:
            status = self.collective(
                self._team, _BARRIER, _NULL, _NULL, _NO_COUNT, _NONE, _NONE, _NO_ROOT, _NO_SCALE, _NULL, _HERE, limit, _SLICE, _byref(request)
            )
            if status:
                self._end_here(status, request.value, "barrier")
        except BaseException:
            left(request)
            raise
        return FinishedWork()

    def _end_here(self, status: int, request: int, name: str) -> None:
        """What a start in this thread gave when it was not simply done: an error, or a request to wait for. Blocks: until done."""
        if status < 0:
            raise error_of(status, name)
        self.finish(request, name)

    def _started(self, status: int, request: int, name: str, sync: bool, held: Any, after: Optional[Copies], result: Any) -> Work:
        """What a start gave: an error, an end, or something to wait for."""
        if status < 0:
            raise error_of(status, name)
        if sync and request:
            self.finish(request, name)
            request = 0
        if request:
            work: Work = PendingWork(self, name, held, after or [], result)
            self.completions.add(request, work)  # type: ignore[arg-type]
            return self.gave(work)
        if after:
            carry_out(after)
        done = FinishedWork()
        done._result = result
        return self.gave(done) if self.coalescing is not None or (_WORKS_NEED_KEEPING and not sync) else done

    def finish(self, request: int, name: str, words: Any = None) -> None:
        """Waits for a request in slices, takes its result words and gives it back; what a signal handler raises gives it up."""
        lib = library()
        try:
            status = lib.request_wait(request, SLICE_NS)
            while status == _PENDING:
                if self.aborted:
                    raise AbortedError(f"{name}: the group was aborted here", operation=name)
                status = lib.request_wait(request, SLICE_NS)
            if status >= 0 and words is not None:
                status = lib.request_result(request, words, len(words))
            if status < 0:
                raise error_of(status, name)
        finally:
            lib.request_release(request)

    def gave(self, work: Work) -> Work:
        """Notes a Work that goes out: it belongs to an open coalescing block, and old torch must not lose it."""
        if self.coalescing is not None:
            self.coalescing.append(work)
        if _WORKS_NEED_KEEPING:
            self._keep(work)
        return work

    def _keep(self, work: Work) -> None:
        kept = self._kept
        kept.append(work)
        while kept and kept[0]._waited:
            kept.popleft()

    def joint(self, parts: Sequence[Work]) -> Work:
        """Several Works as one."""
        if len(parts) == 1:
            return parts[0]
        work = JointWork(self, parts)
        if _WORKS_NEED_KEEPING:
            self._keep(work)
        return work

    def message(self, function: Any, name: str, tensor: Any, peer: int, tag: int, *, sync: bool, after: Copies, receive: bool) -> Work:
        """Starts a send or a receive. Blocks: until done when `sync`, else no."""
        self._check_open()
        self.sequence += 1
        request = _Word()
        size = tensor.numel() * tensor.element_size()
        flags, slice_ns = (0, SLICE_NS) if sync else (_QUEUED, 0)
        try:
            status = function(self.team, tensor.data_ptr(), size, peer, tag, flags, _DEFAULT, slice_ns, _byref(request))
        except BaseException:
            left(request)
            raise
        if status < 0:
            raise error_of(status, name)
        if not receive:
            return self._started(status, request.value, name, sync, tensor, after, ())
        if sync or not request.value:
            return self._received(request.value, name, tensor, size, peer, after)
        work = PendingWork(self, name, tensor, after, [target for target, _ in after] or [tensor])
        work._expected = size
        self.completions.add(request.value, work)
        return self.gave(work)

    def _received(self, request: int, name: str, tensor: Any, size: int, peer: int, after: Copies) -> Work:
        work = FinishedWork()
        work._source = peer
        if request:
            words = (_Word * 3)()
            self.finish(request, name, words)
            work._source = words[0]
            short = short_message(name, words[2], size, words[0])
            if short is not None:
                raise short
        carry_out(after)
        work._result = [tensor]
        return work

    def refuse_closed(self) -> None:
        """Raises when the group is gone. Blocks: no."""
        if self.closed is not None:
            raise FinalizedError(f"this process group is gone ({self.closed}); make a new one")

    def refuse_cut(self) -> None:
        """Raises when kernels of the group were ended before they were done. Blocks: no."""
        if self.cut:
            raise AbortedError("the group was aborted here while kernels of it were under way; what they wrote must not be used")
        if self.closed is None:
            status = library().team_health(self.team)
            if status < 0:
                raise error_of(status, "wait")

    def _check_open(self) -> None:
        self.refuse_closed()
        self.keep_order()

    def keep_order(self) -> None:
        """Lets operations of device tensors that were called before start first. Blocks: for the device, when there are any."""
        if self.courier is not None:
            self.courier.settle()

    def drain(self) -> None:
        """Waits for everything that is pending. Blocks: until it ends."""
        self.completions.drain(self)
        if self.courier is not None:
            self.courier.drain()

    def abort(self) -> None:
        """Gives up what is pending or waited for, kernels too; peers in it learn that this rank left. Blocks: no."""
        self.cut = self.cut or (self.scratch is not None and self.scratch.busy())
        self.aborted = True
        self.closed = self.closed or "aborted"
        for one in (self, self.behind):
            if one is not None:
                self.completions.abort(AbortedError("the group was aborted here"), one)
        if self.scratch is not None:
            library().team_abort(self.team)

    def close(self, why: str) -> None:
        """Destroys the team. Blocks: no."""
        if self.closed is None or self.aborted:
            self.closed = self.closed or why
            if self.scratch is not None:
                self.scratch.close()
            library().team_destroy(self.team)  # waits for a courier that is starting an operation of it
        self._kept.clear()
