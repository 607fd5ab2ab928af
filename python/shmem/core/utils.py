"""Errors, buffers and the Python logger of `shmem.core`."""

from __future__ import annotations

import logging
import os
import sys
from typing import List, Optional

LEVELS = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")


class AclshmemError(Exception):
    """An operation failed."""

    def __init__(self, msg: str) -> None:
        """Keeps the words in msg."""
        super().__init__(msg)
        self.msg = msg


class AclshmemInvalid(Exception):
    """An argument is missing or no good."""

    def __init__(self, msg: str) -> None:
        """Keeps the words in msg."""
        super().__init__(msg)
        self.msg = msg


class Buffer:
    """A piece of symmetric memory: its address here and its length in bytes."""

    __slots__ = ("addr", "length")
    __hash__ = None  # type: ignore[assignment]  # two of the same memory are equal, and both can change

    def __init__(self, addr: int, length: int) -> None:
        """Raises ValueError for a negative address or a length below 1."""
        if addr < 0 or length <= 0:
            raise ValueError(f"addr is {addr} and length {length}; an address is not negative and a length at least 1")
        self.addr = addr
        self.length = length

    def __eq__(self, other: object) -> bool:
        """Whether both are the same memory."""
        return isinstance(other, Buffer) and (self.addr, self.length) == (other.addr, other.length)

    def __repr__(self) -> str:
        """Address and length."""
        return f"Buffer(addr={self.addr:#x}, length={self.length})"


class _Place(logging.Filter):
    """Adds the host and this PE to a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keeps every record."""
        from .. import _ascend

        numbers = _ascend.pe_numbers()
        record.host = os.uname().nodename
        record.pe = -1 if numbers is None else numbers[0]
        return True


def setup_aclshmem_logger(log_level: str = "ERROR", log_file_path: Optional[str] = None) -> logging.Logger:
    """The logger "aclshmem" to standard output, and to a file if asked; ValueError for a level that is none. Does not block."""
    if log_level not in LEVELS:
        raise ValueError(f"log_level is {log_level!r}; it is one of {', '.join(LEVELS)}")
    logger = logging.getLogger("aclshmem")
    logger.setLevel({"WARN": "WARNING", "FATAL": "CRITICAL"}.get(log_level, log_level))
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    handlers: List[logging.Handler] = [logging.StreamHandler(sys.stdout)]
    if log_file_path:
        handlers.append(logging.FileHandler(log_file_path))
    for handler in handlers:
        handler.addFilter(_Place())
        handler.setFormatter(logging.Formatter("%(host)s:%(process)d:%(thread)d [%(pe)d] ACLSHMEM %(levelname)s : %(message)s"))
        logger.addHandler(handler)
    return logger
