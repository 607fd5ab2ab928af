"""One-sided access: put, get and their forms. The peer's program takes no part."""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Any, Iterable, Optional, Sequence, Tuple

from . import _abi, _call, _operand, _world
from ._errors import InvalidArgumentError, ShmemError
from ._lib import library
from ._world import World

_fail = _call.fail


def _resolve(world: Optional[World]) -> World:
    return world if world is not None else _world.current()


# What put needs at hand for two plain tensors: filled in when the first tensor comes by, and torch is surely imported.
# _plain_kind is the dtype last found to be free of lazy conjugation; most programs put one dtype again and again.
_Tensor: Any = None
_plain_kind: Any = None
_lazy_kinds: Any = frozenset()


def _prepare() -> None:
    global _Tensor, _lazy_kinds
    torch = sys.modules.get("torch")
    if torch is not None and _Tensor is None:
        _lazy_kinds = frozenset((torch.complex32, torch.complex64, torch.complex128))
        _Tensor = torch.Tensor


def _never_lazy(kind: Any) -> bool:
    global _plain_kind
    if kind in _lazy_kinds:
        return False
    _plain_kind = kind
    return True


def put(dst: Any, src: Any, pe: int, *, world: Optional[World] = None) -> None:
    """Copies src into dst at a PE; src may be reused at once. Any thread; does not block when that PE's memory is mapped.

    The data are there for others after the order rules of fence, quiet, signals and barriers (docs/ordering.md).
    """
    where = _world._current if world is None else world
    if where is not None and type(dst) is _Tensor is type(src):
        size = 0
        try:
            size = dst.nbytes
            kind = dst.dtype
            if not (
                size == src.nbytes
                and kind is src.dtype
                and (kind is _plain_kind or _never_lazy(kind))
                and src.is_cpu
                and dst.is_contiguous()
                and src.is_contiguous()
                and not src.is_neg()
                and not dst.is_neg()
            ):
                size = 0  # not both dense, in one piece, and of one dtype and size: the long way looks
        except RuntimeError:  # a sparse tensor has no nbytes
            size = 0
        if size:
            status = (where.put_small if size <= 4096 else where.put)(where.c_handle, dst.data_ptr(), src.data_ptr(), size, pe)
            if status < 0:
                _fail(status, "put")
            return
    _move("put", dst, src, pe, _resolve(world))


def get(dst: Any, src: Any, pe: int, *, world: Optional[World] = None) -> None:
    """Copies src at a PE into dst here and returns with the data. Any thread; blocks only while data travel from another host."""
    where = _resolve(world)
    there, here = _operand.symmetric(src, "src"), _operand.target(dst, "dst")
    _operand.same_size(here, there, "get")
    status = where.calls.get(where.handle, _nonzero(here, there), there.address or here.address, here.nbytes, pe)
    if status < 0:
        _fail(status, "get")
    if here.back is not None:
        here.back()


def _nonzero(a: _operand.Operand, b: _operand.Operand) -> int:
    return a.address or b.address


def _move(name: str, dst: Any, src: Any, pe: int, where: World) -> None:
    _prepare()
    there, here = _operand.symmetric(dst, "dst"), _operand.source(src, "src")
    _operand.same_size(there, here, name)
    function = getattr(where.calls, name)
    status = function(where.handle, there.address, here.address, here.nbytes, pe)
    if status < 0:
        _fail(status, name)


def put_nbi(dst: Any, src: Any, pe: int, *, world: Optional[World] = None) -> None:
    """Starts a put; src must stay unchanged until quiet. Any thread; does not block.

    A src that is not contiguous is copied first, and that copy is put at once.
    """
    where = _resolve(world)
    there, here = _operand.symmetric(dst, "dst"), _operand.source(src, "src")
    _operand.same_size(there, here, "put_nbi")
    function = where.calls.put_nbi if here.keep is src or _shares(here, src) else where.calls.put
    status = function(where.handle, there.address, here.address, here.nbytes, pe)
    if status < 0:
        _fail(status, "put_nbi")


def _shares(operand: _operand.Operand, value: Any) -> bool:
    """Whether an operand is the caller's own memory and not a copy of it that dies with this call."""
    if _operand.is_tensor(value):
        return bool(value.numel() > 0 and value.data_ptr() == operand.address)
    return not isinstance(operand.keep, ctypes.Array)


def get_nbi(dst: Any, src: Any, pe: int, *, world: Optional[World] = None) -> None:
    """Starts a get; dst holds the data after quiet. Any thread; does not block. dst must be contiguous."""
    where = _resolve(world)
    there, here = _operand.symmetric(src, "src"), _operand.target(dst, "dst")
    _operand.same_size(here, there, "get_nbi")
    if here.back is not None:
        raise InvalidArgumentError("get_nbi: dst is not contiguous; use get, or get_nbi into a contiguous tensor")
    status = where.calls.get_nbi(where.handle, here.address, there.address, here.nbytes, pe)
    if status < 0:
        _fail(status, "get_nbi")


def _strided(name: str, dst: Any, src: Any, dst_stride: int, src_stride: int, count: Optional[int]) -> Tuple[Any, Any, int]:
    far, near = (dst, src) if name == "iput" else (src, dst)
    there = _operand.symmetric(far, "dst" if name == "iput" else "src")
    here = _operand.source(near, "src") if name == "iput" else _operand.target(near, "dst")
    if there.itemsize != here.itemsize:
        raise InvalidArgumentError(f"{name}: elements of dst and src differ ({there.itemsize} and {here.itemsize} bytes)")
    if dst_stride < 1 or src_stride < 1:
        raise InvalidArgumentError(f"{name}: strides are {dst_stride} and {src_stride}; they are counted in elements and at least 1")
    far_stride, near_stride = (dst_stride, src_stride) if name == "iput" else (src_stride, dst_stride)
    room = min(_elements(there.elements, far_stride), _elements(here.elements, near_stride))
    many = room if count is None else count
    if not 0 <= many <= room:
        raise InvalidArgumentError(f"{name}: {many} elements at these strides leave dst or src (at most {room})")
    return there, here, many


def _elements(count: int, stride: int) -> int:
    return (count + stride - 1) // stride


def iput(dst: Any, src: Any, pe: int, *, dst_stride: int = 1, src_stride: int = 1, count: Optional[int] = None, world: Optional[World] = None) -> None:
    """Copies every src_stride-th element of src to every dst_stride-th of dst at a PE. Any thread; blocks as put.

    Without count, as many as fit both.
    """
    there, here, many = _strided("iput", dst, src, dst_stride, src_stride, count)
    where = _resolve(world)
    status = where.calls.iput(where.handle, there.address, here.address, dst_stride, src_stride, here.itemsize, many, pe)
    if status < 0:
        _fail(status, "iput")


def iget(dst: Any, src: Any, pe: int, *, dst_stride: int = 1, src_stride: int = 1, count: Optional[int] = None, world: Optional[World] = None) -> None:
    """Copies every src_stride-th element of src at a PE to every dst_stride-th of dst here. Any thread; blocks as get."""
    there, here, many = _strided("iget", dst, src, dst_stride, src_stride, count)
    where = _resolve(world)
    status = where.calls.iget(where.handle, here.address, there.address, dst_stride, src_stride, here.itemsize, many, pe)
    if status < 0:
        _fail(status, "iget")
    if here.back is not None:
        here.back()


class Pieces:
    """Many copies prepared once and run as often as you like, each run one call of the core.

    Keeps its operands alive; put and get read them again at each run, so their contents may change in between.
    """

    def __init__(self, pieces: Iterable[Tuple[Any, Any, int]] = (), *, world: Optional[World] = None) -> None:
        """Takes (symmetric, local, pe) triples; every tensor must be contiguous."""
        self._world = _resolve(world)
        self._keep = []
        far, near, sizes, pes = [], [], [], []
        for symmetric, local, pe in pieces:
            there, here = _operand.symmetric(symmetric, "symmetric"), _operand.target(local, "local")
            _operand.same_size(there, here, "Pieces")
            if here.back is not None:
                raise InvalidArgumentError("Pieces: a local tensor is not contiguous; give contiguous pieces")
            self._keep.append((symmetric, here.keep))
            far.append(there.address)
            near.append(here.address)
            sizes.append(there.nbytes)
            pes.append(pe)
        self._fill(far, near, sizes, pes)

    @classmethod
    def at(
        cls,
        symmetric: Any,
        local: Any,
        far_offsets: Sequence[int],
        near_offsets: Sequence[int],
        nbytes: Sequence[int],
        pes: Sequence[int],
        *,
        world: Optional[World] = None,
    ) -> "Pieces":
        """Takes byte offsets into one symmetric and one local operand: lists, arrays or tensors of equal length."""
        made = cls(world=world)
        there, here = _operand.symmetric(symmetric, "symmetric"), _operand.target(local, "local")
        if here.back is not None:
            raise InvalidArgumentError("Pieces.at: the local tensor is not contiguous")
        far, near, sizes, where = (_numbers(v) for v in (far_offsets, near_offsets, nbytes, pes))
        if not len(far) == len(near) == len(sizes) == len(where):
            raise InvalidArgumentError(f"Pieces.at: lists of {len(far)}, {len(near)}, {len(sizes)} and {len(where)} entries; they must be equally long")
        for offset, inner, size in zip(far, near, sizes):
            if size < 0 or offset < 0 or inner < 0 or offset + size > there.nbytes or inner + size > here.nbytes:
                raise InvalidArgumentError(f"Pieces.at: {size} bytes at {offset} and {inner} leave the operands ({there.nbytes} and {here.nbytes} bytes)")
        made._keep = [(symmetric, here.keep)]
        made._fill([there.address + o for o in far], [here.address + o for o in near], sizes, where)
        return made

    def _fill(self, far: Sequence[int], near: Sequence[int], sizes: Sequence[int], pes: Sequence[int]) -> None:
        n = len(sizes)
        self._far = (ctypes.c_void_p * n)(*far)
        self._near = (ctypes.c_void_p * n)(*near)
        self._sizes = (ctypes.c_uint64 * n)(*sizes)
        self._pes = (ctypes.c_int32 * n)(*pes)
        self._n = n
        self._done = ctypes.c_uint64()

    def __len__(self) -> int:
        """How many pieces there are."""
        return self._n

    def put(self) -> None:
        """Copies every local piece to its PE. Any thread, one at a time; blocks as put."""
        self._move("put_many", self._far, self._near)

    def get(self) -> None:
        """Copies every piece at its PE to here. Any thread, one at a time; blocks as get."""
        self._move("get_many", self._near, self._far)

    def _move(self, name: str, to: Any, of: Any) -> None:
        move = getattr(self._world.calls, name)
        try:
            _call.check(move(self._world.handle, to, of, self._sizes, self._pes, self._n, ctypes.byref(self._done)), name)
        except ShmemError as problem:
            problem.args = (f"{problem} (piece {self._done.value} of {self._n}; the ones before were moved)",)
            raise


def _numbers(values: Any) -> Sequence[int]:
    to_list = getattr(values, "tolist", None)
    return to_list() if to_list is not None else [int(v) for v in values]


def put_many(pieces: Iterable[Tuple[Any, Any, int]], *, world: Optional[World] = None) -> None:
    """Puts many (dst, src, pe) pieces in one call; Pieces prepares such a list once. Any thread; blocks as put."""
    Pieces(pieces, world=world).put()


def get_many(pieces: Iterable[Tuple[Any, Any, int]], *, world: Optional[World] = None) -> None:
    """Gets many (dst, src, pe) pieces in one call. Any thread; blocks as get."""
    Pieces([(src, dst, pe) for dst, src, pe in pieces], world=world).get()


_PACK = {
    "U8": "B",
    "I8": "b",
    "BOOL": "?",
    "U16": "H",
    "I16": "h",
    "U32": "I",
    "I32": "i",
    "U64": "Q",
    "I64": "q",
    "F16": "e",
    "F32": "f",
    "F64": "d",
}
_PACK_BY_CODE = {_abi.DTYPE[name]: letter for name, letter in _PACK.items()}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


def to_bits(value: Any, operand: _operand.Operand, what: str) -> int:
    """A Python number as the bits of one element of an operand; raises when it does not fit."""
    letter = _PACK_BY_CODE.get(operand.code)
    if letter is None:
        raise InvalidArgumentError(f"{what}: elements of {operand.name} are not single numbers of 1, 2, 4 or 8 bytes")
    try:
        return int(struct.unpack("=" + _UNSIGNED[operand.itemsize], struct.pack("=" + letter, value))[0])
    except (struct.error, OverflowError, TypeError) as problem:
        raise InvalidArgumentError(f"{what}: {value!r} is no value of {operand.name} ({problem})") from None


def from_bits(bits: int, operand: _operand.Operand) -> Any:
    """The Python number whose bits an element of an operand has."""
    letter = _PACK_BY_CODE.get(operand.code)
    if letter is None:
        raise InvalidArgumentError(f"elements of {operand.name} are not single numbers of 1, 2, 4 or 8 bytes")
    mask = (1 << (8 * operand.itemsize)) - 1
    return struct.unpack("=" + letter, struct.pack("=" + _UNSIGNED[operand.itemsize], bits & mask))[0]


def element(value: Any, index: int, role: str) -> Tuple[_operand.Operand, int]:
    """The operand and the address of its element at a flat index; raises when there is none."""
    operand = _operand.symmetric(value, role)
    if not 0 <= index < operand.elements:
        raise InvalidArgumentError(f"{role}: index {index} leaves 0..{operand.elements - 1}")
    return operand, operand.address + index * operand.itemsize


def p(dst: Any, value: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> None:
    """Stores one value into an element of dst at a PE and wakes a waiter there. Any thread; blocks as put."""
    operand, address = element(dst, index, "dst")
    where = _resolve(world)
    status = where.calls.p(where.handle, address, to_bits(value, operand, "p"), operand.itemsize, pe)
    if status < 0:
        _fail(status, "p")


def g(src: Any, pe: int, *, index: int = 0, world: Optional[World] = None) -> Any:
    """Gives one element of src at a PE as a Python number. Any thread; blocks as get."""
    operand, address = element(src, index, "src")
    out = ctypes.c_uint64()
    where = _resolve(world)
    status = where.calls.g(where.handle, address, operand.itemsize, pe, ctypes.byref(out))
    if status < 0:
        _fail(status, "g")
    return from_bits(out.value, operand)


def fence(*, world: Optional[World] = None) -> None:
    """Orders this PE's puts before it before those after it, per target. Any thread; does not block (with a device: for its streams)."""
    where = _resolve(world)
    if where.device is not None:
        where.device.settle("fence")
    _call.check(library().fence(where.handle), "fence")


def quiet(*, timeout: Optional[float] = None, world: Optional[World] = None) -> None:
    """Waits until all this PE's puts are visible everywhere and its nbi operations are done. Any thread; blocks up to timeout."""
    where = _resolve(world)
    _call.check(where.calls.quiet(where.handle, _call.timeout_ns(timeout)), "quiet")
