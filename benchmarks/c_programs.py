"""Rows from C: builds the floor, ours and OSHMEM's program, and runs them in turns."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Dict, List, Optional, Tuple

from rows import Measured, Row

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(HERE), "build", "bench")
FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-std=gnu11", "-Wall"]


def compile_program(name: str, compiler: List[str], extra: List[str]) -> Optional[str]:
    """Builds benchmarks/NAME/NAME.c; None when its source or compiler is not there."""
    source = os.path.join(HERE, name, f"{name}.c")
    if not os.path.exists(source) or shutil.which(compiler[0]) is None:
        return None
    os.makedirs(BUILD, exist_ok=True)
    out = os.path.join(BUILD, name)
    done = subprocess.run([*compiler, *FLAGS, source, "-o", out, *extra], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"benchmarks: {name} does not compile:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return out


def programs() -> Dict[str, Optional[str]]:
    """The three programs."""
    from shmem import _lib

    cc = os.environ.get("CC", "cc").split()
    folder = os.path.dirname(_lib.library_path())
    ours = [f"-I{_lib.include_directory()}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lshmem"]
    return {"floor": compile_program("floor", cc, []), "ours": compile_program("native", cc, ours), "oshmem": compile_program("oshmem", ["oshcc"], [])}


def oshmem_environment(heap: str) -> Dict[str, str]:
    """What Open MPI's programs need: room, leave to run as root and with more PEs than cores, and no variables of ours."""
    env = dict(os.environ)
    env.update({"SHMEM_SYMMETRIC_HEAP_SIZE": heap, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    env.update({"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"})
    env.pop("SHMEM_SYMMETRIC_SIZE", None)
    return env


def command(kind: str, program: str, row: Row) -> Tuple[List[str], Dict[str, str]]:
    """How to run one program for one row."""
    arguments = ["--pes", str(row.pes), "--row", row.name, "--size", str(row.size)]
    if kind == "oshmem":
        return ["oshrun", "-n", str(row.pes), "--oversubscribe", program, *arguments], oshmem_environment("512M")
    return [program, *arguments], dict(os.environ)


def run_once(kind: str, program: str, row: Row) -> Optional[float]:
    """Nanoseconds of one run; None when it failed, with its words."""
    words, env = command(kind, program, row)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            print(f"benchmarks: {kind} {row.key} took more than 120 s", file=sys.stderr)
            return None
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            if (said["name"], said["size"], said["pes"]) == (row.name, row.size, row.pes):
                return float(said["ns"])
    print(f"benchmarks: {kind} {row.key} gave no result (status {done.returncode}): {done.stderr[-500:]}", file=sys.stderr)
    return None


def measure(rows: List[Row], rounds: int) -> List[Measured]:
    """Every row, the programs in turns."""
    built = programs()
    return [measure_row(row, built, rounds) for row in rows]


def measure_row(row: Row, built: Dict[str, Optional[str]], rounds: int) -> Measured:
    """One row: medians, and medians of the rounds' ratios."""
    times: Dict[str, List[float]] = {"floor": [], "ours": [], "oshmem": []}
    ratios: Dict[str, List[float]] = {"floor": [], "oshmem": []}
    alive = {kind: program for kind, program in built.items() if program is not None}
    for turn in range(rounds):
        this: Dict[str, float] = {}
        for kind in list(alive):
            if kind == "oshmem" and turn >= 3:
                continue  # slow to start, and its ratio is never close
            value = run_once(kind, alive[kind], row)
            if value is None:
                del alive[kind]
            else:
                this[kind] = value
                times[kind].append(value)
        for kind, found in ratios.items():
            if kind in this and "ours" in this:
                found.append(this[kind] / this["ours"])
    middle = {kind: statistics.median(v) if v else None for kind, v in times.items()}
    return Measured(middle["ours"], middle["floor"], {"oshmem": middle["oshmem"]}, {k: statistics.median(v) for k, v in ratios.items() if v})
