"""Rows through torch.distributed: processes that hold a shmem and a gloo group and take turns between them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from rows import Measured, Row  # noqa: E402


def measure(rows: List[Row], rounds: int) -> List[Measured]:
    """Runs one set of processes per PE count; a row that could not be measured is empty."""
    found: Dict[str, Measured] = {}
    for pes in sorted({row.pes for row in rows}):
        keys = [row.key for row in rows if row.pes == pes]
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            command = [sys.executable, "-m", "shmem.cli.run", "-n", str(pes), sys.executable, os.path.abspath(__file__), out, str(rounds), *keys]
            done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
            if os.path.exists(out):
                with open(out, encoding="utf-8") as file:
                    found.update({key: Measured(**value) for key, value in json.load(file).items()})
            if done.returncode != 0:
                print(f"benchmarks: torch with {pes} PEs ended with {done.returncode}:\n{done.stderr[-3000:]}", file=sys.stderr)
    return [found.get(row.key, Measured(None)) for row in rows]


class Case:
    """One operation with its tensors: `call(group)` runs it, `check(group)` raises when the data are wrong."""

    def __init__(self, name: str, size: int, rank: int, n: int) -> None:
        """Makes the tensors."""
        import torch

        self.rank, self.n = rank, n
        self.operation = getattr(self, name.split()[0])
        count = max(1, size // 4)
        count -= count % n if count >= n else 0
        own = torch.arange(count, dtype=torch.float32) % 1021 * 8 + rank + 1
        self.tensor = own
        if name.endswith("symmetric"):
            import shmem

            self.tensor = shmem.symmetric_copy(own)
        self.fresh = own.clone()
        self.part = torch.zeros(max(1, count // n))
        self.out = torch.zeros(count)

    def expect(self, rank: int) -> Any:
        """What rank holds at first."""
        return self.fresh - (self.rank + 1) + (rank + 1)

    def all_reduce(self, dist: Any, group: Any, check: bool) -> None:
        """In place: the real sum when checked, sums of zeros while timing, so that values stay finite."""
        if not check:
            dist.all_reduce(self.tensor, group=group)
            return
        self.tensor.copy_(self.fresh)
        dist.all_reduce(self.tensor, group=group)
        assert bool((self.tensor == sum(self.expect(r) for r in range(self.n))).all())
        self.tensor.zero_()  # sums of zeros stay zeros

    def all_gather(self, dist: Any, group: Any, check: bool) -> None:
        """size is that of the output."""
        part = self.fresh[: self.part.numel()]
        dist.all_gather_into_tensor(self.out, part, group=group)
        if check:
            for r in range(self.n):
                assert bool((self.out[r * part.numel() : (r + 1) * part.numel()] == self.expect(r)[: part.numel()]).all())
            self.out.zero_()

    def reduce_scatter(self, dist: Any, group: Any, check: bool) -> None:
        """size is that of the input."""
        dist.reduce_scatter_tensor(self.part, self.fresh, group=group)
        if check:
            k = self.part.numel()
            want = sum(self.expect(r) for r in range(self.n))[self.rank * k : (self.rank + 1) * k]
            assert bool((self.part == want).all())
            self.part.zero_()

    def all_to_all(self, dist: Any, group: Any, check: bool) -> None:
        """size is that of the input and the output."""
        dist.all_to_all_single(self.out, self.fresh, group=group)
        if check:
            k = self.part.numel()
            for r in range(self.n):
                assert bool((self.out[r * k : (r + 1) * k] == self.expect(r)[self.rank * k : (self.rank + 1) * k]).all())
            self.out.zero_()

    def broadcast(self, dist: Any, group: Any, check: bool) -> None:
        """From rank 0."""
        if check:
            self.tensor.copy_(self.fresh)
        dist.broadcast(self.tensor, 0, group=group)
        if check:
            assert bool((self.tensor == self.expect(0)).all())

    def barrier(self, dist: Any, group: Any, check: bool) -> None:
        """No data."""
        dist.barrier(group=group)

    def send_recv(self, dist: Any, group: Any, check: bool) -> None:
        """A round trip."""
        other = 1 - self.rank
        if self.rank == 0:
            dist.send(self.fresh, other, group=group)
            dist.recv(self.out, other, group=group)
        else:
            dist.recv(self.out, other, group=group)
            dist.send(self.fresh, other, group=group)
        if check:
            assert bool((self.out == self.expect(other)).all())


def worker(out: str, rounds: int, keys: List[str]) -> None:
    """One process: every row, both groups in turns."""
    import torch
    import torch.distributed as dist

    import shmem

    torch.set_num_threads(1)
    register()
    shmem.init(heap="512M")
    dist.init_process_group("gloo")
    groups = {"ours": dist.new_group(backend="shmem"), "gloo": dist.new_group(backend="gloo")}
    rank, n = dist.get_rank(), dist.get_world_size()
    results: Dict[str, Dict[str, Any]] = {}
    for key in keys:
        _, name, size, _ = key.split("/")
        case = Case(name, int(size), rank, n)
        results[key] = one_row(dist, case, groups, int(size), rounds)
        if rank == 0:
            with open(out, "w", encoding="utf-8") as file:
                json.dump(results, file)
        del case
        shmem.collect()
    dist.destroy_process_group()
    shmem.finalize()


def register() -> None:
    """From the source tree the backend has to be registered; installed, torch finds it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        version("goshmem")
    except PackageNotFoundError:
        from shmem import _autoload

        _autoload.register()


def one_row(dist: Any, case: Case, groups: Dict[str, Any], size: int, rounds: int) -> Dict[str, Any]:
    """Medians of one row in microseconds, and the median ratio."""
    for group in groups.values():
        case.operation(dist, group, True)
    times: Dict[str, List[float]] = {"ours": [], "gloo": []}
    for _ in range(max(5, 2 * rounds + 1)):
        for kind, group in groups.items():
            times[kind].append(batch(dist, case, group, repeats(kind, size)))
    for group in groups.values():
        case.operation(dist, group, True)
    ratio = statistics.median(g / o for g, o in zip(times["gloo"], times["ours"]))
    return {"ours": statistics.median(times["ours"]), "peers": {"gloo": statistics.median(times["gloo"])}, "ratios": {"gloo": ratio}}


def repeats(kind: str, size: int) -> int:
    """How many calls a batch has: some milliseconds' worth."""
    if size <= 64 << 10:
        return 200 if kind == "ours" else 20
    return 10 if size <= 4 << 20 else 2


def batch(dist: Any, case: Case, group: Any, count: int) -> float:
    """Microseconds of one call."""
    call: Callable[..., None] = case.operation
    call(dist, group, False)
    before = time.perf_counter()
    for _ in range(count):
        call(dist, group, False)
    return (time.perf_counter() - before) / count * 1e6


if __name__ == "__main__":
    worker(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
