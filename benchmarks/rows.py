"""Which rows the benchmark has, and their bars. A bar says when a row is good enough, given ours, the floor and the peers."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

KIB, MIB = 1 << 10, 1 << 20


class Measured(NamedTuple):
    """What a row came to: medians in the row's unit; ratios are medians over interleaved rounds (other / ours)."""

    ours: Optional[float]
    floor: Optional[float] = None
    peers: Dict[str, Optional[float]] = {}
    ratios: Dict[str, float] = {}


class Bar(NamedTuple):
    """One condition.

    kind: faster (than a peer, by a factor), as_fast (at least that share of a peer's rate), floor (at most a factor over it),
    above_floor, at_most, share (of the floor's rate).
    """

    kind: str
    value: float
    peer: str = ""

    def text(self, unit: str) -> str:
        """The bar in words."""
        if self.kind == "faster":
            return f">= {self.value:g}x {self.peer}" if self.value > 1 else f"faster than {self.peer}"
        return {
            "as_fast": f">= {self.value:g}x {self.peer}",
            "floor": f"<= {self.value:g}x floor",
            "above_floor": f"<= floor + {self.value:g} {unit}",
            "at_most": f"<= {self.value:g} {unit}",
            "share": f">= {self.value:g}x {self.peer or 'floor'} rate",
        }[self.kind]

    def holds(self, m: Measured) -> Optional[bool]:
        """Whether it holds; None when what it compares with is absent."""
        if m.ours is None:
            return False
        if self.kind == "at_most":
            return m.ours <= self.value
        if self.kind == "above_floor":
            return None if m.floor is None else m.ours - m.floor <= self.value
        ratio = m.ratios.get(self.peer if self.kind in ("faster", "as_fast") else "floor")
        if ratio is None:
            return None
        if self.kind == "faster":
            return ratio >= self.value if self.value > 1 else ratio > 1
        return ratio >= self.value if self.kind in ("share", "as_fast") else ratio >= 1 / self.value


GROUPS = ("c", "faces", "openshmem", "scan", "torch", "python")


class Row(NamedTuple):
    """One line of a table. Every bar of `bars` must hold; in `either`, one is enough."""

    group: str
    name: str
    size: int
    pes: int
    unit: str
    bars: Tuple[Bar, ...] = ()
    either: Tuple[Bar, ...] = ()

    @property
    def key(self) -> str:
        """Its name in a filter: group/name/size/pes."""
        return f"{self.group}/{self.name}/{self.size}/{self.pes}"

    def taken_by(self, words: str) -> bool:
        """Whether a filter takes it: a part of its key, from its start when the filter begins with a group."""
        if words.split("/")[0] in GROUPS and "/" in words:
            return self.key.startswith(words)
        return words in self.key

    def bar_text(self) -> str:
        """All its bars in words."""
        parts = [b.text(self.unit) for b in self.bars]
        if self.either:
            parts.append(" or ".join(b.text(self.unit) for b in self.either))
        return "; ".join(parts)

    def ok(self, m: Measured) -> Optional[bool]:
        """Whether it is good enough; None when nothing could be compared."""
        held = [h for h in (b.holds(m) for b in self.bars) if h is not None]
        some = [h for h in (b.holds(m) for b in self.either) if h is not None]
        if some:
            held.append(any(some))
        return all(held) if held else None


def faster(peer: str, factor: float = 1) -> Bar:
    """At least `factor` times as fast as a peer."""
    return Bar("faster", factor, peer)


def c_rows() -> List[Row]:
    """From C, beside the floor and OSHMEM."""
    oshmem = faster("oshmem")
    rows = [
        Row("c", "put", 8, 2, "ns", (Bar("above_floor", 10), oshmem)),
        Row("c", "get", 8, 2, "ns", (oshmem,)),
        Row("c", "fetch_add", 8, 2, "ns", (oshmem,)),
        Row("c", "put", MIB, 2, "ns", (Bar("share", 0.95),)),
        Row("c", "put", 8 * MIB, 2, "ns", (Bar("share", 0.95),)),
        Row("c", "p_wait", 8, 2, "ns", (Bar("floor", 1.25),)),
    ]
    rows += [Row("c", "barrier", 0, pes, "ns", (Bar("floor", limit), oshmem)) for pes, limit in ((2, 1.5), (4, 1.5), (8, 2))]
    for pes in (2, 4):
        for size, limit in ((8, 3), (64 * KIB, 1.6), (4 * MIB, 1.4), (64 * MIB, 1.4)):
            rows.append(Row("c", "all_reduce", size, pes, "ns", (Bar("floor", limit), oshmem)))
    return rows


def face_rows() -> List[Row]:
    """Hot calls through the faces, on top of gshmem.h."""
    rows = [Row("faces", f"{name} {face}", 8, 2, "ns", (Bar("above_floor", 3),)) for face in ("openshmem", "ascend") for name in ("put", "get", "p", "g")]
    rows += [Row("faces", f"{name}", 8, 2, "ns", (Bar("above_floor", 3),)) for name in ("fetch_add openshmem", "p openshmem static")]
    return rows


# What only moves memory is as fast as the machine on both sides: 5 % is what two runs differ by.
AS_FAST = Bar("as_fast", 0.95, "oshmem")


def openshmem_rows() -> List[Row]:
    """Every operation of OpenSHMEM at four sizes, beside Open MPI's."""
    rows = []
    for pes in (2, 4):
        rows += [Row("openshmem", name, 8, pes, "ns", (AS_FAST,)) for name in ("barrier_all", "sync_all", "fetch_add")]
        names = ("broadcast", "collect", "fcollect", "alltoall", "alltoalls", "sum", "max", "put", "get")
        rows += [Row("openshmem", name, size, pes, "ns", (AS_FAST,)) for size in (8, 64 * KIB, 4 * MIB, 64 * MIB) for name in names]
    rows.append(Row("openshmem", "malloc_free", MIB, 2, "ns", (Bar("at_most", 2000),)))
    return rows


def scan_rows() -> List[Row]:
    """From 1 to 16 PEs: no number of them is much worse for each than its neighbours are, nor than Open MPI's."""
    rows = []
    for pes in range(1, 17):
        bars = (AS_FAST, Bar("as_fast", 0.4, "beside")) if pes > 1 else (Bar("at_most", 50000),)
        rows += [Row("scan", name, 8, pes, "ns", bars) for name in ("barrier_all", "sum", "broadcast", "fcollect", "alltoall")]
        rows.append(Row("scan", "sum", 64 * KIB, pes, "ns", bars))
    return rows


def torch_rows() -> List[Row]:
    """Through torch.distributed, beside gloo in the same processes."""
    rows = [
        Row("torch", "all_reduce", 8, 2, "us", (), (faster("gloo", 20), Bar("at_most", 8))),
        Row("torch", "all_reduce", 64 * KIB, 2, "us", (), (faster("gloo", 25), Bar("at_most", 25))),
        Row("torch", "all_reduce", 4 * MIB, 2, "us", (faster("gloo", 5),)),
        Row("torch", "all_reduce", 64 * MIB, 2, "us", (faster("gloo", 3),)),
        Row("torch", "all_reduce symmetric", 4 * MIB, 2, "us", (faster("gloo", 10),)),
        Row("torch", "all_reduce symmetric", 64 * MIB, 2, "us", (faster("gloo", 4),)),
    ]
    for name in ("all_gather", "reduce_scatter", "all_to_all"):
        rows += [Row("torch", name, size, 2, "us", (faster("gloo", 4),)) for size in (64 * KIB, 4 * MIB, 64 * MIB)]
    rows += [Row("torch", "broadcast", size, 2, "us", (faster("gloo", 2),)) for size in (64 * KIB, 4 * MIB, 64 * MIB)]
    rows.append(Row("torch", "barrier", 0, 2, "us", (faster("gloo", 20),)))
    rows.append(Row("torch", "send_recv", 8, 2, "us", (faster("gloo", 3),)))
    rows.append(Row("torch", "all_reduce", 4 * MIB, 4, "us", (faster("gloo", 5),)))
    return rows


def python_rows() -> List[Row]:
    """Costs of the Python package and of coming up."""
    return [
        Row("python", "import shmem", 0, 1, "ms", (Bar("at_most", 15),)),
        Row("python", "import torch, added", 0, 1, "ms", (Bar("at_most", 2),)),
        Row("python", "init, 256 MiB heap", 0, 2, "ms", (Bar("at_most", 30), faster("oshmem"))),
        Row("python", "put from Python", 8, 2, "us", (Bar("at_most", 1.2),)),
        Row("python", "put_many, a piece", 8, 2, "ns", (Bar("at_most", 60),)),
        Row("python", "staging and control", 0, 2, "MiB", (Bar("at_most", 8),)),
        Row("python", "64 GiB heap, unused", 0, 2, "MiB", (Bar("at_most", 8),)),
    ]


def all_rows() -> List[Row]:
    """Every row, in the order of the tables."""
    return c_rows() + face_rows() + openshmem_rows() + scan_rows() + torch_rows() + python_rows()
