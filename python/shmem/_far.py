"""One-sided calls that may have to wait for another process, as requests: Ctrl-C and signal handlers get in.

A world whose peers are all mapped calls the library's functions as they are, because those never wait. Any other world calls
these, which have the same arguments and run in slices (see _call). Given up, an operation touches no memory of this process any more.
"""

from __future__ import annotations

import ctypes
from typing import Any

from . import _abi, _call
from ._lib import OneSided, library

_SIZE = ctypes.sizeof(OneSided)


def _run(name: str, handle: Any, timeout: int = _abi.DEFAULT_TIMEOUT, words: int = 0, **fields: Any) -> int:
    asked = OneSided(size=_SIZE, what=_abi.DO[f"DO_{name.upper()}"], **fields)
    got = _call.start(library().one_sided_start, (handle, ctypes.byref(asked), timeout), words, name)
    return got[0] if words else 0


class Far:
    """The one-sided functions of gshmem.h with their arguments, each of which raises by itself and gives 0."""

    def put(self, handle: Any, dst: Any, src: Any, nbytes: int, pe: int) -> int:
        """gshmem_put. Blocks until src may be reused."""
        return _run("put", handle, dst=dst, src=src, bytes=nbytes, pe=pe)

    def get(self, handle: Any, dst: Any, src: Any, nbytes: int, pe: int) -> int:
        """gshmem_get. Blocks until the data are here."""
        return _run("get", handle, dst=dst, src=src, bytes=nbytes, pe=pe)

    def put_nbi(self, handle: Any, dst: Any, src: Any, nbytes: int, pe: int) -> int:
        """gshmem_put_nbi. Blocks for flow control only."""
        return _run("put", handle, dst=dst, src=src, bytes=nbytes, pe=pe, nbi=1)

    def get_nbi(self, handle: Any, dst: Any, src: Any, nbytes: int, pe: int) -> int:
        """gshmem_get_nbi. May block as get does."""
        return _run("get", handle, dst=dst, src=src, bytes=nbytes, pe=pe, nbi=1)

    def iput(self, handle: Any, dst: Any, src: Any, dst_stride: int, src_stride: int, elem: int, count: int, pe: int) -> int:
        """gshmem_iput."""
        return _run("iput", handle, dst=dst, src=src, dst_stride=dst_stride, src_stride=src_stride, bytes=elem, count=count, pe=pe)

    def iget(self, handle: Any, dst: Any, src: Any, dst_stride: int, src_stride: int, elem: int, count: int, pe: int) -> int:
        """gshmem_iget."""
        return _run("iget", handle, dst=dst, src=src, dst_stride=dst_stride, src_stride=src_stride, bytes=elem, count=count, pe=pe)

    def put_many(self, handle: Any, dst: Any, src: Any, sizes: Any, pes: Any, count: int, done: Any) -> int:
        """gshmem_put_many."""
        return self._many("put_many", handle, dst, src, sizes, pes, count, done)

    def get_many(self, handle: Any, dst: Any, src: Any, sizes: Any, pes: Any, count: int, done: Any) -> int:
        """gshmem_get_many."""
        return self._many("get_many", handle, dst, src, sizes, pes, count, done)

    def _many(self, name: str, handle: Any, dst: Any, src: Any, sizes: Any, pes: Any, count: int, done: Any) -> int:
        at = [ctypes.cast(array, ctypes.c_void_p) for array in (dst, src, sizes, pes)]
        return _run(name, handle, dst=at[0], src=at[1], many_bytes=at[2], many_pe=at[3], count=count, done_out=ctypes.addressof(done._obj))

    def p(self, handle: Any, dst: Any, value: int, width: int, pe: int) -> int:
        """gshmem_p."""
        return _run("p", handle, dst=dst, value=value, width=width, pe=pe)

    def g(self, handle: Any, src: Any, width: int, pe: int, value: Any) -> int:
        """gshmem_g; `value` is a byref."""
        value._obj.value = _run("g", handle, words=1, src=src, width=width, pe=pe)
        return 0

    def atomic(self, handle: Any, op: int, width: int, target: Any, operand: int, compare: int, pe: int, old: Any) -> int:
        """gshmem_atomic; `old` is a byref, or None when the old value is not wanted."""
        fetch = old is not None
        word = _run("atomic", handle, words=int(fetch), op=op, width=width, dst=target, value=operand, compare=compare, pe=pe, fetch=int(fetch))
        if fetch:
            old._obj.value = word
        return 0

    def put_signal(self, handle: Any, dst: Any, src: Any, nbytes: int, signal: Any, value: int, how: int, pe: int) -> int:
        """gshmem_put_signal."""
        return _run("put_signal", handle, dst=dst, src=src, bytes=nbytes, signal=signal, value=value, op=how, pe=pe)

    put_signal_nbi = put_signal

    def quiet(self, handle: Any, timeout: int) -> int:
        """gshmem_quiet."""
        return _run("quiet", handle, timeout=timeout)


FAR = Far()
