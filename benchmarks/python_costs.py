"""Rows about the Python package: importing, coming up, single calls, memory beside the heap."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from rows import Measured, Row  # noqa: E402


def measure(rows: List[Row], rounds: int) -> List[Measured]:
    """Every row that is asked for."""
    return [MEASURES[row.name](rounds) for row in rows]


def seconds(code: str, env: Optional[Dict[str, str]] = None) -> float:
    """Runs a script that prints one number."""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **(env or {})}, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def import_shmem(rounds: int) -> Measured:
    """import shmem in a fresh interpreter."""
    code = "import time; a = time.perf_counter(); import shmem; print(time.perf_counter() - a)"
    return Measured(statistics.median(seconds(code) for _ in range(rounds + 6)) * 1e3)


def import_torch_added(rounds: int) -> Measured:
    """What our entry points add to import torch: the hook's own time in a process that imported torch."""
    code = "import torch, time; a = time.perf_counter(); import shmem._autoload as h; h.autoload(); print(time.perf_counter() - a)"
    return Measured(statistics.median(seconds(code, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}) for _ in range(7)) * 1e3)


def pair(what: str, *arguments: str) -> Any:
    """Runs this file as 2 PEs and gives what PE 0 wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        command = [sys.executable, "-m", "shmem.cli.run", "-n", "2", sys.executable, os.path.abspath(__file__), what, out, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            print(f"benchmarks: {what} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
            return None
        with open(out, encoding="utf-8") as file:
            return json.load(file)


def init(rounds: int) -> Measured:
    """shmem.init on 2 PEs that start together, the slower one, library loaded; OSHMEM's shmem_init beside it."""
    ours, peer = [], []
    program = oshmem_init_program()
    for _ in range(rounds + 2):
        said = pair("init")
        if said is not None:
            ours.append(said)
        if program is not None:
            peer.append(oshmem_init(program))
    if not ours:
        return Measured(None)
    good = [p for p in peer if p is not None]
    middle = statistics.median(good) if good else None
    ratios = {"oshmem": statistics.median(p / o for p, o in zip(good, ours))} if good else {}
    return Measured(statistics.median(ours), None, {"oshmem": middle}, ratios)


_OSHMEM = """
#include <shmem.h>
#include <stdio.h>
#include <time.h>
int main(void) {
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  shmem_init();
  clock_gettime(CLOCK_MONOTONIC, &b);
  if (shmem_my_pe() == 0) printf("%f\\n", (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6);
  shmem_finalize();
  return 0;
}
"""


def oshmem_init_program() -> Optional[str]:
    """A program that times shmem_init; None without OSHMEM."""
    if shutil.which("oshcc") is None:
        return None
    folder = os.path.join(os.path.dirname(HERE), "build", "bench")
    os.makedirs(folder, exist_ok=True)
    source, out = os.path.join(folder, "init.c"), os.path.join(folder, "oshmem_init")
    with open(source, "w", encoding="utf-8") as file:
        file.write(_OSHMEM)
    return out if subprocess.run(["oshcc", "-O2", source, "-o", out], capture_output=True).returncode == 0 else None


def oshmem_init(program: str) -> Optional[float]:
    """Milliseconds of shmem_init on 2 PEs with a 256 MiB heap."""
    env = {**os.environ, "SHMEM_SYMMETRIC_HEAP_SIZE": "256M", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    try:
        done = subprocess.run(["oshrun", "-n", "2", "--oversubscribe", program], env=env, capture_output=True, text=True, timeout=60)
        return float(done.stdout.split()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return None


def put_small(rounds: int) -> Measured:
    """shmem.put of one 8-byte tensor."""
    said = pair("put")
    return Measured(said)


def put_many(rounds: int) -> Measured:
    """A piece of a batch of 1,000, prepared once."""
    return Measured(pair("put_many"))


def staging(rounds: int) -> Measured:
    """Pages of a PE's segment outside its heap after collectives of every size."""
    return Measured(pair("staging"))


def big_heap(rounds: int) -> Measured:
    """Pages of a PE's segment with a heap of 64 GiB of addresses and no block."""
    return Measured(pair("big_heap"))


MEASURES: Dict[str, Callable[[int], Measured]] = {
    "import shmem": import_shmem,
    "import torch, added": import_torch_added,
    "init, 256 MiB heap": init,
    "put from Python": put_small,
    "put_many, a piece": put_many,
    "staging and control": staging,
    "64 GiB heap, unused": big_heap,
}


def resident_mib() -> float:
    """MiB of pages that exist in this PE's own segment, whoever touched them, less those of its heap's blocks."""
    import shmem

    stats = shmem.heap_stats()
    page = os.sysconf("SC_PAGE_SIZE")
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        spans = [tuple(int(x, 16) for x in line.split()[0].split("-")) for line in maps]
    low = next(a for a, b in spans if a <= stats["low"] < b)
    pages = (stats["low"] - low) // page  # header and scratch come before the heap
    vector = (ctypes.c_ubyte * pages)()
    if libc.mincore(ctypes.c_void_p(low), ctypes.c_size_t(pages * page), vector) != 0:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(byte & 1 for byte in vector) * page / (1 << 20)


def batches(call: Callable[[], None], count: int) -> float:
    """Nanoseconds of a call: the median of batches."""
    times = []
    for _ in range(31):
        before = time.perf_counter_ns()
        for _ in range(count):
            call()
        times.append((time.perf_counter_ns() - before) / count)
    return statistics.median(times)


def worker(what: str, out: str) -> None:
    """One PE of a measurement."""
    result = getattr(sys.modules[__name__], "work_" + what)()
    if os.environ["SHMEM_RANK"] == "0":
        with open(out, "w", encoding="utf-8") as file:
            json.dump(result, file)


def work_init() -> float:
    """Two meetings: the first pays for process skew, the second is measured from a barrier on."""
    import shmem
    from shmem import _lib

    _lib.library()
    shmem.init(heap="16M")
    uid = bytearray(shmem.unique_id("127.0.0.1") if shmem.my_pe() == 0 else bytes(128))
    shmem.broadcast(uid)
    me = shmem.my_pe()
    shmem.barrier()
    before = time.perf_counter()
    with shmem.World(me, 2, uid=bytes(uid), heap="256M"):
        took = time.perf_counter() - before
    shmem.finalize()
    return took * 1e3


def work_put() -> float:
    """PE 0 puts one float64 to an idle PE 1, through the public call."""
    import torch

    import shmem

    shmem.init(heap="16M")
    t, src = shmem.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    value = batches(lambda: None, 2000)
    took = 0.0
    if shmem.my_pe() == 0:
        put = shmem.put
        times = []
        for _ in range(31):
            before = time.perf_counter_ns()
            for _ in range(2000):
                put(t, src, 1)
            times.append((time.perf_counter_ns() - before) / 2000)
        took = statistics.median(times)
    shmem.barrier()
    assert t.item() == float(shmem.my_pe() == 1), value
    shmem.finalize()
    return took / 1e3


def work_put_many() -> float:
    """1,000 pieces of 8 bytes from scattered places to scattered places."""
    import torch

    import shmem

    shmem.init(heap="16M")
    t, src = shmem.zeros(1000, 4, dtype=torch.float64), torch.arange(4000, dtype=torch.float64).view(1000, 4)
    pieces = shmem.Pieces.at(t, src, [32 * i for i in range(1000)], [32 * (999 - i) for i in range(1000)], [8] * 1000, [1] * 1000)
    took = batches(pieces.put, 10) / 1000 if shmem.my_pe() == 0 else 0.0
    shmem.barrier()
    if shmem.my_pe() == 1:
        assert torch.equal(t[:, 0], src[:, 0].flip(0))
    shmem.finalize()
    return took


def work_staging() -> float:
    """Collectives of many sizes on ordinary memory, then a look at the pages."""
    import torch

    import shmem

    shmem.init(heap="256M")
    for size in (2, 1000, 100_000, 4_000_000, 16_000_000):
        t = torch.ones(size)
        shmem.all_reduce(t)
        out = torch.zeros(2 * size)
        shmem.all_gather(out, t)
        shmem.all_to_all(torch.zeros(2 * size), out)
        shmem.broadcast(t)
        assert float(t[-1]) == 2.0 and float(out[-1]) == 2.0
    shmem.barrier()
    value = resident_mib()
    shmem.barrier()
    shmem.finalize()
    return value


def work_big_heap() -> float:
    """A heap of addresses only."""
    import shmem

    shmem.init(heap="64G")
    shmem.barrier()
    stats = shmem.heap_stats()
    assert stats["bytes"] >= 64 << 30 and stats["used"] == 0
    value = resident_mib()
    with open("/proc/self/status", encoding="utf-8") as status:
        shared = next(int(line.split()[1]) for line in status if line.startswith("RssShmem"))
    shmem.barrier()
    shmem.finalize()
    return max(value, shared / 1024)


if __name__ == "__main__":
    worker(sys.argv[1], sys.argv[2])
