"""Collectives on tensors, Buffers and anything with the buffer protocol, symmetric or ordinary.

Every member of the team calls the same operation with equal dtypes, sizes, operator and root; a difference is
MismatchError on all of them, and the team is then poisoned. Results have the same bits on every PE, run after run.
With async_op=True the core runs the operation, in order per team, and the call gives a Request.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _abi, _call, _operand
from ._errors import InvalidArgumentError, UnsupportedError
from ._lib import library
from ._operand import Operand
from ._requests import Request
from ._team import Team, resolve

_WHAT = _abi.COLLECTIVE
_REDUCE = {
    "sum": _abi.REDUCE["SUM"],
    "prod": _abi.REDUCE["PROD"],
    "product": _abi.REDUCE["PROD"],
    "min": _abi.REDUCE["MIN"],
    "max": _abi.REDUCE["MAX"],
    "band": _abi.REDUCE["BAND"],
    "bor": _abi.REDUCE["BOR"],
    "bxor": _abi.REDUCE["BXOR"],
    "avg": _abi.REDUCE["AVG"],
    "premul": _abi.REDUCE["PREMUL"],
}
_byref = ctypes.byref
_u64 = ctypes.c_uint64


def _run(
    what: str,
    team: Optional[Team],
    here: Optional[Operand],
    out: Optional[Operand],
    count: int,
    timeout: Optional[float],
    async_op: bool,
    result: Any,
    *,
    dtype: int = 0,
    op: int = 0,
    root: int = 0,
    scale: float = 1.0,
    counts: Any = None,
) -> Any:
    """Starts a collective; waits for it in slices, or hands out a Request."""
    members = resolve(team)
    if members.world.device is not None:
        members.world.device.settle(what.lower(), timeout)
        if members.world.device.kernels and what not in ("BARRIER", "SYNC"):  # a member that queues a kernel instead is found
            _call.check(library().collective_announce(members.handle, _WHAT[what], count, dtype, op, root, 1), what.lower())
    request = _u64()
    try:
        status = library().collective(
            members.handle,
            _WHAT[what],
            here.address if here is not None else None,
            out.address if out is not None else None,
            count,
            dtype,
            op,
            root,
            scale,
            counts,
            _abi.ASYNC if async_op else 0,
            _call.timeout_ns(timeout),
            0 if async_op else _call.SLICE_NS,
            _byref(request),
        )
    except BaseException:
        _call.left(request)
        raise
    name = what.lower()
    if status < 0:
        if request.value:
            library().request_release(request.value)
        _call.fail(status, name)
    back = out.back if out is not None else None
    if async_op:
        return Request(request.value, name, (here, out, counts, members), after=_ending(back, result))
    if request.value:
        _call.finish(request.value, name)
    if back is not None:
        back()
    return result


def _by_kernels(what: str, team: Optional[Team], t: Any, out: Any, async_op: bool, each: int = 1, op: str = "", root: int = 0) -> Any:
    """Queues a collective on torch_npu's current stream when tensors, dtype and operator allow it (interop/npu_collectives.py).

    None otherwise; else what the caller is to return. `each` is how many parts the tensor with the peers' parts has.
    """
    world = resolve(team).world
    if world.device is None or not (_operand.is_tensor(t) and _operand.is_tensor(out)) or t.dtype is not out.dtype:
        return None
    from .interop import npu_collectives, tensors

    dtype, operator = (tensors.DTYPE_CODES.get(t.dtype, 0), _REDUCE.get(str(op).lower(), -1)) if op else (0, 0)
    members = resolve(team)
    small = min(t.numel(), out.numel())
    if max(t.numel(), out.numel()) != small * each or not npu_collectives.fits(world, _WHAT[what], t, out, dtype, operator):
        return None
    if not npu_collectives.numbered(members.handle):
        return None
    count = small if op else small * t.element_size()
    npu_collectives.queue(world, members.handle, _WHAT[what], t, out, count, dtype, operator, root)
    return Request(0, what.lower(), (t, out), after=lambda words: out) if async_op else out


def _ending(back: Optional[Callable[[], None]], result: Any) -> Callable[[List[int]], Any]:
    def after(words: List[int]) -> Any:
        if back is not None:
            back()
        return result

    return after


def _operator(op: str, operand: Operand, what: str) -> int:
    code = _REDUCE.get(str(op).lower())
    if code is None:
        raise InvalidArgumentError(f"{what}: operator is {op!r}; give one of {' '.join(sorted(set(_REDUCE)))}")
    if not operand.code or not library().reduce_supported(operand.code, code):
        raise InvalidArgumentError(f"{what}: {operand.name} has no {op}; convert it to a dtype that has")
    return code


def _reduction(what: str, here: Operand, out: Operand) -> None:
    if here.code != out.code or here.name != out.name:
        raise InvalidArgumentError(f"{what}: input is {here.name} and out is {out.name}; they must have one dtype")


def _sizes(what: str, have: int, want: int, role: str) -> None:
    if have != want:
        raise InvalidArgumentError(f"{what}: {role} has {have} bytes; it must have {want}")


def barrier_on_stream(*, team: Optional[Team] = None) -> None:
    """Makes torch_npu's current stream wait until the streams of all members come to it; what was put on it before is complete. Collective.

    Does not block. Raises UnsupportedError in a world without a device.
    """
    members = resolve(team)
    device = members.world.device
    if device is None:
        raise UnsupportedError("barrier_on_stream: this world has no device (shmem.init(device='npu')); use shmem.barrier")
    stream = device.stream()
    _call.check(library().quiet_on_stream(members.world.handle, stream or None), "barrier_on_stream")
    _call.check(library().barrier_on_stream(members.handle, stream or None), "barrier_on_stream")
    device.queued(stream)


def barrier(*, team: Optional[Team] = None, timeout: Optional[float] = None, async_op: bool = False) -> Optional[Request]:
    """Completes this PE's puts, then waits until all members arrive. Collective. Blocks until then; Ctrl-C leaves it."""
    request: Optional[Request] = _run("BARRIER", team, None, None, 0, timeout, async_op, None)
    return request


def sync(*, team: Optional[Team] = None, timeout: Optional[float] = None) -> None:
    """Waits until all members arrive, without completing puts. Collective. Blocks until then."""
    _run("SYNC", team, None, None, 0, timeout, False, None)


def broadcast(t: Any, root: int = 0, *, out: Any = None, team: Optional[Team] = None, timeout: Optional[float] = None, async_op: bool = False) -> Any:
    """Copies root's t into every member's t (or out), and gives it. Collective. Blocks until it is here."""
    members = resolve(team)
    place = t if out is None else out
    queued = _by_kernels("BROADCAST", members, t if members.rank == root else place, place, async_op, root=root)
    if queued is not None:
        return queued
    target = _operand.host_target(place, "t" if out is None else "out")
    here = target
    if members.rank == root and out is not None:
        here = _operand.host_source(t, "t")
        _operand.same_size(target, here, "broadcast")
    return _run("BROADCAST", members, here, target, target.nbytes, timeout, async_op, place, root=root)


def all_reduce(
    t: Any,
    op: str = "sum",
    *,
    out: Any = None,
    scale: float = 1.0,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    async_op: bool = False,
) -> Any:
    """Reduces t over all members into t (or out) on each, and gives it. Collective. Blocks until it is done.

    op is sum, prod, min, max, band, bor, bxor, avg, or premul (each input times scale, then summed).
    """
    place = t if out is None else out
    queued = _by_kernels("ALL_REDUCE", team, t, place, async_op, op=op)
    if queued is not None:
        return queued
    target = _operand.host_target(place, "t" if out is None else "out")
    here = target if out is None else _operand.host_source(t, "t")
    _reduction("all_reduce", here, target)
    _sizes("all_reduce", target.nbytes, here.nbytes, "out")
    code = _operator(op, here, "all_reduce")
    return _run("ALL_REDUCE", team, here, target, here.elements, timeout, async_op, place, dtype=here.code, op=code, scale=scale)


def reduce(
    t: Any,
    root: int = 0,
    op: str = "sum",
    *,
    out: Any = None,
    scale: float = 1.0,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    async_op: bool = False,
) -> Any:
    """Reduces t over all members into root's t (or out); others keep theirs. Collective. Blocks until this PE's part is done."""
    members = resolve(team)
    place = t if out is None else out
    if members.rank == root:
        target: Optional[Operand] = _operand.host_target(place, "t" if out is None else "out")
        here = target if out is None and target is not None else _operand.host_source(t, "t")
        assert target is not None
        _reduction("reduce", here, target)
        _sizes("reduce", target.nbytes, here.nbytes, "out")
    else:
        target, here = None, _operand.host_source(t, "t")
    code = _operator(op, here, "reduce")
    return _run("REDUCE", members, here, target, here.elements, timeout, async_op, place, dtype=here.code, op=code, root=root, scale=scale)


def all_gather(out: Any, t: Any, *, team: Optional[Team] = None, timeout: Optional[float] = None, async_op: bool = False) -> Any:
    """Gathers every member's t into out, in order of ranks, and gives it. Collective. Blocks until it is done."""
    members = resolve(team)
    queued = _by_kernels("ALL_GATHER", members, t, out, async_op, members.size)
    if queued is not None:
        return queued
    target, here = _operand.host_target(out, "out"), _operand.host_source(t, "t")
    _sizes("all_gather", target.nbytes, here.nbytes * members.size, "out")
    return _run("ALL_GATHER", members, here, target, here.nbytes, timeout, async_op, out)


def reduce_scatter(
    out: Any,
    t: Any,
    op: str = "sum",
    *,
    scale: float = 1.0,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    async_op: bool = False,
) -> Any:
    """Reduces t over all members and gives each its own part, in out. Collective. Blocks until it is done."""
    members = resolve(team)
    queued = _by_kernels("REDUCE_SCATTER", members, t, out, async_op, members.size, op=op)
    if queued is not None:
        return queued
    target, here = _operand.host_target(out, "out"), _operand.host_source(t, "t")
    _reduction("reduce_scatter", here, target)
    _sizes("reduce_scatter", here.nbytes, target.nbytes * members.size, "t")
    code = _operator(op, here, "reduce_scatter")
    return _run("REDUCE_SCATTER", members, here, target, target.elements, timeout, async_op, out, dtype=here.code, op=code, scale=scale)


def all_to_all(out: Any, t: Any, *, team: Optional[Team] = None, timeout: Optional[float] = None, async_op: bool = False) -> Any:
    """Sends the i-th part of t to rank i and puts what rank i sent into the i-th part of out. Collective. Blocks until it is done."""
    members = resolve(team)
    target, here = _operand.host_target(out, "out"), _operand.host_source(t, "t")
    _sizes("all_to_all", target.nbytes, here.nbytes, "out")
    if here.elements % members.size:
        raise InvalidArgumentError(f"all_to_all: {here.elements} elements do not split over {members.size} ranks; use all_to_all_v")
    return _run("ALL_TO_ALL", members, here, target, here.nbytes // members.size, timeout, async_op, out)


def gather(out: Any, t: Any, root: int = 0, *, team: Optional[Team] = None, timeout: Optional[float] = None, async_op: bool = False) -> Any:
    """Gathers every member's t into root's out (others give None). Collective. Blocks until this PE's part is done."""
    members = resolve(team)
    here = _operand.host_source(t, "t")
    target = None
    if members.rank == root:
        target = _operand.host_target(out, "out")
        _sizes("gather", target.nbytes, here.nbytes * members.size, "out")
    return _run("GATHER", members, here, target, here.nbytes, timeout, async_op, out, root=root)


def scatter(out: Any, t: Any, root: int = 0, *, team: Optional[Team] = None, timeout: Optional[float] = None, async_op: bool = False) -> Any:
    """Gives rank i the i-th part of root's t, in out (others give None as t). Collective. Blocks until it is done."""
    members = resolve(team)
    target = _operand.host_target(out, "out")
    here = None
    if members.rank == root:
        here = _operand.host_source(t, "t")
        _sizes("scatter", here.nbytes, target.nbytes * members.size, "t")
    return _run("SCATTER", members, here, target, target.nbytes, timeout, async_op, out, root=root)


def all_gather_v(
    out: Any,
    t: Any,
    counts: Sequence[int],
    *,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    async_op: bool = False,
) -> Any:
    """Gathers counts[i] elements of rank i into out, one after another. Collective, with equal counts. Blocks until it is done."""
    members = resolve(team)
    target, here = _operand.host_target(out, "out"), _operand.host_source(t, "t")
    numbers = _counts("all_gather_v", counts, members.size)
    _sizes("all_gather_v", here.nbytes, numbers[members.rank] * here.itemsize, "t")
    _sizes("all_gather_v", target.nbytes, sum(numbers) * here.itemsize, "out")
    table = (_u64 * members.size)(*[n * here.itemsize for n in numbers])
    return _run("ALL_GATHER_V", members, here, target, 0, timeout, async_op, out, counts=table)


def all_to_all_v(
    out: Any,
    t: Any,
    out_counts: Sequence[int],
    in_counts: Sequence[int],
    *,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    async_op: bool = False,
) -> Any:
    """Sends in_counts[i] elements of t to rank i and takes out_counts[i] from it into out. Collective. Blocks until it is done."""
    members = resolve(team)
    target, here = _operand.host_target(out, "out"), _operand.host_source(t, "t")
    if target.itemsize != here.itemsize:
        raise InvalidArgumentError(f"all_to_all_v: elements of out and t differ ({target.name} and {here.name})")
    to, of = _counts("all_to_all_v", in_counts, members.size), _counts("all_to_all_v", out_counts, members.size)
    size = here.itemsize
    _sizes("all_to_all_v", here.nbytes, sum(to) * size, "t")
    _sizes("all_to_all_v", target.nbytes, sum(of) * size, "out")
    sent, sent_at = _bytes_and_offsets(to, size)
    taken, taken_at = _bytes_and_offsets(of, size)
    table = (_u64 * (4 * members.size))(*sent, *sent_at, *taken, *taken_at)
    return _run("ALL_TO_ALL_V", members, here, target, 0, timeout, async_op, out, counts=table)


def _counts(what: str, counts: Sequence[int], size: int) -> List[int]:
    numbers = [int(n) for n in counts]
    if len(numbers) != size or min(numbers, default=0) < 0:
        raise InvalidArgumentError(f"{what}: counts are {numbers}; give one number >= 0 for each of {size} ranks")
    return numbers


def _bytes_and_offsets(counts: Sequence[int], itemsize: int) -> Tuple[List[int], List[int]]:
    sizes, offsets, at = [], [], 0
    for count in counts:
        sizes.append(count * itemsize)
        offsets.append(at)
        at += count * itemsize
    return sizes, offsets
