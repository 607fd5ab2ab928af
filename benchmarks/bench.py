"""Measures ours, the floor, OSHMEM and gloo in one run, interleaved, and prints tables with bars.

    ./build.sh bench [--json FILE] [--rounds N] [FILTER]

FILTER is a part of group/name/size/pes, e.g. `c/barrier`, `torch/all_reduce`, `/8/`; groups are c, faces, openshmem, torch, python and, only
when it is asked for, scan (1 to 16 PEs). Every program checks the data that it
moves. Numbers are medians; ratios are medians over rounds in which the programs took turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict, List, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import c_programs  # noqa: E402
import face_programs  # noqa: E402
import python_costs  # noqa: E402
import torch_pair  # noqa: E402

from rows import GROUPS, Measured, Row, all_rows  # noqa: E402

MEASURES = {
    "c": c_programs.measure,
    "faces": face_programs.measure_faces,
    "openshmem": face_programs.measure_sets,
    "scan": face_programs.measure_scan,
    "torch": torch_pair.measure,
    "python": python_costs.measure,
}
TITLES = {
    "c": "From C, one host",
    "faces": "Hot calls through the C faces",
    "openshmem": "OpenSHMEM, one host",
    "scan": "Number of PEs",
    "torch": "Through torch.distributed",
    "python": "Python package and start",
}


def number(value: Optional[float], unit: str) -> str:
    """A value with a sensible number of digits, '-' when absent."""
    if value is None:
        return "-"
    if unit == "ns" and value >= 1e5:
        return f"{value / 1e3:,.0f} us"
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"


def size_text(size: int) -> str:
    """8 B, 64 KiB, 4 MiB."""
    if size == 0:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def as_json(row: Row, m: Measured) -> Dict[str, Any]:
    """The object of one row."""
    return {
        "name": f"{row.group} {row.name}",
        "size": row.size,
        "pes": row.pes,
        "unit": row.unit,
        "ours": m.ours,
        "floor": m.floor,
        "peers": m.peers,
        "ratios": {k: round(v, 3) for k, v in m.ratios.items()},
        "bar": row.bar_text(),
        "ok": row.ok(m),
    }


def print_table(group: str, lines: List[Any]) -> None:
    """One table of a group."""
    from rich.console import Console
    from rich.table import Table

    peers = sorted({p for _, m in lines for p in m.peers})
    table = Table(title=TITLES[group], title_justify="left")
    for column in ("what", "size", "PEs", "ours", "floor", *peers, "ratio", "bar", ""):
        table.add_column(column, justify="left" if column in ("what", "bar", "") else "right")
    for row, m in lines:
        ratios = ", ".join(f"{v:.2f}x {k}" for k, v in m.ratios.items())
        mark = {True: "[green]ok[/]", False: "[red]MISS[/]", None: "[yellow]?[/]"}[row.ok(m)]
        others = [number(m.peers[p], row.unit) if p in m.peers and m.peers[p] is not None else "absent" if p in m.peers else "" for p in peers]
        floor = number(m.floor, row.unit) if m.floor is not None else ""
        table.add_row(row.name, size_text(row.size), str(row.pes), number(m.ours, row.unit), floor, *others, ratios, row.bar_text(), mark)
    Console(width=max(140, Console().width)).print(table)


def main() -> int:
    """Runs the rows that the filter takes; gives 1 when one misses its bar."""
    parser = argparse.ArgumentParser(description="Measures ours, the floor and the peers in one run.")
    parser.add_argument("--json", metavar="FILE", help="also write one object per row")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each program (default 5)")
    parser.add_argument("filter", nargs="?", default="", help="a part of group/name/size/pes")
    options = parser.parse_args()
    wanted = [row for row in all_rows() if row.taken_by(options.filter) and (options.filter or row.group != "scan")]
    if not wanted:
        parser.error(f"no row has {options.filter!r} in its name; for example: {', '.join(r.key for r in all_rows()[:4])}")
    results: List[Any] = []
    for group in GROUPS:
        rows = [row for row in wanted if row.group == group]
        if rows:
            print(f"==> {TITLES[group]}: {len(rows)} rows, {options.rounds} rounds", file=sys.stderr, flush=True)
            lines = list(zip(rows, MEASURES[group](rows, options.rounds)))
            print_table(group, lines)
            results += lines
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(as_json(row, m)) for row, m in results) + "\n]\n")
    missed = [row.key for row, m in results if row.ok(m) is False]
    print(f"{len(results) - len(missed)} rows good, {len(missed)} missed" + (f": {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
