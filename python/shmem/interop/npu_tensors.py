"""npu tensors over the symmetric heap on the device.

A tensor is imported through DLPack: its storage calls a deleter when the last of tensor, views and storage dies. That happens on any
thread, with or without the interpreter's lock, and in the middle of an exception, so the deleter is the library's and only notes it.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
from typing import Any, Callable, Optional, Sequence

import torch

from .. import _block
from .._block import Block
from .._errors import UnsupportedError
from . import npu

_EXTENSION_DEVICE = 12  # kDLExtDev: what torch_npu calls its devices in DLPack
_UNSIGNED = 1  # kDLUInt


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dims", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    """DLManagedTensor, and behind it the one extent that it points to."""

    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("extent", ctypes.c_int64)]


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


@atexit.register
def _keep() -> None:
    """Tensors that are alive now live as long as the process, and so do their blocks: the device's runtime ends before they would be dropped."""
    for block in _block.lent():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(block))


def bytes_at(block: Optional[Block], address: int, nbytes: int, device: int) -> torch.Tensor:
    """A byte tensor over device memory whose storage keeps the block."""
    managed = _block.raw_malloc(ctypes.sizeof(_Managed))
    if not managed:
        raise MemoryError("no memory for a tensor's description")
    ctypes.memset(managed, 0, ctypes.sizeof(_Managed))
    made = _Managed.from_address(managed)
    made.tensor = _Tensor(address, _Device(_EXTENSION_DEVICE, device), 1, _Type(_UNSIGNED, 8, 1), managed + _Managed.extent.offset, None, 0)
    made.extent, made.deleter = nbytes, _block.lend(managed, block)
    try:
        import torch_npu

        return torch_npu._C._npu_from_dlpack(_capsule(managed, b"dltensor", None))
    except Exception:
        _block.not_lent(managed)
        raise


@functools.lru_cache
def mark(index: int) -> Callable[[], Callable[[bool], bool]]:
    """One object per device, so that blocks which come back together share their marks."""
    return functools.partial(npu.mark_streams, index)


def make(block: Block, address: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A contiguous npu tensor whose first byte is at a device address and whose storage keeps the block."""
    count = 1
    for extent in shape:
        count *= extent
    index = index_of(block.world)
    npu.note_stream(npu.runtime().current_stream(index))
    block.in_use = mark(index)
    whole = bytes_at(block, address, max(count * dtype.itemsize, 1), index)
    with npu.runtime().device(index):
        return torch.empty(0, dtype=dtype, device=torch.device(npu.KIND, index)).set_(whole.untyped_storage(), 0, tuple(shape))  # type: ignore[call-overload]


def index_of(world: Any) -> int:
    """The number of a world's device, as torch.npu counts; raises when the world has none or torch_npu is not imported."""
    index = world.device_index
    if index is None:
        raise UnsupportedError("this world has no device: shmem.init(device='npu') gives it one; without, tensors are on the CPU")
    if not npu.loaded():
        raise UnsupportedError("npu tensors need torch_npu: import it before; shmem.buffer and the C interface work without")
    return int(index)
