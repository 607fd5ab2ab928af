"""Signals: 8-byte words that say that data have arrived, and waiting for any word of one's own memory."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _abi, _call, _operand
from ._errors import InvalidArgumentError
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


def _signal_word(signal: Any, index: int) -> int:
    operand, address = element(signal, index, "signal")
    if operand.itemsize != 8:
        raise InvalidArgumentError(f"signal has elements of {operand.itemsize} bytes ({operand.name}); a signal is an 8-byte integer")
    return address


def _how(op: str) -> int:
    try:
        return _abi.SIGNAL[f"SIGNAL_{op.upper()}"]
    except (KeyError, AttributeError):
        raise InvalidArgumentError(f"signal operation is {op!r}; give 'set' or 'add'") from None


def _send(name: str, dst: Any, src: Any, signal: Any, value: int, pe: int, op: str, index: int, world: Optional[World]) -> None:
    there, here = _operand.symmetric(dst, "dst"), _operand.source(src, "src")
    _operand.same_size(there, here, name)
    word = _signal_word(signal, index)
    where = _resolve(world)
    status = getattr(where.calls, name)(where.handle, there.address or word, here.address or word, here.nbytes, word, value & _U64, _how(op), pe)
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
    address = _signal_word(word, index)
    where = _resolve(world)
    status = where.calls.put_signal(where.handle, address, address, 0, address, value & _U64, _how(op), pe)
    if status < 0:
        _call.fail(status, "signal")


def _compare(op: str) -> int:
    try:
        return _COMPARE[op]
    except (KeyError, TypeError):
        raise InvalidArgumentError(f"comparison is {op!r}; give one of {' '.join(_COMPARE)}") from None


def _whole(word: Any, index: int, name: str) -> Any:
    operand, address = element(word, index, "word")
    if operand.code not in _WHOLE:
        raise InvalidArgumentError(f"{name}: word is {operand.name}; waiting compares integers of 1, 2, 4 or 8 bytes")
    return operand, address


def wait_until(word: Any, op: str, value: int, *, index: int = 0, timeout: Optional[float] = None, world: Optional[World] = None) -> int:
    """Waits until my own element compares (op is == != > >= < <=) with a value, and gives what it then was.

    Any thread; blocks up to timeout; Ctrl-C leaves it.
    """
    operand, address = _whole(word, index, "wait_until")
    arguments = (
        _resolve(world).handle,
        address,
        operand.itemsize,
        int(operand.code in _SIGNED),
        _compare(op),
        to_bits(value, operand, "wait_until"),
        _call.timeout_ns(timeout),
    )
    seen = _call.start(library().wait_until_start, arguments, 1, "wait_until")[0]
    return from_bits(seen, operand)


def test(word: Any, op: str, value: int, *, index: int = 0, world: Optional[World] = None) -> bool:
    """Whether my own element compares with a value now. Any thread; does not block."""
    operand, address = _whole(word, index, "test")
    out = ctypes.c_int32()
    status = library().test(
        _resolve(world).handle,
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
