"""Rows through the C faces: OpenSHMEM's beside Open MPI's OSHMEM, the scan over PE counts, and what a hot call costs on top of gshmem.h."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Dict, Iterator, List, Optional, Tuple

from c_programs import BUILD, HERE, oshmem_environment

from rows import Measured, Row

KINDS = ("ours", "oshmem")
Results = Dict[Tuple[str, int], float]  # nanoseconds by name and size


def build(folder: str, name: str, kind: str) -> Optional[str]:
    """Compiles benchmarks/FOLDER/NAME.c for ours or OSHMEM; None when there is no compiler for it."""
    from shmem.cli import cc

    source, out = os.path.join(HERE, folder, f"{name}.c"), os.path.join(BUILD, f"{name}-{kind}")
    if kind == "oshmem" and shutil.which("oshcc") is None:
        return None
    os.makedirs(BUILD, exist_ok=True)
    arguments = ["-O3", "-Wall", source, "-o", out]
    words = ["oshcc", *arguments] if kind == "oshmem" else cc.command(arguments, cxx=False)
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"benchmarks: {name} does not compile for {kind}:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return out


def launch(kind: str, program: str, pes: int, arguments: List[str], heap: str) -> Iterator[Dict[str, object]]:
    """Runs a program on some PEs and gives the objects of its lines. OSHMEM may die in its own finalize; what it printed before counts."""
    environment = dict(os.environ, SHMEM_SYMMETRIC_SIZE=heap)
    words = [sys.executable, "-m", "shmem.cli.run", "-n", str(pes), program, *arguments]
    if kind == "oshmem":
        environment = oshmem_environment(heap)
        words = ["oshrun", "-n", str(pes), "--oversubscribe", program, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            print(f"benchmarks: {kind} {os.path.basename(program)} with {pes} PEs took more than 300 s", file=sys.stderr)
            return
    lines = [line[line.find("{") : line.rfind("}") + 1] for line in done.stdout.splitlines() if "{" in line and "}" in line]
    if not lines:
        print(f"benchmarks: {kind} {os.path.basename(program)} {arguments} gave no result (status {done.returncode}): {done.stderr[-500:]}", file=sys.stderr)
    yield from map(json.loads, lines)


def measure_sets(rows: List[Row], rounds: int) -> List[Measured]:
    """The rows of one size and PE count run in one launch of each program, the programs in turns."""
    programs = {kind: build("openshmem", "sets", kind) for kind in KINDS}
    measured: Dict[Row, Measured] = {}
    for pes, size in sorted({(row.pes, row.size) for row in rows}):
        these = [row for row in rows if (row.pes, row.size) == (pes, size)]
        arguments = ["--size", str(size)] + [word for row in these for word in ("--row", row.name)]
        heap = f"{64 + (size >> 20) * (pes + 4)}M"
        turns: List[Dict[str, Results]] = []
        for _ in range(_launches(pes, size, rounds)):
            turn: Dict[str, Results] = {}
            for kind in KINDS:
                program = programs[kind]
                if program is not None:
                    turn[kind] = {(str(o["name"]), int(str(o["size"]))): float(str(o["ns"])) for o in launch(kind, program, pes, arguments, heap)}
            turns.append(turn)
        for row in these:
            measured[row] = summary(row, turns)
    return [measured[row] for row in rows]


def _launches(pes: int, size: int, rounds: int) -> int:
    """Where PEs share cores, a launch is as fast as the scheduler spread it: the median of few says little."""
    crowded = size <= 8 and pes > len(os.sched_getaffinity(0))
    return min(rounds, 3) * 3 if crowded else min(rounds, 3)


def summary(row: Row, turns: List[Dict[str, Results]]) -> Measured:
    """Medians, and the median of the turns' ratios."""
    key = (row.name, row.size)
    times = {kind: [turn[kind][key] for turn in turns if key in turn.get(kind, {})] for kind in KINDS}
    ratios = [turn["oshmem"][key] / turn["ours"][key] for turn in turns if all(key in turn.get(kind, {}) for kind in KINDS)]
    middle = {kind: statistics.median(found) if found else None for kind, found in times.items()}
    return Measured(middle["ours"], None, {"oshmem": middle["oshmem"]}, {"oshmem": statistics.median(ratios)} if ratios else {})


def measure_scan(rows: List[Row], rounds: int) -> List[Measured]:
    """As the sets; a row is also compared with its neighbours in the number of PEs: their time per PE over its own."""
    plain = dict(zip(rows, measure_sets(rows, rounds)))
    cores = len(os.sched_getaffinity(0))
    result = []
    for row, m in plain.items():
        beside = [(other.pes, found.ours) for other, found in plain.items() if (other.name, other.size) == (row.name, row.size)]
        near = [ns / pes for pes, ns in beside if ns and 0 < abs(pes - row.pes) <= 2 and pes > 1 and (pes > cores) == (row.pes > cores)]
        ratios = dict(m.ratios)
        if near and m.ours:
            ratios["beside"] = statistics.median(near) / (m.ours / row.pes)
        result.append(m._replace(ratios=ratios))
    return result


def measure_faces(rows: List[Row], rounds: int) -> List[Measured]:
    """Hot calls through each face; the floor is the same call of gshmem.h in the same process."""
    program = build("faces", "faces", "ours")
    times: Dict[Tuple[str, str], List[float]] = {}
    for _ in range(rounds if program else 0):
        for o in launch("ours", str(program), 2, [], "64M"):
            times.setdefault((str(o["name"]), str(o["face"])), []).append(float(str(o["ns"])))
    result = []
    for row in rows:
        name, _, face = row.name.partition(" ")
        ours, floor = (statistics.median(times[key]) if key in times else None for key in ((name, face), (name, "native")))
        result.append(Measured(ours, floor, {}, {"floor": floor / ours} if ours and floor else {}))
    return result
