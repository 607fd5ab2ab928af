"""Atomic updates of one 4- or 8-byte element at a PE, atomic against each other whatever the transport."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _abi, _call
from ._errors import InvalidArgumentError
from ._rma import _resolve, element, from_bits, to_bits
from ._world import World

_OPS = _abi.ATOMIC


def _update(what: str, target: Any, pe: int, index: int, world: Optional[World], operand: Any = 0, compare: Any = 0, fetch: bool = False) -> Any:
    name = f"atomic_{what.lower()}"
    word, address = element(target, index, "target")
    if word.itemsize not in (4, 8):
        raise InvalidArgumentError(f"{name}: elements of {word.name} have {word.itemsize} bytes; atomics work on 4 and 8 bytes")
    if what in ("ADD", "INC", "AND", "OR", "XOR") and word.code in (_abi.DTYPE["F32"], _abi.DTYPE["F64"]):
        raise InvalidArgumentError(f"{name}: {word.name} has no atomic {what.lower()}; set, fetch, swap and compare_swap work on it")
    old = ctypes.c_uint64()
    where = _resolve(world)
    status = where.calls.atomic(
        where.handle,
        _OPS[f"A_{what}"],
        word.itemsize,
        address,
        to_bits(operand, word, name),
        to_bits(compare, word, name),
        pe,
        ctypes.byref(old) if fetch else None,
    )
    if status < 0:
        _call.fail(status, name)
    return from_bits(old.value, word) if fetch else None


def atomic_set(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Stores a value atomically at a PE. Any thread; does not wait for the answer."""
    _update("SET", target, pe, index, world, value)


def atomic_fetch(target: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Gives an element of a PE atomically. Any thread; blocks for the answer."""
    return _update("FETCH", target, pe, index, world, fetch=True)


def atomic_swap(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Stores a value at a PE and gives the old one. Any thread; blocks for the answer."""
    return _update("SWAP", target, pe, index, world, value, fetch=True)


def atomic_compare_swap(target: Any, compare: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Stores a value at a PE when the element equals compare, and gives the old one. Any thread; blocks for the answer."""
    return _update("CSWAP", target, pe, index, world, value, compare, fetch=True)


def atomic_add(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Adds to an element at a PE. Any thread; does not wait for the answer."""
    _update("ADD", target, pe, index, world, value)


def atomic_fetch_add(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Adds to an element at a PE and gives the old value. Any thread; blocks for the answer."""
    return _update("ADD", target, pe, index, world, value, fetch=True)


def atomic_inc(target: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Adds one to an element at a PE. Any thread; does not wait for the answer."""
    _update("INC", target, pe, index, world)


def atomic_fetch_inc(target: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Adds one to an element at a PE and gives the old value. Any thread; blocks for the answer."""
    return _update("INC", target, pe, index, world, fetch=True)


def atomic_and(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Combines an element at a PE with a value by bitwise and. Any thread; does not wait for the answer."""
    _update("AND", target, pe, index, world, value)


def atomic_fetch_and(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Combines an element at a PE by bitwise and, and gives the old value. Any thread; blocks for the answer."""
    return _update("AND", target, pe, index, world, value, fetch=True)


def atomic_or(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Combines an element at a PE with a value by bitwise or. Any thread; does not wait for the answer."""
    _update("OR", target, pe, index, world, value)


def atomic_fetch_or(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Combines an element at a PE by bitwise or, and gives the old value. Any thread; blocks for the answer."""
    return _update("OR", target, pe, index, world, value, fetch=True)


def atomic_xor(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Combines an element at a PE with a value by bitwise exclusive or. Any thread; does not wait for the answer."""
    _update("XOR", target, pe, index, world, value)


def atomic_fetch_xor(target: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Combines an element at a PE by bitwise exclusive or, and gives the old value. Any thread; blocks for the answer."""
    return _update("XOR", target, pe, index, world, value, fetch=True)
