"""Attention over a sequence that no PE holds as a whole: keys and values travel around a ring while each PE computes.

    shmem-run -n 4 python examples/ring_attention.py [--tokens 512] [--heads 4] [--width 32]

Every PE has its part of the queries, keys and values. In each of n rounds it sends the block it has on to its right
neighbour (put_signal: the signal comes after the data), computes with it meanwhile, and combines what it gets by the
running maximum and sum of the softmax. Two inboxes take turns; a second signal tells the left neighbour that one is
free again. The result is compared with attention over the whole sequence.
"""

from __future__ import annotations

import argparse

import torch

import shmem


class Running:
    """The softmax so far: weighted values, the sum of weights, and the maximum they are relative to."""

    def __init__(self, query: torch.Tensor) -> None:
        """Nothing seen yet. query: [heads, tokens, width]."""
        self.query = query / query.shape[-1] ** 0.5
        self.top = torch.full(query.shape[:-1] + (1,), float("-inf"), dtype=query.dtype)
        self.total = torch.zeros_like(self.top)
        self.values = torch.zeros_like(query)

    def add(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Takes one block in."""
        scores = self.query @ keys.transpose(-1, -2)
        top = torch.maximum(self.top, scores.amax(-1, keepdim=True))
        weights, fade = (scores - top).exp(), (self.top - top).exp()
        self.total = self.total * fade + weights.sum(-1, keepdim=True)
        self.values = self.values * fade + weights @ values
        self.top = top


def ring(query: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Attention of this PE's queries over all PEs' blocks. block: [keys and values, heads, tokens, width]. Collective."""
    me, n = shmem.my_pe(), shmem.n_pes()
    right, left = (me + 1) % n, (me - 1) % n
    inbox = shmem.empty(2, *block.shape, dtype=block.dtype)
    came, free = shmem.zeros(2, dtype=torch.int64)  # rounds whose block came from the left, and whose inbox the right one has read
    seen = Running(query)
    for step in range(n):
        if step < n - 1:
            if step >= 2:
                shmem.wait_until(free, ">=", step - 1)  # the right neighbour has read what this inbox held
            shmem.put_signal(inbox[step % 2], block, came, step + 1, right)
        seen.add(*block)
        if 0 < step < n - 1:
            shmem.signal(free, step, left)  # what came in the round before has been computed with and sent on
        if step < n - 1:
            shmem.wait_until(came, ">=", step + 1)
            block = inbox[step % 2]
    return seen.values / seen.total


def main() -> None:
    """Runs the ring and compares with torch's own attention."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=512, help="of each PE (default 512)")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with shmem.init() as world:
        torch.manual_seed(5)  # every PE makes the whole sequence, to compare, and works on its part of it
        whole = torch.randn(3, options.heads, world.size * options.tokens, options.width, dtype=torch.float64)
        mine = whole.chunk(world.size, dim=2)[world.rank]
        got = ring(mine[0], mine[1:].contiguous())
        want = torch.nn.functional.scaled_dot_product_attention(*whole.unsqueeze(1)).squeeze(0).chunk(world.size, dim=1)[world.rank]
        off = shmem.all_reduce((got - want).abs().max().reshape(1), op="max").item()
        if world.rank == 0:
            print(f"{world.size} PEs, {world.size * options.tokens} tokens: largest difference from attention over the whole {off:.2g}")
        assert off < 1e-12


if __name__ == "__main__":
    main()
