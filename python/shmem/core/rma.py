"""Puts, gets and signals, in order on a stream."""

from __future__ import annotations

from typing import Any

from .. import _pyshmem
from .utils import AclshmemInvalid, Buffer

__all__ = ["get", "put", "put_signal", "quiet", "signal_op", "signal_wait"]


def _number(stream: Any) -> int:
    """A stream as a number; None is the default stream."""
    if stream is None:
        return 0
    return int(getattr(stream, "npu_stream", stream))


def _required(what: str, stream: Any) -> int:
    if stream is None:
        raise AclshmemInvalid(f"{what}: stream is None; give one, 0 for the default stream")
    return _number(stream)


def put_signal(dst: Buffer, src: Buffer, signal_var: Buffer, signal_val: int, signal_operation: Any, remote_pe: int = -1, stream: Any = None) -> None:
    """Puts src to dst at remote_pe, then updates the signal there; all in order on the stream. Does not block."""
    number = _number(stream)
    _pyshmem.aclshmemx_putmem_on_stream(dst.addr, src.addr, src.length, remote_pe, number)
    _pyshmem.aclshmemx_quiet_on_stream(number)
    _pyshmem.aclshmemx_signal_op_on_stream(signal_var.addr, signal_val, int(signal_operation), remote_pe, number)


def signal_op(signal_var: Buffer, signal_val: int, signal_operation: Any, remote_pe: int = -1, stream: Any = None) -> None:
    """Updates a signal at remote_pe, in order on the stream. Does not block."""
    number = _required("signal_op", stream)
    _pyshmem.aclshmemx_signal_op_on_stream(signal_var.addr, signal_val, int(signal_operation), remote_pe, number)


def signal_wait(signal_var: Buffer, signal_val: int, signal_operation: Any, stream: Any) -> None:
    """Makes the stream wait until this PE's signal compares (a ComparisonType). Does not block the caller."""
    number = _required("signal_wait", stream)
    _pyshmem.aclshmemx_signal_wait_until_on_stream(signal_var.addr, int(signal_operation), signal_val, number)


def put(dst: Buffer, src: Buffer, remote_pe: int = -1, stream: Any = None) -> None:
    """Puts src to dst at remote_pe, in order on the stream. Does not block."""
    _pyshmem.aclshmemx_putmem_on_stream(dst.addr, src.addr, src.length, remote_pe, _number(stream))


def get(dst: Buffer, src: Buffer, remote_pe: int = -1, stream: Any = None) -> None:
    """Gets src of remote_pe into dst, in order on the stream. Does not block."""
    _pyshmem.aclshmemx_getmem_on_stream(dst.addr, src.addr, src.length, remote_pe, _number(stream))


def quiet(stream: Any) -> None:
    """Completes what the stream was given before, at every target, as a step of the stream. Does not block."""
    _pyshmem.aclshmemx_quiet_on_stream(_required("quiet", stream))
