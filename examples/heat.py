"""Heat spreading over a plate, its rows shared out among the PEs: halos by put_signal, no barrier inside the loop.

    shmem-run -n 4 python examples/heat.py [--size 256] [--steps 200]

Each PE owns a band of rows with one halo row above and below. A step writes the outer rows straight into the neighbours'
halos and then raises their signals to the number of the step; whoever sees the signal sees the row. Two sets of halos take
turns, so a fast PE never overwrites what a slow one still reads. The result is compared with one process doing it all.
"""

from __future__ import annotations

import argparse
import time

import torch

import shmem

HOT = 100.0


def plate(size: int) -> torch.Tensor:
    """The plate at the start: cold, with a hot square off its middle."""
    start = torch.zeros(size, size, dtype=torch.float64)
    start[size // 4 : size // 2, size // 8 : size // 3] = HOT
    return start


def spread(rows: torch.Tensor) -> torch.Tensor:
    """One step for all rows but the first and the last, which are halos; the left and right edges stay cold."""
    inner = rows[1:-1].clone()
    around = rows[:-2, 1:-1] + rows[2:, 1:-1] + rows[1:-1, :-2] + rows[1:-1, 2:]
    inner[:, 1:-1] += 0.2 * (around - 4 * inner[:, 1:-1])
    return inner


def band(size: int, me: int, n: int) -> "tuple[int, int]":
    """First and last row (exclusive) of a PE; the sizes differ by one at most."""
    return size * me // n, size * (me + 1) // n


def run(size: int, steps: int) -> torch.Tensor:
    """This PE's rows after the steps. Collective."""
    me, n = shmem.my_pe(), shmem.n_pes()
    low, high = band(size, me, n)
    mine = plate(size)[low:high].clone()
    halos = shmem.zeros(2, 2, size, dtype=torch.float64)  # [turn][above, below]
    signals = shmem.zeros(2, dtype=torch.int64)  # [from above, from below]
    for step in range(1, steps + 1):
        turn = step % 2
        if me > 0:
            shmem.put_signal(halos[turn, 1], mine[0], signals, step, me - 1, index=1)
        if me < n - 1:
            shmem.put_signal(halos[turn, 0], mine[-1], signals, step, me + 1, index=0)
        if me > 0:
            shmem.wait_until(signals, ">=", step, index=0)
        if me < n - 1:
            shmem.wait_until(signals, ">=", step, index=1)
        mine = spread(torch.cat([halos[turn, :1], mine, halos[turn, 1:]]))
    return mine


def alone(size: int, steps: int) -> torch.Tensor:
    """The same by one process."""
    whole, edge = plate(size), torch.zeros(1, size, dtype=torch.float64)
    for _ in range(steps):
        whole = spread(torch.cat([edge, whole, edge]))
    return whole


def main() -> None:
    """Runs both and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="rows and columns (default 256)")
    parser.add_argument("--steps", type=int, default=200, help="time steps (default 200)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with shmem.init() as world:
        if options.size < world.size:
            parser.error(f"--size {options.size} gives not every one of {world.size} PEs a row")
        shmem.barrier()
        began = time.perf_counter()
        mine = run(options.size, options.steps)
        shmem.barrier()
        took = time.perf_counter() - began
        low, high = band(options.size, world.rank, world.size)
        off = (mine - alone(options.size, options.steps)[low:high]).abs().max()
        worst = shmem.all_reduce(off.reshape(1), op="max").item()
        if world.rank == 0:
            what = f"{world.size} PEs, {options.size}x{options.size}, {options.steps} steps"
            print(f"{what}: {took / options.steps * 1e6:.0f} us a step; largest difference {worst:g}")
        assert worst == 0, "the shared-out plate differs from the whole one"


if __name__ == "__main__":
    main()
