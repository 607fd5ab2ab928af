"""From torch tensors to plain memory: what can be used where it lies, and what goes through a copy.

The core works on dense, contiguous memory. A tensor that is anything else (strided, transposed, expanded, a conjugate or
negative view) is copied before and, where it is written, copied back after.
"""

from __future__ import annotations

import sys
from typing import Any, List, Sequence, Tuple

import torch

from .._errors import InvalidArgumentError, UnsupportedError

Copies = List[Tuple[torch.Tensor, torch.Tensor]]

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def dense(tensor: Any) -> torch.Tensor:
    """Gives the dense tensor behind an argument, on whatever device, or raises with the way out."""
    if type(tensor) not in _PLAIN:
        tensor = _unwrap(tensor)
    if tensor.layout is not torch.strided:
        raise UnsupportedError(f"tensors of layout {tensor.layout} cannot be used here; call .to_dense() first")
    return tensor


def plain(tensor: Any) -> torch.Tensor:
    """Gives the dense CPU tensor behind an argument, or raises with the way out."""
    tensor = dense(tensor)
    if not tensor.is_cpu:
        raise UnsupportedError(f"the tensor is on device {tensor.device} and this group serves cpu; {_elsewhere(tensor.device.type)}")
    return tensor


def _elsewhere(kind: str) -> str:
    if kind == "npu" and "torch_npu" in sys.modules:
        return "this call works on host memory: use .cpu(), or a symmetric tensor of shmem.empty(device='npu') with put, get and peer"
    if kind == "npu":
        return "import torch_npu before the group is made, and it serves npu as well"
    return "move it with .cpu(), or create the group with a backend for that device ('cpu:shmem,cuda:nccl')"


def _unwrap(tensor: Any) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise InvalidArgumentError(f"expected a torch.Tensor, got {type(tensor).__name__}")
    wait = getattr(tensor, "trigger_wait", None)  # AsyncCollectiveTensor: the value is there once waited for
    if wait is not None:
        return dense(wait())
    if type(tensor).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl and hasattr(tensor, "to_local"):
        raise UnsupportedError(f"a {type(tensor).__name__} cannot be communicated as it is; use its .to_local()")
    if tensor.numel() and tensor.is_cpu and tensor.layout is torch.strided and not tensor.data_ptr():
        raise UnsupportedError(f"a {type(tensor).__name__} has no memory of its own; give the plain tensor inside it")
    return tensor


def direct(tensor: torch.Tensor) -> bool:
    """True when the tensor's elements lie in memory in order, with no pending conjugation or sign."""
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def readable(tensor: Any) -> torch.Tensor:
    """A contiguous tensor with these values: the same one where possible."""
    tensor = plain(tensor)
    if direct(tensor):
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def writable(tensor: Any, after: Copies) -> torch.Tensor:
    """A contiguous tensor whose values reach `tensor` once `after` is carried out."""
    tensor = plain(tensor)
    if direct(tensor):
        return tensor
    refuse_overlap(tensor)
    stage = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    after.append((tensor.detach(), stage))
    return stage


def updatable(tensor: Any, after: Copies) -> torch.Tensor:
    """Both: contiguous, holding the values now, and carried back by `after`."""
    tensor = plain(tensor)
    if direct(tensor):
        return tensor
    refuse_overlap(tensor)
    stage = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    stage.copy_(tensor.detach())
    after.append((tensor.detach(), stage))
    return stage


def refuse_overlap(tensor: torch.Tensor) -> None:
    """Raises when elements of a tensor that is to be written share memory (an expanded tensor)."""
    if torch._debug_has_internal_overlap(tensor) == 1:
        raise InvalidArgumentError(
            f"several elements of the result tensor (shape {tuple(tensor.shape)}, stride {tensor.stride()}) are one place in memory; "
            "give a .clone() of it"
        )


def carry_out(after: Copies) -> None:
    """Copies the results to where they belong."""
    with torch.no_grad():
        for target, source in after:
            target.copy_(source.view(target.shape))


def nbytes(tensor: torch.Tensor) -> int:
    """Bytes of the elements."""
    return tensor.numel() * tensor.element_size()


def overlaps(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True when two contiguous tensors share some memory and are not the very same range."""
    a, b, la, lb = one.data_ptr(), other.data_ptr(), nbytes(one), nbytes(other)
    if not la or not lb or a + la <= b or b + lb <= a:
        return False
    return a != b or la != lb


def consecutive(tensors: Sequence[torch.Tensor]) -> bool:
    """True when the tensors follow each other in memory without a gap."""
    at = tensors[0].data_ptr()
    for tensor in tensors:
        if not direct(tensor) or tensor.data_ptr() != at:
            return False
        at += nbytes(tensor)
    return True


def gathered(tensors: Sequence[Any]) -> torch.Tensor:
    """One flat tensor with the values of all, in order: the memory itself where they are consecutive."""
    parts = [plain(t) for t in tensors]
    total = sum(t.numel() for t in parts)
    if consecutive(parts):
        return _span(parts[0], total)
    stage = torch.empty(total, dtype=parts[0].dtype, device="cpu")
    at = 0
    for part in parts:
        stage[at : at + part.numel()].view(part.shape).copy_(part.detach())
        at += part.numel()
    return stage


def spread(tensors: Sequence[Any], after: Copies) -> torch.Tensor:
    """One flat tensor whose values reach all, in order, once `after` is carried out."""
    parts = [plain(t) for t in tensors]
    total = sum(t.numel() for t in parts)
    if consecutive(parts):
        return _span(parts[0], total)
    stage = torch.empty(total, dtype=parts[0].dtype, device="cpu")
    at = 0
    for part in parts:
        refuse_overlap(part)
        after.append((part.detach(), stage[at : at + part.numel()]))
        at += part.numel()
    return stage


def own_place(small: torch.Tensor, large: Any, rank: int) -> bool:
    """True when a tensor is the rank's own part of a larger one, which the core allows."""
    return bool(small.data_ptr() == large.data_ptr() + rank * nbytes(small))


def scattered(tensors: Sequence[Any], beside: torch.Tensor, after: Copies) -> "_Span":
    """The span from the first to the last of tensors that lie anywhere, with the place of each in it.

    What cannot be written where it lies, or a span that runs over `beside`, is one flat tensor and copies instead.
    """
    parts = [plain(t) for t in tensors]
    low = min(t.data_ptr() for t in parts)
    high = max(t.data_ptr() + nbytes(t) for t in parts)
    outside = beside.data_ptr() >= high or beside.data_ptr() + nbytes(beside) <= low
    if outside and all(direct(t) for t in parts):
        span = _Span(min(parts, key=lambda t: t.data_ptr()), 0)
        span.places = [t.data_ptr() - low for t in parts]
        return span
    stage = torch.empty(sum(t.numel() for t in parts), dtype=parts[0].dtype, device="cpu")
    at, places = 0, []
    for part in parts:
        refuse_overlap(part)
        after.append((part.detach(), stage[at : at + part.numel()]))
        places.append(at * stage.element_size())
        at += part.numel()
    span = _Span(stage, at)
    span.places = places
    return span


class _Span:
    """Memory that starts at a tensor and runs over its neighbours; stands in for a flat tensor."""

    __slots__ = ("elements", "first", "places")

    def __init__(self, first: torch.Tensor, elements: int) -> None:
        self.first = first
        self.elements = elements
        self.places: List[int] = []

    def data_ptr(self) -> int:
        return self.first.data_ptr()

    def numel(self) -> int:
        return self.elements

    def element_size(self) -> int:
        return self.first.element_size()

    @property
    def dtype(self) -> torch.dtype:
        return self.first.dtype


def _span(first: torch.Tensor, elements: int) -> Any:
    return _Span(first, elements)


def same_dtype(what: str, tensors: Sequence[torch.Tensor]) -> None:
    """Raises when the tensors of one call differ in dtype."""
    first = tensors[0].dtype
    for tensor in tensors:
        if tensor.dtype is not first:
            raise InvalidArgumentError(f"{what}: the tensors of one call must have one dtype, these have {first} and {tensor.dtype}")
