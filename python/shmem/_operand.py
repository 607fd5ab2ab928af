"""What users hand to an operation: torch tensors, Buffers, or any object with the buffer protocol.

An Operand is bytes at an address, with what is needed to compare two of them. torch is asked only when it is already
imported: without it nothing here can be a tensor.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, NamedTuple, Optional

from ._abi import DTYPE
from ._errors import InvalidArgumentError


class Operand(NamedTuple):
    """Bytes at an address; `keep` must live as long as they are used, `back` copies a result to where the user wants it."""

    address: int
    nbytes: int
    elements: int
    itemsize: int
    code: int  # dtype of gshmem.h, 0 when reductions cannot use it
    name: str  # of the dtype, for messages
    keep: Any
    back: Optional[Callable[[], None]] = None


_FORMATS = {
    "B": "U8",
    "b": "I8",
    "c": "U8",
    "H": "U16",
    "h": "I16",
    "e": "F16",
    "f": "F32",
    "d": "F64",
    "?": "BOOL",
    "Zf": "C64",
    "Zd": "C128",
}


def is_tensor(value: Any) -> bool:
    """Whether it is a torch tensor (of any kind); never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def _format_code(letter: str, itemsize: int) -> int:
    letter = letter.lstrip("@=<")
    if letter in _FORMATS:
        return DTYPE[_FORMATS[letter]]
    if letter in ("i", "l", "q", "n"):
        return DTYPE[f"I{itemsize * 8}"]
    if letter in ("I", "L", "Q", "N"):
        return DTYPE[f"U{itemsize * 8}"]
    return 0


def _of_buffer(value: Any, writable: bool, role: str) -> Operand:
    try:
        view = memoryview(value)
    except TypeError:
        kind = type(value).__name__
        raise InvalidArgumentError(f"{role} is of type {kind}; give a torch tensor, a shmem.Buffer or an object with the buffer protocol") from None
    if not view.c_contiguous:
        raise InvalidArgumentError(f"{role} is a buffer with gaps (strides {view.strides}); give a contiguous one")
    if writable and view.readonly:
        raise InvalidArgumentError(f"{role} is read-only ({type(value).__name__}); it would be written")
    code = _format_code(view.format, view.itemsize)
    count = view.nbytes // view.itemsize if view.itemsize else 0
    address, keep = _address(view)
    return Operand(address, view.nbytes, count, view.itemsize, code, view.format, keep)


def _address(view: memoryview) -> Any:
    if view.nbytes == 0:
        return 0, view
    if not view.readonly:
        first = ctypes.c_char.from_buffer(view.cast("B") if view.format != "B" or view.ndim != 1 else view)
        return ctypes.addressof(first), first
    copy = ctypes.create_string_buffer(view.tobytes(), view.nbytes)  # ctypes gives no address of read-only memory
    return ctypes.addressof(copy), copy


def source(value: Any, role: str = "src") -> Operand:
    """An operand to be read: any layout; what is not contiguous is copied together first."""
    if is_tensor(value):
        from .interop import tensors

        return tensors.source(value, role)
    get = getattr(value, "_operand", None)
    return get(role) if get is not None else _of_buffer(value, False, role)


def target(value: Any, role: str = "out") -> Operand:
    """An operand of this process to be written: what is not contiguous gets its result through `back`."""
    if is_tensor(value):
        from .interop import tensors

        return tensors.target(value, role)
    get = getattr(value, "_operand", None)
    return get(role) if get is not None else _of_buffer(value, True, role)


def host_source(value: Any, role: str = "src") -> Operand:
    """source() for what works on host memory alone: a tensor of a device is copied down first."""
    if is_tensor(value):
        from .interop import tensors

        return tensors.source(tensors.on_host(value), role)
    return source(value, role)


def host_target(value: Any, role: str = "out") -> Operand:
    """target() for what works on host memory alone: `back` takes the result to a tensor of a device."""
    if is_tensor(value):
        from .interop import tensors

        return tensors.host_target(value, role)
    return target(value, role)


def symmetric(value: Any, role: str = "dst") -> Operand:
    """An operand that names the same place at a peer, so it must be contiguous and in symmetric memory (the core checks that)."""
    if is_tensor(value):
        from .interop import tensors

        return tensors.symmetric(value, role)
    get = getattr(value, "_operand", None)
    return get(role) if get is not None else _of_buffer(value, True, role)


def same_size(a: Operand, b: Operand, what: str) -> None:
    """Raises unless two operands of a copy have equal dtypes and sizes."""
    if a.nbytes != b.nbytes:
        raise InvalidArgumentError(f"{what}: dst has {a.nbytes} bytes and src has {b.nbytes}; they must be equal")
    raw = "B" in (a.name, b.name)  # bytes without a meaning of their own
    if a.name != b.name and a.code != b.code and not raw:
        raise InvalidArgumentError(f"{what}: dst is {a.name} and src is {b.name}; convert one of them first")
