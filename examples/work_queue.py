"""Work of uneven size, taken by whoever is free: one atomic counter is the whole scheduler.

    shmem-run -n 4 python examples/work_queue.py [--tasks 64]

Task i counts the primes below a bound that grows with i, so equal shares would leave the first PEs idle. Each PE takes the
next number with atomic_fetch_inc on PE 0 (which takes no part in that) and puts its answer into PE 0's table.
"""

from __future__ import annotations

import argparse

import torch

import shmem


def primes_below(bound: int) -> int:
    """How many primes there are below a bound."""
    sieve = torch.ones(max(bound, 2), dtype=torch.bool)
    sieve[:2] = False
    for i in range(2, int(bound**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return int(sieve[:bound].sum())


def bound_of(task: int) -> int:
    """The size of a task."""
    return 100 + 137 * task * task


def main() -> None:
    """Works until the queue is empty; PE 0 shows who did how much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=64, help="how many tasks (default 64)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with shmem.init() as world:
        counter = shmem.zeros(1, dtype=torch.int64)
        answers = shmem.full((max(options.tasks, 1),), -1, dtype=torch.int64)
        done = torch.zeros(1, dtype=torch.int64)
        while (task := shmem.atomic_fetch_inc(counter, 0)) < options.tasks:
            shmem.p(answers, primes_below(bound_of(task)), 0, index=task)
            done += 1
        shares = torch.zeros(world.size, 1, dtype=torch.int64)
        shmem.all_gather(shares, done)
        shmem.barrier()  # all answers are there
        if world.rank == 0:
            wrong = [i for i in range(options.tasks) if answers[i] != primes_below(bound_of(i))]
            print(f"{options.tasks} tasks; done by each PE: {shares.flatten().tolist()}; wrong: {wrong}")
            assert not wrong and shares.sum() == options.tasks


if __name__ == "__main__":
    main()
