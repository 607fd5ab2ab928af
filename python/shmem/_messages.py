"""Tagged messages between the members of a team, in order per source and tag."""

from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional

from . import _abi, _call, _operand
from ._errors import InvalidArgumentError
from ._lib import library
from ._requests import Request
from ._team import Team, resolve


class Message(NamedTuple):
    """What a receive took: who sent it, its tag and how many bytes it had."""

    source: int
    tag: int
    nbytes: int


def _check_tag(tag: Optional[int], name: str) -> int:
    if tag is None:
        return _abi.ANY_TAG
    if not -(2**63) < tag < 2**63:
        raise InvalidArgumentError(f"{name}: tag is {tag}; it is a 64-bit integer")
    return tag


def _send(t: Any, dst: int, tag: int, team: Optional[Team], timeout: Optional[float], flags: int, slice_ns: int) -> Any:
    members = resolve(team)
    here = _operand.source(t, "t")
    request = ctypes.c_uint64()
    try:
        status = library().send(
            members.handle, here.address, here.nbytes, dst, _check_tag(tag, "send"), flags, _call.timeout_ns(timeout), slice_ns, ctypes.byref(request)
        )
    except BaseException:
        _call.left(request)
        raise
    return status, request.value, (here, members)


def send(t: Any, dst: int, *, tag: int = 0, team: Optional[Team] = None, timeout: Optional[float] = None) -> None:
    """Sends t to a rank of the team; small messages go at once, larger ones when they are received. Any thread; blocks until t may be reused."""
    status, request, _keep = _send(t, dst, tag, team, timeout, 0, _call.SLICE_NS)
    _finish("send", status, request, 0)


def isend(t: Any, dst: int, *, tag: int = 0, team: Optional[Team] = None, timeout: Optional[float] = None) -> Request:
    """Starts a send; t must stay unchanged until the Request is done. Any thread; does not block."""
    status, request, keep = _send(t, dst, tag, team, timeout, _abi.ASYNC, 0)
    if status < 0:
        _call.fail(status, "send")
    return Request(request, "send", keep)


def _finish(name: str, status: int, request: int, words: int) -> List[int]:
    if status < 0:
        if request:
            library().request_release(request)
        _call.fail(status, name)
    return _call.finish(request, name, words) if request else [0] * words


def _recv(out: Any, src: Optional[int], tag: Optional[int], team: Optional[Team], timeout: Optional[float], flags: int, slice_ns: int) -> Any:
    members = resolve(team)
    target = _operand.target(out, "out")
    request = ctypes.c_uint64()
    try:
        status = library().recv(
            members.handle,
            target.address,
            target.nbytes,
            _abi.ANY_SOURCE if src is None else src,
            _check_tag(tag, "recv"),
            flags,
            _call.timeout_ns(timeout),
            slice_ns,
            ctypes.byref(request),
        )
    except BaseException:
        _call.left(request)
        raise
    return status, request.value, (target, members)


def _message(words: List[int]) -> Message:
    source = words[0] - 2**64 if words[0] >= 2**63 else words[0]
    tag = words[1] - 2**64 if words[1] >= 2**63 else words[1]
    return Message(source, tag, words[2])


def recv(out: Any, src: Optional[int] = None, *, tag: Optional[int] = None, team: Optional[Team] = None, timeout: Optional[float] = None) -> Message:
    """Receives a message of at most out's size from a rank (None: any) with a tag (None: any). Any thread; blocks until it came.

    A longer message raises TruncatedError.
    """
    status, request, (target, _members) = _recv(out, src, tag, team, timeout, 0, _call.SLICE_NS)
    words = _finish("recv", status, request, 3)
    if target.back is not None:
        target.back()
    return _message(words)


def irecv(out: Any, src: Optional[int] = None, *, tag: Optional[int] = None, team: Optional[Team] = None, timeout: Optional[float] = None) -> Request:
    """Starts a receive; the Request's wait gives the Message. Any thread; does not block."""
    status, request, keep = _recv(out, src, tag, team, timeout, _abi.ASYNC, 0)
    if status < 0:
        _call.fail(status, "recv")
    back = keep[0].back

    def after(words: List[int]) -> Message:
        if back is not None:
            back()
        return _message(words)

    return Request(request, "recv", keep, words=3, after=after)
