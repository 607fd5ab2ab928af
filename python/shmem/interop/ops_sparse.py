"""The sum of sparse tensors over a group: everybody's indices and values are gathered and added up in rank order."""

from __future__ import annotations

from typing import Any, List

import torch

from .._errors import MismatchError, UnsupportedError
from . import ops_channel as channel
from .ops_types import code_of, operator_name
from .work import FinishedWork, Work


def allreduce_sparse(group: Any, tensor: torch.Tensor, operator: int, opts: Any) -> Work:
    """Sums (or averages) COO tensors, in place. Collective. Blocks: until done, also when asyncOp is set."""
    if tensor.layout is not torch.sparse_coo or operator_name(operator) not in ("SUM", "AVG"):
        raise UnsupportedError(
            f"all_reduce of a {tensor.layout} tensor with {operator_name(operator)} is not defined; "
            "SUM and AVG of sparse_coo tensors are, or call .to_dense()"
        )
    mine = tensor.detach().coalesce()
    timeout = channel.nanoseconds(opts.timeout) if opts is not None else channel._DEFAULT
    counts = _agree(group, mine, timeout)
    indices = _gather(group, mine.indices(), counts, 1, timeout)
    values = _gather(group, mine.values(), counts, 0, timeout)
    total = torch.sparse_coo_tensor(torch.cat(indices, 1), torch.cat(values, 0), mine.shape, device="cpu").coalesce()
    if operator_name(operator) == "AVG":
        total = total / group._channel.size
    with torch.no_grad():
        tensor.copy_(total)
    done = FinishedWork()
    done._result = (tensor,)
    return group._channel.gave(done)


def _agree(group: Any, mine: torch.Tensor, timeout: int) -> List[int]:
    """How many values each rank has; raises when the shapes differ."""
    shape = torch.tensor([mine._nnz(), mine.sparse_dim(), *mine.shape], dtype=torch.int64, device="cpu")
    size = group._channel.size
    table = torch.empty((size, shape.numel()), dtype=torch.int64, device="cpu")
    _all_gather(group, shape, table, timeout)
    for rank, row in enumerate(table):
        if not torch.equal(row[1:], shape[1:]):
            raise MismatchError(
                f"all_reduce: rank {rank} has a sparse tensor of {row[1]} sparse dimensions and shape {tuple(row[2:].tolist())}, "
                f"this rank {mine.sparse_dim()} and {tuple(mine.shape)}",
                operation="all_reduce",
                pe=rank,
            )
    return [int(count) for count in table[:, 0]]


def _gather(group: Any, mine: torch.Tensor, counts: List[int], along: int, timeout: int) -> List[torch.Tensor]:
    """Everybody's part; each is padded to the longest along one dimension on the way."""
    longest = max(counts)
    shape = list(mine.shape)
    shape[along] = longest
    padded = torch.zeros(shape, dtype=mine.dtype, device="cpu")
    padded.narrow(along, 0, mine.shape[along]).copy_(mine)
    everybody = torch.empty((len(counts), *shape), dtype=mine.dtype, device="cpu")
    _all_gather(group, padded, everybody, timeout)
    return [part.narrow(along, 0, count) for part, count in zip(everybody, counts)]


def _all_gather(group: Any, mine: torch.Tensor, everybody: torch.Tensor, timeout: int) -> None:
    size = mine.numel() * mine.element_size()
    group._channel.run(
        channel.ALL_GATHER, mine, everybody, size, dtype=code_of(mine.dtype), timeout_ns=timeout, sync=True, result=(everybody,)
    )
