"""What can go wrong, as exceptions.

The tree, by how much is lost:

    ShmemError (RuntimeError)
    |-- CallError                this call was refused or gave up; nothing else is affected
    |   |-- InvalidArgumentError (ValueError)
    |   |-- InvalidPEError       (ValueError)
    |   |-- NotSymmetricError    (TypeError)    the address is not in symmetric memory, or the range leaves it
    |   |-- AlignmentError       (ValueError)
    |   |-- UnsupportedError     (NotImplementedError)
    |   |-- TimeoutError         (builtins.TimeoutError)
    |   |-- CanceledError
    |   `-- TruncatedError
    |-- ObjectError              a team, block or handle is not usable any more
    |   |-- StaleHandleError
    |   |-- PoisonedError        an earlier failure ended this team; make a new one
    |   |-- MismatchError        the PEs of a collective disagree
    |   |-- HeapExhaustedError   (MemoryError)
    |   `-- AsymmetricAllocationError
    |-- PeerError                a peer is lost or refused us
    |   |-- PeerDeadError
    |   |-- PeerUnreachableError (ConnectionError)
    |   |-- PeerLeftError
    |   |-- AbortedError
    |   |-- AuthenticationError  (PermissionError)
    |   `-- VersionError
    |-- ProcessError             this process cannot
    |   |-- NotInitializedError
    |   |-- FinalizedError
    |   |-- ForkedError
    |   |-- SystemError          (OSError)
    |   |-- OutOfMemoryError     (MemoryError)
    |   |-- RendezvousError      (ConnectionError)
    |   |-- ConfigError          (ValueError)
    |   `-- LibraryError         (ImportError)  libshmem.so is missing, of another version, or cannot run here
    `-- InternalError            a bug of ours: please report it

Each carries `status` (its code in gshmem.h), `operation` and `pe` (None where no one in particular is concerned).
"""

from __future__ import annotations

import builtins
import re
from typing import Any, Dict, Optional, Tuple, Type

from . import _abi


class ShmemError(RuntimeError):
    """Base of every error of this package."""

    status: int = _abi.STATUS["EINTERNAL"]
    operation: Optional[str]
    pe: Optional[int]

    def __init__(self, text: str = "", *, operation: Optional[str] = None, pe: Optional[int] = None) -> None:
        super().__init__(text)
        self.operation = operation
        self.pe = pe

    def __reduce__(self) -> Tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.operation, self.pe)

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def _rebuild(kind: Type[ShmemError], text: str, operation: Optional[str], pe: Optional[int]) -> ShmemError:
    return kind(text, operation=operation, pe=pe)


class CallError(ShmemError):
    """This call was refused or gave up; nothing else is affected."""


class InvalidArgumentError(CallError, ValueError):
    """An argument has a value that the operation cannot take."""

    status = _abi.STATUS["EINVAL"]


class InvalidPEError(CallError, ValueError):
    """A PE number lies outside its world or team."""

    status = _abi.STATUS["EPE"]


class NotSymmetricError(CallError, TypeError):
    """The address is not in symmetric memory, or the range leaves it."""

    status = _abi.STATUS["ENOTSYM"]


class AlignmentError(CallError, ValueError):
    """A word is not aligned to its width."""

    status = _abi.STATUS["EALIGN"]


class UnsupportedError(CallError, NotImplementedError):
    """This cannot be done here; the text names the alternative."""

    status = _abi.STATUS["EUNSUPPORTED"]


class TimeoutError(CallError, builtins.TimeoutError):  # noqa: A001 - the name users expect
    """An operation did not finish within its deadline."""

    status = _abi.STATUS["ETIMEOUT"]


class CanceledError(CallError):
    """The operation was given up by this process."""

    status = _abi.STATUS["ECANCELED"]


class TruncatedError(CallError):
    """A message was longer than the buffer of its receive."""

    status = _abi.STATUS["ETRUNCATED"]


class ObjectError(ShmemError):
    """A team, block or handle is not usable any more."""


class StaleHandleError(ObjectError):
    """The handle names something that was destroyed."""

    status = _abi.STATUS["ESTALE"]


class PoisonedError(ObjectError):
    """An earlier failure ended this team; make a new one."""

    status = _abi.STATUS["EPOISONED"]


class MismatchError(ObjectError):
    """The PEs of a collective disagree about what it is."""

    status = _abi.STATUS["EMISMATCH"]


class HeapExhaustedError(ObjectError, MemoryError):
    """The symmetric heap has no hole of this size on some PE."""

    status = _abi.STATUS["EHEAPFULL"]


class AsymmetricAllocationError(ObjectError):
    """The PEs of an allocation asked for different sizes or alignments."""

    status = _abi.STATUS["EASYMMETRIC"]


class PeerError(ShmemError):
    """A peer is lost or refused us."""


class PeerDeadError(PeerError):
    """A peer's process died."""

    status = _abi.STATUS["EPEERDEAD"]


class PeerUnreachableError(PeerError, ConnectionError):
    """A peer cannot be reached over any transport."""

    status = _abi.STATUS["EUNREACHABLE"]


class PeerLeftError(PeerError):
    """A peer has left the world."""

    status = _abi.STATUS["EPEERLEFT"]


class AbortedError(PeerError):
    """A PE called abort."""

    status = _abi.STATUS["EABORTED"]


class AuthenticationError(PeerError, PermissionError):
    """A peer could not prove that it belongs to this job."""

    status = _abi.STATUS["EAUTH"]


class VersionError(PeerError):
    """A peer runs another version of the library."""

    status = _abi.STATUS["EVERSION"]


class ProcessError(ShmemError):
    """This process cannot do this, now or at all."""


class NotInitializedError(ProcessError):
    """Something needs a world and there is none."""

    status = _abi.STATUS["ENOTINIT"]


class FinalizedError(ProcessError):
    """The world of this object was finalized."""

    status = _abi.STATUS["EFINALIZED"]


class ForkedError(ProcessError):
    """The call was made in a forked child of the process that initialized."""

    status = _abi.STATUS["EFORKED"]


class SystemError(ProcessError, OSError):  # noqa: A001 - the vocabulary's word
    """A system call failed."""

    status = _abi.STATUS["ESYSTEM"]


class OutOfMemoryError(ProcessError, MemoryError):
    """The machine or a limit above this process has no memory left for a block."""

    status = _abi.STATUS["ENOMEM"]


class RendezvousError(ProcessError, ConnectionError):
    """The PEs of a new world did not find each other."""

    status = _abi.STATUS["ERENDEZVOUS"]


class ConfigError(ProcessError, ValueError):
    """A setting has a value that cannot be."""

    status = _abi.STATUS["ECONFIG"]


class LibraryError(ProcessError, ImportError):
    """libshmem.so is missing, of another version, or cannot run in this process."""

    status = _abi.STATUS["ESYSTEM"]


class InternalError(ShmemError):
    """A bug of ours: please report it with its text."""

    status = _abi.STATUS["EINTERNAL"]


def _leaves(root: Type[ShmemError]) -> Dict[int, Type[ShmemError]]:
    found = {root.status: root} if "status" in root.__dict__ else {}
    for child in root.__subclasses__():
        for status, kind in _leaves(child).items():
            if kind is not LibraryError:
                found[status] = kind
    return found


BY_STATUS: Dict[int, Type[ShmemError]] = {**_leaves(ShmemError), InternalError.status: InternalError}

_OPERATION = re.compile(r"^([a-z][\w ]*?): ")
_PE = re.compile(r"\(PE (\d+)\)")


def from_status(status: int, text: str, operation: Optional[str] = None) -> ShmemError:
    """Gives the exception of a status; the core words the text, so operation and PE are read out of it."""
    kind = BY_STATUS.get(status, InternalError)
    said = _OPERATION.match(text)
    at = _PE.search(text)
    name = said.group(1) if said else operation
    return kind(text or f"status {status}", operation=name, pe=int(at.group(1)) if at else None)
