"""Tensors of every layout with given values, and the single-process reference of every reduction.

Values are made and expected results computed on the CPU; the layouts are on the device under test.
"""

from __future__ import annotations

from typing import Any, Dict, List

import torch
import torch.distributed as dist

from data import here, on_host, values

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
REDUCED = (*INTEGERS, *FLOATS, torch.bool)
NARROW = tuple(getattr(torch, n) for n in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64") if hasattr(torch, n))
MOVED = (*REDUCED, *COMPLEX, *NARROW)
OPERATORS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def contiguous(t: torch.Tensor) -> torch.Tensor:
    return here(t.clone())


def offset(t: torch.Tensor) -> torch.Tensor:
    """Begins an odd number of elements into its storage."""
    base = here(torch.zeros(t.numel() + 3, dtype=t.dtype, device="cpu"))
    return _fill(base[3:].view(t.shape), t)


def strided(t: torch.Tensor) -> torch.Tensor:
    """Every other element of the last dimension."""
    if not t.dim():
        return here(t.clone())
    base = here(torch.zeros((*t.shape[:-1], t.shape[-1] * 2), dtype=t.dtype, device="cpu"))
    return _fill(base[..., ::2], t)


def transposed(t: torch.Tensor) -> torch.Tensor:
    """The same values, dimensions stored in the other order."""
    if t.dim() < 2:
        return here(t.clone())
    base = here(torch.zeros(tuple(reversed(t.shape)), dtype=t.dtype, device="cpu"))
    return _fill(base.permute(*reversed(range(t.dim()))), t)


def _fill(target: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    narrow(target).copy_(narrow(t))
    return target


def narrow(t: torch.Tensor) -> torch.Tensor:
    """The same bits as numbers that every device can copy with gaps: complex numbers and 8-bit floats are not among them."""
    if t.dtype is torch.complex128:
        t = torch.view_as_real(t)
    kinds = {torch.complex64: torch.int64, torch.float8_e4m3fn: torch.int8, torch.float8_e5m2: torch.int8}
    return t.view(kinds[t.dtype]) if t.dtype in kinds else t


LAYOUTS = (contiguous, offset, strided, transposed)


def source(dtype: torch.dtype, rank: int, shape: Any = (3, 5), salt: int = 0) -> torch.Tensor:
    """Values that differ between ranks and elements, small enough to be exact in every dtype."""
    with on_host():
        if dtype in (torch.uint16, torch.uint32, torch.uint64):
            return values(shape, torch.uint8, rank, salt).to(dtype)
        if str(dtype).startswith("torch.float8"):
            return values(shape, torch.float32, rank, salt).to(dtype)
        return values(shape, dtype, rank, salt)


def defined(dtype: torch.dtype, operator: str) -> bool:
    """Whether torch defines the reduction for the dtype (on one process)."""
    if operator in ("BAND", "BOR", "BXOR"):
        return not (dtype.is_floating_point or dtype.is_complex)
    if operator == "AVG":
        return dtype.is_floating_point or dtype.is_complex
    return operator in ("SUM", "PRODUCT") or not dtype.is_complex


def reference(operator: str, parts: List[torch.Tensor]) -> torch.Tensor:
    """The reduction with torch's own arithmetic on one process."""
    steps: Dict[str, Any] = {
        "SUM": lambda a, b: a + b,
        "AVG": lambda a, b: a + b,
        "PRODUCT": lambda a, b: a * b,
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "BAND": torch.bitwise_and,
        "BOR": torch.bitwise_or,
        "BXOR": torch.bitwise_xor,
    }
    dtype = parts[0].dtype
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    total = parts[0].to(wide)
    for part in parts[1:]:
        total = steps[operator](total, part.to(wide))
    if operator == "AVG" and dtype.is_complex:
        return torch.view_as_complex(torch.view_as_real(total) / len(parts))
    if operator == "AVG":
        total = total / len(parts)
    return total.to(dtype)


def operator_of(name: str) -> Any:
    return getattr(dist.ReduceOp, name)


def bits(t: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, for a comparison that no dtype escapes."""
    if t.device.type != "cpu":
        t = narrow(t).cpu()
    flat = torch.empty(t.shape, dtype=t.dtype, device="cpu")
    flat.copy_(t.resolve_conj().resolve_neg())
    return flat.reshape(-1).view(torch.uint8)


def same(got: torch.Tensor, want: torch.Tensor, what: str) -> None:
    """Raises with both values when they differ in a bit."""
    assert got.shape == want.shape, f"{what}: shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    assert torch.equal(bits(got), bits(want)), f"{what}:\n got {got}\nwant {want}"
