"""Signals: 8-byte words that say that data have arrived, and waiting for any word of one's own memory."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _abi, _call, _operand
from ._errors import InvalidArgumentError, UnsupportedError
from ._lib import library
from ._rma import _resolve, element, from_bits, to_bits
from ._world import World

_COMPARE = {
    "==": _abi.COMPARE["CMP_EQ"],
    "!=": _abi.COMPARE["CMP_NE"],
    ">": _abi.COMPARE["CMP_GT"],
    ">=": _abi.COMPARE["CMP_GE"],
    "<": _abi.COMPARE["CMP_LT"],
    "<=": _abi.COMPARE["CMP_LE"],
}
_SIGNED = {_abi.DTYPE[name] for name in ("I8", "I16", "I32", "I64")}
_WHOLE = _SIGNED | {_abi.DTYPE[name] for name in ("U8", "U16", "U32", "U64", "BOOL")}
_U64 = (1 << 64) - 1


def _signal_word(where: World, signal: Any, index: int) -> "tuple[int, bool]":
    """The address of a signal, and whether it is one of streams: 4 bytes of device memory."""
    operand, address = element(signal, index, "signal")
    if operand.itemsize == 4 and operand.code in _WHOLE and where.device is not None and where.device.is_symmetric(address):
        return address, True
    if operand.itemsize != 8:
        there = " (on an npu also one of 4 bytes)" if where.device is not None else ""
        raise InvalidArgumentError(f"signal has elements of {operand.itemsize} bytes ({operand.name}); a signal is an 8-byte integer{there}")
    return address, False


def _how(op: str) -> int:
    try:
        return _abi.SIGNAL[f"SIGNAL_{op.upper()}"]
    except (KeyError, AttributeError):
        raise InvalidArgumentError(f"signal operation is {op!r}; give 'set' or 'add'") from None


def _send(name: str, dst: Any, src: Any, signal: Any, value: int, pe: int, op: str, index: int, world: Optional[World]) -> None:
    there, here = _operand.symmetric(dst, "dst"), _operand.source(src, "src")
    _operand.same_size(there, here, name)
    where = _resolve(world)
    word, streamed = _signal_word(where, signal, index)
    if streamed:
        _send_on_stream(name, where, there.address or word, here.address or word, here.nbytes, word, value, op, pe)
        return
    status = getattr(where.calls, name)(where.handle, there.address or word, here.address or word, here.nbytes, word, value & _U64, _how(op), pe)
    if status < 0:
        _call.fail(status, name)


def _send_on_stream(name: str, where: World, dst: int, src: int, nbytes: int, word: int, value: int, op: str, pe: int) -> None:
    """A put_signal in the order of torch_npu's current stream: the signal is 4 bytes on the device."""
    device = where.device
    if nbytes and not device.is_symmetric(dst):
        raise InvalidArgumentError(f"{name}: a 4-byte signal on the npu goes with a dst on the npu; use an 8-byte signal for host memory")
    stream = device.stream()
    signed = ctypes.c_int32(value & 0xFFFFFFFF).value
    status = library().put_signal_on_stream(where.handle, dst, src, nbytes, word, signed, _how(op), pe, stream or None)
    device.queued(stream)
    if status < 0:
        _call.fail(status, name)


def put_signal(dst: Any, src: Any, signal: Any, value: int, pe: int, *, op: str = "set", index: int = 0, world: Optional[World] = None) -> None:
    """Puts src into dst at a PE, then sets (or with op="add", adds to) its signal: whoever sees the signal sees the data.

    Zero bytes still signal. Any thread; blocks as put.
    """
    _send("put_signal", dst, src, signal, value, pe, op, index, world)


def put_signal_nbi(dst: Any, src: Any, signal: Any, value: int, pe: int, *, op: str = "set", index: int = 0, world: Optional[World] = None) -> None:
    """Starts a put_signal; src must stay unchanged until quiet, and must be contiguous. Any thread; does not block."""
    if _operand.is_tensor(src) and not src.is_contiguous():
        raise InvalidArgumentError("put_signal_nbi: src is not contiguous; use put_signal, or keep a contiguous copy until quiet")
    _send("put_signal_nbi", dst, src, signal, value, pe, op, index, world)


def signal(word: Any, value: int, pe: int, *, op: str = "set", index: int = 0, world: Optional[World] = None) -> None:
    """Sets or adds to a signal at a PE with no data, after the puts before it. Any thread; does not wait for the answer."""
    where = _resolve(world)
    address, streamed = _signal_word(where, word, index)
    if streamed:
        _send_on_stream("signal", where, address, address, 0, address, value, op, pe)
        return
    status = where.calls.put_signal(where.handle, address, address, 0, address, value & _U64, _how(op), pe)
    if status < 0:
        _call.fail(status, "signal")


def _compare(op: str) -> int:
    try:
        return _COMPARE[op]
    except (KeyError, TypeError):
        raise InvalidArgumentError(f"comparison is {op!r}; give one of {' '.join(_COMPARE)}") from None


def _whole(where: World, word: Any, index: int, name: str) -> Any:
    operand, address = element(word, index, "word")
    if operand.code not in _WHOLE:
        raise InvalidArgumentError(f"{name}: word is {operand.name}; waiting compares integers of 1, 2, 4 or 8 bytes")
    if where.device is not None and where.device.is_symmetric(address):
        where.device.settle(name)  # what the program did to the word before may still be on a stream
    return operand, address


def wait_until(word: Any, op: str, value: int, *, index: int = 0, timeout: Optional[float] = None, world: Optional[World] = None) -> int:
    """Waits until my own element compares (op is == != > >= < <=) with a value, and gives what it then was.

    Any thread; blocks up to timeout; Ctrl-C leaves it.
    """
    where = _resolve(world)
    operand, address = _whole(where, word, index, "wait_until")
    arguments = (
        where.handle,
        address,
        operand.itemsize,
        int(operand.code in _SIGNED),
        _compare(op),
        to_bits(value, operand, "wait_until"),
        _call.timeout_ns(timeout),
    )
    seen = _call.start(library().wait_until_start, arguments, 1, "wait_until")[0]
    return int(from_bits(seen, operand))


def wait_on_stream(word: Any, op: str, value: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Makes torch_npu's current stream wait until my own element, an int32 on the npu, compares with a value.

    Any thread; does not block. The death of a peer ends the wait: the next quiet, barrier or collective raises.
    """
    where = _resolve(world)
    operand, address = element(word, index, "word")
    if where.device is None or not where.device.is_symmetric(address):
        raise UnsupportedError("wait_on_stream: the word must be a symmetric npu tensor (shmem.zeros(..., device='npu')); wait_until waits for any word")
    if operand.code != _abi.DTYPE["I32"]:
        raise InvalidArgumentError(f"wait_on_stream: word is {operand.name}; streams wait for int32")
    stream = where.device.stream()
    status = library().signal_wait_on_stream(where.handle, address, _compare(op), value, stream or None)
    where.device.queued(stream)
    if status < 0:
        _call.fail(status, "wait_on_stream")


def test(word: Any, op: str, value: int, *, index: int = 0, world: Optional[World] = None) -> bool:
    """Whether my own element compares with a value now. Any thread; does not block (on an npu: for the current stream)."""
    where = _resolve(world)
    operand, address = _whole(where, word, index, "test")
    out = ctypes.c_int32()
    status = library().test(
        where.handle,
        address,
        operand.itemsize,
        int(operand.code in _SIGNED),
        _compare(op),
        to_bits(value, operand, "test"),
        ctypes.byref(out),
    )
    if status < 0:
        _call.fail(status, "test")
    return bool(out.value)
