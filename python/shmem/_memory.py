"""Symmetric memory: tensors and Buffers, peer views, reclaiming."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional

from . import _abi, _block, _call
from ._block import Block
from ._errors import InvalidArgumentError, NotSymmetricError, ShmemError, UnsupportedError
from ._lib import library
from ._operand import Operand, is_tensor
from ._team import Team, resolve

if TYPE_CHECKING:
    from torch import Tensor, dtype


def allocate(
    nbytes: int, align: int = 0, zero: bool = True, team: Optional[Team] = None, timeout: Optional[float] = None, on_device: bool = False
) -> Block:
    """Allocates a block on every member of a team. Collective. Blocks until all arrive."""
    members = resolve(team)
    flags = _abi.ZERO if zero else 0
    if on_device:
        flags |= _abi.ON_DEVICE
        _device_of(members.world).synchronize()  # what was dropped may be handed out again: no stream may be using it
    _block.take_back(wait=on_device)
    arguments = (members.handle, nbytes, align, flags, _call.timeout_ns(timeout))
    words = _call.start(library().alloc_start, arguments, 2, "alloc")
    return Block(members.world, words[0], words[1], nbytes, members, on_device)


def _device_of(world: Any) -> Any:
    if world.device is None:
        raise UnsupportedError("this world has no device: shmem.init(device='npu') or SHMEM_DEVICE=npu gives it one (shmem.info()['device'] has the reason)")
    return world.device


def _on_device(device: Any, team: Optional[Team]) -> bool:
    """Whether a device argument means the npu of the team's world; None and "cpu" mean host memory."""
    kind, _, number = str(device).partition(":")
    if device is None or kind == "cpu":
        return False
    if kind != "npu":
        raise UnsupportedError(f"symmetric memory is on the cpu or on an npu, not on {device}")
    index = _device_of(resolve(team).world).index
    if number and int(number) != index:
        raise InvalidArgumentError(f"device is {device} and this PE's symmetric heap is on npu:{index}; a world has one device on each PE")
    return True


class Buffer:
    """Symmetric bytes without torch: memoryview(buffer.data), slices, numpy.frombuffer(buffer.data) and every operation take it.

    The memory is given back when the buffer and all views of its data are gone.
    """

    def __init__(self, block: Block, nbytes: int, address: int, format: str = "B") -> None:  # noqa: A002 - memoryview's word
        """Shows a block; users get Buffers from shmem.buffer and shmem.peer."""
        self._block: Optional[Block] = block
        self._format = format
        self._address = address
        whole = memoryview(_block.exporter(address, nbytes, block)).cast("B")
        self._data: Optional[memoryview] = whole[:nbytes].cast(format)  # type: ignore[call-overload]

    @property
    def data(self) -> memoryview:
        """The bytes as a writable memoryview of the format given."""
        if self._data is None:
            raise NotSymmetricError("this Buffer was freed by shmem.free; allocate it again")
        return self._data

    @property
    def nbytes(self) -> int:
        """Its length in bytes."""
        return self.data.nbytes

    def cast(self, format: str) -> "Buffer":  # noqa: A002
        """The same memory with another element format ("q", "f", ...)."""
        return Buffer(self._held(), self.nbytes, self._address, format)

    def slice(self, start: int, stop: int) -> "Buffer":
        """The elements start to stop as a Buffer of the same memory."""
        size = self.data.itemsize
        if not 0 <= start <= stop <= len(self.data):
            raise InvalidArgumentError(f"slice {start}:{stop} leaves the buffer's 0:{len(self.data)}")
        return Buffer(self._held(), (stop - start) * size, self._address + start * size, self._format)

    def _held(self) -> Block:
        self.data  # noqa: B018 - raises when freed
        assert self._block is not None
        return self._block

    def _operand(self, role: str) -> Operand:
        from ._operand import _format_code

        data = self.data
        address = self._address
        return Operand(address, data.nbytes, len(data), data.itemsize, _format_code(self._format, data.itemsize), self._format, self)

    def _release(self) -> None:
        self._data = None
        self._block = None

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer protocol, for Python 3.12 and later."""
        return self.data

    def __len__(self) -> int:
        """How many elements it has."""
        return len(self.data)

    def __getitem__(self, where: Any) -> Any:
        """Elements, as of its memoryview."""
        return self.data[where]

    def __setitem__(self, where: Any, value: Any) -> None:
        """Stores elements, as into its memoryview."""
        self.data[where] = value

    def __repr__(self) -> str:
        """Length and format."""
        return "Buffer(freed)" if self._data is None else f"Buffer({self.nbytes} bytes, format={self._format!r})"


def buffer(nbytes: int, *, format: str = "B", align: int = 0, team: Optional[Team] = None, timeout: Optional[float] = None) -> Buffer:  # noqa: A002
    """Allocates zeroed symmetric bytes as a Buffer. Collective. Blocks until all members of the team arrive."""
    if nbytes < 0:
        raise InvalidArgumentError(f"buffer: nbytes is {nbytes}; it must not be negative")
    block = allocate(nbytes, align, True, team, timeout)
    return Buffer(block, nbytes, block.address, format)


def _tensors() -> Any:
    try:
        from .interop import tensors
    except ImportError as problem:
        raise UnsupportedError(f"symmetric tensors need torch, which cannot be imported ({problem}); shmem.buffer() works without it") from problem
    return tensors


def _new(shape: Any, kind: Any, requires_grad: bool, align: int, team: Optional[Team], timeout: Optional[float], device: Any) -> "Tensor":
    tensors = _tensors()
    import torch

    chosen = kind if kind is not None else torch.get_default_dtype()
    tensors.check_dtype(chosen)
    extents = tensors.as_shape(shape)
    block = allocate(tensors.nbytes_of(extents, chosen), align, True, team, timeout, _on_device(device, team))
    made: "Tensor" = tensors.make(block, block.address, extents, chosen)
    return made.requires_grad_() if requires_grad else made


def empty(
    *size: Any,
    dtype: "Optional[dtype]" = None,
    requires_grad: bool = False,
    align: int = 0,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    device: Any = None,
) -> "Tensor":
    """Allocates a symmetric tensor, on the CPU or with device="npu" on the world's device. Collective. Blocks until all members of the team arrive.

    New memory is zero here as well, so a new signal is 0. The memory is given back when the tensor's storage dies.
    """
    return _new(size, dtype, requires_grad, align, team, timeout, device)


def zeros(
    *size: Any,
    dtype: "Optional[dtype]" = None,
    requires_grad: bool = False,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    device: Any = None,
) -> "Tensor":
    """Allocates a symmetric tensor of zeros. Collective. Blocks until all members of the team arrive."""
    return _new(size, dtype, requires_grad, 0, team, timeout, device)


def ones(
    *size: Any,
    dtype: "Optional[dtype]" = None,
    requires_grad: bool = False,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    device: Any = None,
) -> "Tensor":
    """Allocates a symmetric tensor of ones. Collective. Blocks until all members of the team have filled theirs, as full does."""
    return full(size, 1, dtype=dtype, requires_grad=requires_grad, team=team, timeout=timeout, device=device)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: "Optional[dtype]" = None,
    requires_grad: bool = False,
    team: Optional[Team] = None,
    timeout: Optional[float] = None,
    device: Any = None,
) -> "Tensor":
    """Allocates a symmetric tensor filled with a value. Collective. Blocks until all members of the team have filled theirs.

    So no put of a peer comes before the fill, and every peer's values may be relied on.
    """
    made = _new(size if isinstance(size, tuple) else (size,), dtype, False, 0, team, timeout, device)
    made.fill_(fill_value)
    _meet(made, team, timeout)
    return made.requires_grad_() if requires_grad else made


def _meet(made: Any, team: Optional[Team], timeout: Optional[float]) -> None:
    """Waits until all members have stored the first values of a tensor: a fast one's put would be overwritten by a slow one's fill."""
    from ._collectives import sync

    if not made.is_cpu:
        _tensors().wait_for_stream(made)
    sync(team=team, timeout=timeout)


def empty_like(t: "Tensor", *, team: Optional[Team] = None, timeout: Optional[float] = None) -> "Tensor":
    """Allocates a symmetric tensor of the shape, dtype and device of another. Collective. Blocks until all members arrive."""
    return _new((tuple(t.shape),), t.dtype, False, 0, team, timeout, t.device)


def zeros_like(t: "Tensor", *, team: Optional[Team] = None, timeout: Optional[float] = None) -> "Tensor":
    """Allocates symmetric zeros of the shape and dtype of another tensor. Collective. Blocks until all members arrive."""
    return empty_like(t, team=team, timeout=timeout)


def symmetric_copy(t: "Tensor", *, team: Optional[Team] = None, timeout: Optional[float] = None) -> "Tensor":
    """Allocates a symmetric tensor and copies a tensor's values into it here. Collective. Blocks until all members have copied theirs."""
    made = empty_like(t, team=team, timeout=timeout)
    made.copy_(t.detach())
    _meet(made, team, timeout)
    return made


def _place(value: Any) -> "tuple[int, Any]":
    if is_tensor(value):
        if getattr(value, "_shmem_freed", False):
            raise NotSymmetricError("this tensor was freed by shmem.free; allocate it again")
        return value.untyped_storage().data_ptr(), value
    if isinstance(value, Buffer):
        return value._operand("it").address, value
    raise NotSymmetricError(f"a {type(value).__name__} is not symmetric memory; make it with shmem.empty, shmem.buffer or shmem.symmetric_copy")


def _held(value: Any, world: Any, operation: str) -> "tuple[int, Block]":
    """Where a tensor or Buffer begins, and its Block; says what to give where it is no symmetric memory."""
    low, _ = _place(value)
    try:
        return low, _block.find(world, low)
    except NotSymmetricError as problem:
        text = f"{operation}: this is ordinary memory, or another world's; make it with shmem.empty, shmem.buffer or shmem.symmetric_copy ({problem})"
        raise NotSymmetricError(text, operation=operation) from None


def _world_of(team: Optional[Team]) -> Any:
    return resolve(team).world


def is_symmetric(value: Any) -> bool:
    """Whether a tensor or Buffer lies in the current world's symmetric memory. Does not block."""
    try:
        address, _ = _place(value)
        _block.find(_world_of(None), address)
    except (NotSymmetricError, RuntimeError):
        return False
    return True


def peer(t: Any, pe: int, *, team: Optional[Team] = None) -> Any:
    """A view of a PE's copy of a symmetric tensor or Buffer: the same dtype and shape over that PE's memory. Does not block.

    `pe` is a rank of the team, or of the current world. Raises UnsupportedError when that PE's memory is not mapped here
    (another host, or SHMEM_TRANSPORT=tcp); put and get work all the same.
    """
    members = resolve(team)
    world = members.world
    low, block = _held(t, world, "peer")
    where = pe if team is None else members.translate(pe)
    out = ctypes.c_void_p()
    address = (t.data_ptr() if t.numel() else block.address) if is_tensor(t) else low
    _call.check(library().ptr(world.handle, address, -1 if where is None else where, ctypes.byref(out)), "peer")
    if out.value is None:
        raise ShmemError("peer: the core gave no address", operation="peer", pe=pe)
    if is_tensor(t):
        return _tensors().like_at(t, out.value, block)
    return Buffer(block, t.nbytes, out.value, t._format)


def free(t: Any, *, timeout: Optional[float] = None) -> None:
    """Gives a symmetric tensor or Buffer up now, instead of when it dies. Collective over its team. Blocks until all members arrive.

    The tensor is emptied; memory that other views of it still show is reclaimed when they die.
    """
    _, block = _held(t, resolve(None).world, "free")
    team = block.team
    if block.on_device:
        _device_of(block.world).synchronize()
    if is_tensor(t):
        import torch

        with torch.no_grad():
            t.set_(torch.empty(0, dtype=t.dtype, device=t.device))
        t._shmem_freed = True
    else:
        t._release()
    del block
    collect(team=team, timeout=timeout)


def collect(*, team: Optional[Team] = None, timeout: Optional[float] = None) -> int:
    """Reclaims what every member has dropped and gives the bytes. Collective. Blocks until all members of the team arrive."""
    members = resolve(team)
    if members.world.device is not None:
        members.world.device.synchronize()
    _block.take_back(wait=True)
    return _call.start(library().collect_start, (members.handle, _call.timeout_ns(timeout)), 1, "collect")[0]
