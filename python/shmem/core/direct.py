"""Numbers and enumerations."""

from __future__ import annotations

from .. import _pyshmem
from .._pyshmem import CmpOp as ComparisonType
from .._pyshmem import InitStatus, SignalOp

__all__ = ["ComparisonType", "InitStatus", "SignalOp", "init_status", "my_pe", "n_pes", "team_my_pe", "team_n_pes"]


def my_pe() -> int:
    """This PE's number. Does not block."""
    return _pyshmem.my_pe()


def n_pes() -> int:
    """How many PEs there are. Does not block."""
    return _pyshmem.pe_count()


def team_my_pe(team: int) -> int:
    """This PE's number in a team, -1 without. Does not block."""
    return _pyshmem.team_my_pe(team)


def team_n_pes(team: int) -> int:
    """How many members a team has, -1 without. Does not block."""
    return _pyshmem.team_n_pes(team)


def init_status() -> InitStatus:
    """How far the current instance is. Does not block."""
    return _pyshmem.aclshmemx_init_status()
