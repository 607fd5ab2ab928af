"""torch tensors over symmetric memory, and the memory of any torch tensor.

A symmetric tensor is torch.frombuffer over an exporter that carries its Block: storage, views and the tensor keep the block,
and pickling, deepcopy, clone and .to() give ordinary tensors.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch

from .._abi import DTYPE
from .._block import Block, exporter
from .._errors import InvalidArgumentError, NotSymmetricError
from .._operand import Operand
from . import npu
from .stage import Stage

_CODES = {
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "bool": "BOOL",
    "complex64": "C64",
    "complex128": "C128",
    "complex32": "C32",
    "float8_e4m3fn": "F8E4M3FN",
    "float8_e5m2": "F8E5M2",
    "float8_e4m3fnuz": "F8E4M3FNUZ",
    "float8_e5m2fnuz": "F8E5M2FNUZ",
}

# torch dtype -> dtype code of gshmem.h; a dtype that is missing can be moved but not reduced.
DTYPE_CODES: Dict[torch.dtype, int] = {
    getattr(torch, name): DTYPE[code] for name, code in _CODES.items() if isinstance(getattr(torch, name, None), torch.dtype)
}


_QUANTIZED = frozenset(getattr(torch, name) for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4") if hasattr(torch, name))


def check_dtype(dtype: torch.dtype) -> None:
    """Raises for what is no dtype, and for quantized ones: a tensor of these is nothing without its quantizer."""
    if not isinstance(dtype, torch.dtype):
        raise InvalidArgumentError(f"dtype is {dtype!r}; give a torch.dtype")
    if dtype in _QUANTIZED:
        raise InvalidArgumentError(f"{dtype} tensors need a quantizer beside their memory; allocate the integers of int_repr() instead")


def make(block: Optional[Block], address: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A contiguous tensor whose first byte is at an address and whose storage keeps the block; an npu tensor when the block is on the device."""
    if block is not None and block.on_device:
        from . import npu_tensors

        return npu_tensors.make(block, address, shape, dtype)
    count = 1
    for size in shape:
        count *= size
    span = exporter(address, max(count, 1) * dtype.itemsize, block)
    flat = torch.frombuffer(span, dtype=dtype, count=max(count, 1))
    if count:
        return flat.resize_(tuple(shape))  # in place: a view would keep its base, and the block, whatever becomes of it
    return torch.empty(0, dtype=dtype, device="cpu").set_(flat.untyped_storage(), 0, tuple(shape))  # type: ignore[call-overload]


def as_shape(size: Tuple[Any, ...]) -> Tuple[int, ...]:
    """The shape in `empty(2, 3)`, `empty((2, 3))` or `empty()`; raises on negative or non-integer sizes."""
    if len(size) == 1 and isinstance(size[0], (tuple, list, torch.Size)):
        size = tuple(size[0])
    shape = []
    for extent in size:
        try:
            number = extent.__index__()
        except AttributeError:
            raise InvalidArgumentError(f"a size of a tensor is an integer, not {extent!r}") from None
        if number < 0:
            raise InvalidArgumentError(f"a size of a tensor is {number}; it must not be negative")
        shape.append(number)
    return tuple(shape)


def nbytes_of(shape: Sequence[int], dtype: torch.dtype) -> int:
    """Bytes of a contiguous tensor, exact for any size."""
    total = dtype.itemsize
    for size in shape:
        total *= size
    return total


def _plain(t: torch.Tensor, role: str) -> None:
    if t.layout is not torch.strided:
        raise InvalidArgumentError(f"{role} is a tensor of layout {t.layout}; only strided (dense) tensors have memory to move, use .to_dense()")
    if t.device.type not in ("cpu", npu.KIND):
        raise InvalidArgumentError(f"{role} is a tensor on {t.device}; symmetric memory is on the cpu and on npus, use .cpu()")
    if t.is_quantized:
        raise InvalidArgumentError(f"{role} is a quantized tensor; use .int_repr() and move its scale beside it")
    if type(t) is not torch.Tensor and not isinstance(t, torch.nn.Parameter):
        _refuse_wrapper(t, role)


def _refuse_wrapper(t: torch.Tensor, role: str) -> None:
    """A wrapper subclass (DTensor, FakeTensor, a functional tensor) has no bytes of its own."""
    try:
        t.untyped_storage().data_ptr()
        real = t.data_ptr() != 0 or t.numel() == 0
    except Exception as problem:  # torch raises several kinds here, all of them mean "no memory"
        raise InvalidArgumentError(f"{role} is a {type(t).__name__} without memory of its own: {problem}") from problem
    if not real:
        raise InvalidArgumentError(f"{role} is a {type(t).__name__} without memory of its own; give the plain tensor inside it")


def _operand(t: torch.Tensor, back: Optional[Callable[[], None]] = None) -> Operand:
    count, itemsize = t.numel(), t.element_size()
    address = t.data_ptr() if count else 0
    return Operand(address, count * itemsize, count, itemsize, DTYPE_CODES.get(t.dtype, 0), str(t.dtype), t, back)


def _simple(t: torch.Tensor) -> bool:
    """Whether a tensor's bytes are just there: a plain dense CPU tensor in one piece."""
    return (
        type(t) is torch.Tensor and t.is_cpu and t.layout is torch.strided and not t.is_quantized and t.is_contiguous() and not t.is_neg() and not t.is_conj()
    )


def source(t: torch.Tensor, role: str) -> Operand:
    """The bytes of a tensor to be read; a copy when it is not contiguous, or lazily conjugated or negated."""
    if _simple(t):
        return _operand(t)
    _plain(t, role)
    return _operand(t.detach().resolve_conj().resolve_neg().contiguous())


def target(t: torch.Tensor, role: str) -> Operand:
    """Where a result for a tensor is written: the tensor itself, or a contiguous stand-in that `back` copies into it."""
    if not t.requires_grad and _simple(t):
        return _operand(t)
    _plain(t, role)
    if t.requires_grad and t.is_leaf and torch.is_grad_enabled():
        raise InvalidArgumentError(f"{role} is a leaf tensor that requires grad; write into it under torch.no_grad() or pass t.detach()")
    if t.is_contiguous() and not t.is_conj() and not t.is_neg():
        return _operand(t.detach())
    _refuse_overlap(t, role)
    stand_in = t.detach().resolve_conj().resolve_neg().contiguous()

    def back() -> None:
        with torch.no_grad():
            t.copy_(stand_in)

    return _operand(stand_in, back)


def on_host(t: torch.Tensor) -> torch.Tensor:
    """The tensor itself on the CPU, or a copy of what the current stream leaves in it. Blocks: for the device."""
    if t.device.type != npu.KIND:
        return t
    stage = Stage(t.device, later=False)
    host = stage.read(t)
    stage.arrived()
    return host


def host_target(t: torch.Tensor, role: str) -> Operand:
    """target() on host memory, holding the values of a device tensor; `back` queues the result on the current stream."""
    if t.device.type != npu.KIND:
        return target(t, role)
    if t.requires_grad and t.is_leaf and torch.is_grad_enabled():
        raise InvalidArgumentError(f"{role} is a leaf tensor that requires grad; write into it under torch.no_grad() or pass t.detach()")
    stage = Stage(t.device, later=False)
    host = stage.update(t)
    stage.arrived()
    return _operand(host, stage.home)


def _refuse_overlap(t: torch.Tensor, role: str) -> None:
    strides = sorted((stride, size) for stride, size in zip(t.stride(), t.size()) if size > 1)
    reach = 0
    for stride, size in strides:
        if stride <= reach:
            raise InvalidArgumentError(f"{role} has elements that share memory (strides {tuple(t.stride())}); it cannot hold a result, use .clone()")
        reach += stride * (size - 1)


def symmetric(t: torch.Tensor, role: str) -> Operand:
    """The bytes that a symmetric tensor names at a peer."""
    if getattr(t, "_shmem_freed", False):
        raise NotSymmetricError(f"{role} was freed by shmem.free; allocate it again")
    if _simple(t):
        return _operand(t)
    _plain(t, role)
    if not t.is_contiguous():
        raise InvalidArgumentError(
            f"{role} is not contiguous (strides {tuple(t.stride())}); use iput/iget for strided elements, put to slices, or allocate it contiguous"
        )
    if t.is_conj() or t.is_neg():
        raise InvalidArgumentError(f"{role} is a lazily conjugated or negated view; use .resolve_conj().resolve_neg() of the tensor it views")
    return _operand(t.detach())


def like_at(t: torch.Tensor, address: int, block: Block) -> torch.Tensor:
    """A tensor of the same dtype, shape and strides whose first element is at another address (a peer's copy)."""
    if t.numel() == 0:
        return make(block, block.address, tuple(t.shape), t.dtype)
    reach = 1 + sum((size - 1) * stride for size, stride in zip(t.size(), t.stride()))
    flat = make(block, address, (reach,), t.dtype)
    return flat.as_strided(t.size(), t.stride())


def wait_for_stream(tensor: torch.Tensor) -> None:
    """Waits until the device has done what the current stream has to do with an npu tensor. Collective: no. Blocks: for the stream."""
    npu.runtime().current_stream(tensor.device).synchronize()
