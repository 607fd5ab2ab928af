"""The group's operations as torch operators: for torch.compile (fake kernels) and for autograd (gradients).

    torch.ops.shmem.all_reduce(t, "sum", group_name)     a new tensor; gradient: all_reduce of the gradient
    torch.ops.shmem.all_gather(t, group_name)            along dimension 0; gradient: reduce_scatter
    torch.ops.shmem.reduce_scatter(t, "sum", group_name) along dimension 0; gradient: all_gather
    torch.ops.shmem.all_to_all(t, group_name)            equal parts of dimension 0; gradient: all_to_all
    torch.ops.shmem.put(source, handle.id, peer, offset)    into the peer's copy of a rendezvoused buffer
    torch.ops.shmem.get(like, handle.id, peer, offset)      a new tensor out of it
    torch.ops.shmem.barrier(handle.id, channel)             all ranks

A group is named by its group_name, as torch's own functional collectives do. Collective ones block until they are done.
Importing this module registers the operators; shmem.interop.functional.all_reduce(...) and so on are the same as functions.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.distributed as dist

from .._errors import InvalidArgumentError
from .window_symm import group_of, handle_of, rendezvous

_OPERATORS = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR", "bxor": "BXOR"}


def _operator(name: str) -> Any:
    try:
        return getattr(dist.ReduceOp, _OPERATORS[name.lower()])
    except KeyError:
        raise InvalidArgumentError(f"reduction {name!r} is not known; known are {', '.join(_OPERATORS)}") from None


def _name(group: Any) -> str:
    return group if isinstance(group, str) else str(group_of(group).group_name)


def _size(group: str) -> int:
    return int(group_of(group)._channel.size)


def _parts(t: torch.Tensor, group: str, what: str) -> int:
    size = _size(group)
    if not t.dim() or t.size(0) % size:
        raise InvalidArgumentError(f"{what}: dimension 0 of shape {tuple(t.shape)} is not a multiple of the group's {size} ranks")
    return t.size(0) // size


def _options(kind: str, op: Optional[str] = None) -> Any:
    made = getattr(torch._C._distributed_c10d, kind)()
    if op is not None:
        made.reduceOp = _operator(op)
    if hasattr(made, "asyncOp"):
        made.asyncOp = False
    return made


@torch.library.custom_op("shmem::all_reduce", mutates_args=())
def _all_reduce(t: torch.Tensor, op: str, group: str) -> torch.Tensor:
    out = t.clone(memory_format=torch.contiguous_format)
    group_of(group).allreduce([out], _options("AllreduceOptions", op)).wait()
    return out


@_all_reduce.register_fake
def _(t: torch.Tensor, op: str, group: str) -> torch.Tensor:
    return torch.empty(t.shape, dtype=t.dtype, device=t.device)


@torch.library.custom_op("shmem::all_gather", mutates_args=())
def _all_gather(t: torch.Tensor, group: str) -> torch.Tensor:
    if not t.dim():
        raise InvalidArgumentError("all_gather: a 0-dimensional tensor has no dimension 0; use .view(1)")
    out = torch.empty((t.size(0) * _size(group), *t.shape[1:]), dtype=t.dtype, device=t.device)
    group_of(group).all_gather_single(out, t, _options("AllgatherOptions")).wait()
    return out


@_all_gather.register_fake
def _(t: torch.Tensor, group: str) -> torch.Tensor:
    return torch.empty((t.size(0) * _size(group), *t.shape[1:]), dtype=t.dtype, device=t.device)


@torch.library.custom_op("shmem::reduce_scatter", mutates_args=())
def _reduce_scatter(t: torch.Tensor, op: str, group: str) -> torch.Tensor:
    out = torch.empty((_parts(t, group, "reduce_scatter"), *t.shape[1:]), dtype=t.dtype, device=t.device)
    group_of(group).reduce_scatter_single(out, t, _options("ReduceScatterOptions", op)).wait()
    return out


@_reduce_scatter.register_fake
def _(t: torch.Tensor, op: str, group: str) -> torch.Tensor:
    return torch.empty((t.size(0) // _size(group), *t.shape[1:]), dtype=t.dtype, device=t.device)


@torch.library.custom_op("shmem::all_to_all", mutates_args=())
def _all_to_all(t: torch.Tensor, group: str) -> torch.Tensor:
    _parts(t, group, "all_to_all")
    out = torch.empty(t.shape, dtype=t.dtype, device=t.device)
    group_of(group).all_to_all_single(out, t, [], [], _options("AllToAllOptions")).wait()
    return out


@_all_to_all.register_fake
def _(t: torch.Tensor, group: str) -> torch.Tensor:
    return torch.empty(t.shape, dtype=t.dtype, device=t.device)


@torch.library.custom_op("shmem::put", mutates_args=())
def _put(source: torch.Tensor, buffer: int, peer: int, offset: int) -> None:
    handle_of(buffer).put(source, peer, offset)


@_put.register_fake
def _(source: torch.Tensor, buffer: int, peer: int, offset: int) -> None:
    return None


@torch.library.custom_op("shmem::get", mutates_args=())
def _get(like: torch.Tensor, buffer: int, peer: int, offset: int) -> torch.Tensor:
    out = torch.empty(like.shape, dtype=like.dtype, device=like.device)
    handle_of(buffer).get(out, peer, offset)
    return out


@_get.register_fake
def _(like: torch.Tensor, buffer: int, peer: int, offset: int) -> torch.Tensor:
    return torch.empty(like.shape, dtype=like.dtype, device=like.device)


@torch.library.custom_op("shmem::barrier", mutates_args=(), schema="(int buffer, int channel) -> ()")
def _barrier(buffer: int, channel: int) -> None:
    handle_of(buffer).barrier(channel)


@_barrier.register_fake
def _(buffer: int, channel: int) -> None:
    return None


def _keep_order() -> None:
    """Tells torch.compile that these act on memory it does not see: none may be dropped, and their order stays.

    Declaring the buffer as mutated would be wrong: a compiler may run the operator on a copy and write the copy back over what
    peers have put meanwhile. So the buffer is not an argument; read it with get, also this rank's own.
    """
    from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

    for op in (torch.ops.shmem.put.default, torch.ops.shmem.get.default, torch.ops.shmem.barrier.default):
        _register_effectful_op(op, _EffectType.ORDERED)


_keep_order()


# ---- gradients ------------------------------------------------------------------------------------------------------------


def _keep_group(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.group = inputs[-1]
    ctx.op = inputs[1].lower() if len(inputs) == 3 else None
    if ctx.op not in (None, "sum", "avg"):
        ctx.op = "none"


def _linear(ctx: Any) -> str:
    if ctx.op == "none":
        raise InvalidArgumentError("only reductions with sum and avg have a gradient")
    return ctx.op or "sum"


_all_reduce.register_autograd(lambda ctx, grad: (_all_reduce(grad.contiguous(), _linear(ctx), ctx.group), None, None), setup_context=_keep_group)
_all_gather.register_autograd(lambda ctx, grad: (_reduce_scatter(grad.contiguous(), "sum", ctx.group), None), setup_context=_keep_group)
_all_to_all.register_autograd(lambda ctx, grad: (_all_to_all(grad.contiguous(), ctx.group), None), setup_context=_keep_group)


def _back_from_scatter(ctx: Any, grad: torch.Tensor) -> Any:
    whole = _all_gather(grad.contiguous(), ctx.group)
    return (whole / _size(ctx.group) if _linear(ctx) == "avg" else whole), None, None


_reduce_scatter.register_autograd(_back_from_scatter, setup_context=_keep_group)


# ---- the same as functions ------------------------------------------------------------------------------------------------


def all_reduce(t: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:
    """The reduction of everybody's tensor, as a new one. Collective. Blocks: until done."""
    return _all_reduce(t, op, _name(group))


def all_gather(t: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Everybody's tensor, joined along dimension 0. Collective. Blocks: until done."""
    return _all_gather(t, _name(group))


def reduce_scatter(t: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:
    """This rank's part, along dimension 0, of the reduction. Collective. Blocks: until done."""
    return _reduce_scatter(t, op, _name(group))


def all_to_all(t: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Part i of dimension 0 goes to rank i. Collective. Blocks: until done."""
    return _all_to_all(t, _name(group))


def put(source: torch.Tensor, handle: Any, peer: int, offset: int = 0) -> None:
    """Writes into a rank's copy of a rendezvoused buffer, at an offset in elements. Collective: no. Blocks: no."""
    _put(source, _id(handle), peer, offset)


def get(like: torch.Tensor, handle: Any, peer: int, offset: int = 0) -> torch.Tensor:
    """Reads a tensor of this shape and dtype from a rank's copy (the own one too). Collective: no. Blocks: for the data."""
    return _get(like, _id(handle), peer, offset)


def barrier(handle: Any, channel: int = 0) -> None:
    """Waits for all ranks; puts before it are complete. Collective. Blocks: until all are here."""
    _barrier(_id(handle), channel)


def _id(handle: Any) -> int:
    return handle if isinstance(handle, int) else int(handle.id)


__all__ = ["all_gather", "all_reduce", "all_to_all", "barrier", "get", "put", "reduce_scatter", "rendezvous"]
