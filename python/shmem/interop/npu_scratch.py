"""The symmetric device memory through which a group's kernels serve tensors that are not symmetric.

    caller's tensor --copy--> slot --kernel--> slots of the members --copy--> caller's tensor        all in the order of one stream

Each group has its own, in two slots, agreed on when the group is made: either every member has it or none. What a member's tensor is
(symmetric, strided, large) never decides the way; sizes, dtype and operator do, and these are equal on all.

A slot may be written here as soon as this PE's stream is past its last operation: kernels end with a barrier of the members, so none of
them still reads it. Peers write into it only from kernels, which begin with one. Operations larger than a slot go in pieces: while a
kernel works on one slot, a second stream fills the other and empties it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from .. import _abi, _block, _call
from .._errors import HeapExhaustedError, OutOfMemoryError, TimeoutError
from .._lib import library
from . import npu
from .npu_exchange import Exchange, flags
from .npu_tensors import mark

SMALLEST = 256 << 10  # two slots with room for a small reduction beside its operands
_GRAIN = 512
_PART = 4 << 10  # the least that each rank's part of a slot must have
_OF_HEAP = 16  # the part of the device heap that one group takes at most

Range = Tuple[int, int]


class Way(NamedTuple):
    """How one collective goes through a slot: bytes [begin, end) of each member's part at a time."""

    what: int
    nbytes: int  # of a member's part
    most: int  # bytes of a part that a slot takes
    load: Callable[[int, int, int, int], None]  # slot, begin, end, stream
    run: Callable[[int, int, int, int], None]
    store: Callable[[int, int, int, int], None]
    dtype: int = 0
    operator: int = 0
    root: int = -1
    each: int = 1  # bytes of what is counted: elements where something is reduced
    told: Optional[Tuple[int, int]] = None  # dtype and operator as they were asked for, where kernels are given others
    several: bool = False  # more kernels than one, so that what is asked must be told before


class Scratch:
    """A group's slots on the device. Threads: any; one operation at a time is queued."""

    def __init__(self, world: Any, team: int, rank: int, size: int, block: Any) -> None:
        """Takes the block over; open() makes it."""
        self.world, self.team, self.rank, self.size = world, team, rank, size
        self._block: Any = block
        signals = flags(size)
        self.slot = (block.nbytes - signals) // 2 // _GRAIN * _GRAIN
        self.lock = threading.Lock()
        self._side = 0
        self._last: Any = None  # the stream of the last operation and the event behind it
        self._pending = False  # nobody has waited for it
        self.exchange = Exchange(self, block.address + 2 * self.slot, block.address, 2 * self.slot)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._block.nbytes) if self._block is not None else 0

    def close(self) -> None:
        """Gives the memory back; it is handed out again when all members have. Blocks: no."""
        with self.lock:
            side, self._side = self._side, 0
            block, self._block = self._block, None
        if block is not None:
            _block.let_go(block)  # kernels may be at work
        if side and self.world.alive:
            library().stream_destroy(self.world.handle, side)

    def busy(self) -> bool:
        """Whether an operation that was queued may not be done. Blocks: no."""
        last = self._last
        try:
            return last is not None and not last[1].query()
        except RuntimeError:  # the device is in trouble
            return True

    def room(self, parts: int) -> int:
        """How many bytes each of some equal parts of a slot has."""
        return self.slot // parts // _GRAIN * _GRAIN

    # ---- what a way is made of: each is queued on a raw stream. Blocks: no ------------------------------------------------

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        """Copies memory of the device."""
        if nbytes and dst != src:
            _call.check(library().copy_on_stream(self.world.handle, dst, src, nbytes, stream or None), "copy_on_stream")

    def kernel(self, way: Way, src: int, dst: int, count: int, stream: int, what: Optional[int] = None) -> None:
        """A collective of the group, by its kernel."""
        status = library().collective_on_stream(
            self.team, way.what if what is None else what, src, dst, count, way.dtype, way.operator, max(way.root, 0), stream or None
        )
        if status < 0:
            _call.fail(status, "collective_on_stream")

    def meet(self, stream: int) -> None:
        """A barrier of the members' streams, behind which all that was put before is there."""
        _call.check(library().quiet_on_stream(self.world.handle, stream or None), "barrier_on_stream")
        _call.check(library().barrier_on_stream(self.team, stream or None), "barrier_on_stream")

    def pe(self, rank: int) -> int:
        """The PE of the world that a rank of the group is."""
        out = ctypes.c_int32()
        _call.check(library().team_translate(self.team, rank, self.world.team.handle, ctypes.byref(out)), "translate")
        return out.value

    def put(self, dst: int, src: int, nbytes: int, rank: int, stream: int) -> None:
        """Copies memory of the device to a member's slot."""
        _call.check(library().put_on_stream(self.world.handle, dst, src, nbytes, self.pe(rank), stream or None), "put_on_stream")

    def get(self, dst: int, src: int, nbytes: int, rank: int, stream: int) -> None:
        """Copies from a member's slot."""
        _call.check(library().get_on_stream(self.world.handle, dst, src, nbytes, self.pe(rank), stream or None), "get_on_stream")

    def announce(self, what: int, count: int, dtype: int, operator: int = 0, root: int = -1) -> None:
        """Tells the members of an operation that this PE does otherwise than by one kernel."""
        announce(self.team, what, count, dtype, operator, root)

    # ---- the pieces of an operation --------------------------------------------------------------------------------------

    def carry(self, way: Way) -> None:
        """Queues an operation on the current stream. The lock is held. Collective over the group. Blocks: for torch_npu's queue."""
        main = self.world.device.stream()
        ranges = [(at, min(at + way.most, way.nbytes)) for at in range(0, way.nbytes, way.most)] or [(0, 0)]
        if len(ranges) > 1 or way.several or way.told is not None:
            self.tell(way)
        if len(ranges) == 1:
            for step in (way.load, way.run, way.store):
                step(self._slot(0), *ranges[0], main)
        else:
            self._pieces(way, ranges, main)
        self.world.device.queued(main)

    def tell(self, way: Way) -> None:
        """Tells the members what is about to be done in several steps, so that those that ask for something else are found."""
        dtype, operator = way.told or (way.dtype, way.operator)
        self.announce(way.what, way.nbytes // way.each, dtype, operator, way.root)

    def _pieces(self, way: Way, ranges: List[Range], main: int) -> None:
        side = self._second()
        self._join(side, main)
        way.load(self._slot(0), *ranges[0], side)
        self._join(main, side)
        for k, piece in enumerate(ranges):
            way.run(self._slot(k), *piece, main)
            if k + 1 < len(ranges):  # beside the kernel; its slot was emptied on the same stream before
                way.load(self._slot(k + 1), *ranges[k + 1], side)
                self._join(main, side)
            self._join(side, main)
            way.store(self._slot(k), *piece, side)
        self._join(main, side)

    def _slot(self, k: int) -> int:
        return int(self._block.address) + k % 2 * self.slot

    def _second(self) -> int:
        if not self._side:
            stream = ctypes.c_void_p()
            _call.check(library().stream_create(self.world.handle, ctypes.byref(stream)), "stream_create")
            self._side = stream.value or 0
        return self._side

    def _join(self, stream: int, other: int) -> None:
        _call.check(library().stream_join(self.world.handle, stream or None, other or None), "stream_join")

    # ---- the order of operations on several streams -----------------------------------------------------------------------

    def enter(self, stream: Any) -> None:
        """Orders a stream behind the last operation when that was on another. The lock is held."""
        if self._block is None:
            raise RuntimeError("the group's scratch memory is gone")  # a closed channel is refused before
        if self._last is not None and self._last[0] != stream:
            stream.wait_event(self._last[1])

    def settle(self, wait: bool, timeout: float) -> None:
        """Orders the current stream behind the operations queued so far and, with `wait`, waits until they are done: raises what became of them.

        Blocks: with `wait`, when some may not be done.
        """
        with self.lock:
            last, pending, self._pending = self._last, self._pending, self._pending and not wait
        if pending:
            npu.runtime().current_stream(self.world.device.index).wait_event(last[1])
            if wait:
                self._settled(last[1], timeout)

    def _settled(self, event: Any, timeout: float) -> None:
        """Waits for this group's operations alone: what became of another's is no business of a barrier of this one. Blocks."""
        began, pause = time.monotonic(), 50e-6
        while not event.query():
            if time.monotonic() - began > timeout:
                words = f"barrier: the group's operations on the device have not ended within {timeout:g} s (its timeout); wait again, or raise it"
                raise TimeoutError(words, operation="barrier")
            time.sleep(pause)
            pause = min(pause * 1.5, 1e-3)
        for status in (library().device_health(self.world.handle), library().team_health(self.team)):
            if status < 0:
                _call.fail(status, "barrier")

    def leave(self, stream: Any, event: Any) -> None:
        """Notes where the last operation ends. The lock is held."""
        self._last, self._pending = (stream, event), True


def announce(team: int, what: int, count: int, dtype: int, operator: int, root: int, by_host: bool = False) -> None:
    """Tells the members of an operation that this PE does otherwise than by one kernel. Collective over the team. Blocks: no."""
    status = library().collective_announce(team, what, count, dtype, operator, root, by_host)
    if status < 0:
        _call.fail(status, _abi_names.get(what, "collective"))


_abi_names = {code: name.lower() for name, code in _abi.COLLECTIVE.items()}


def open_scratch(world: Any, team: int, rank: int, size: int) -> Tuple[Optional[Scratch], str]:
    """A new group's scratch, or None and why; the same on every member.

    Collective over the team. Blocks until all members are here.
    """
    device = world.device
    if device is None or not device.kernels:
        return None, "no device" if device is None else "no kernels"
    mine = offered(world, team, size)
    agreed = _least(team, mine)
    if agreed == 0 and mine > 0:
        return None, "another member offers none"
    if agreed == 0:
        if device.scratch_bytes == 0:
            return None, "SHMEM_DEVICE_SCRATCH is 0"
        return None, "SHMEM_DEVICE_SCRATCH or SHMEM_DEVICE_SIZE is too small, torch_npu is not imported, or kernels do not know the team"
    device.synchronize()  # what was dropped may be handed out again: no stream may be using it
    try:
        words = _call.start(library().alloc_start, (team, agreed, 0, _abi.ON_DEVICE | _abi.ZERO, _abi.DEFAULT_TIMEOUT), 2, "new_group")
    except (HeapExhaustedError, OutOfMemoryError) as problem:  # the members find it together
        return None, str(problem)
    block = _block.Block(world, words[0], words[1], agreed, None, True)
    block.in_use = mark(device.index)
    return Scratch(world, team, rank, size, block), ""


def offered(world: Any, team: int, size: int) -> int:
    """What this member would give: what is set, within its part of the heap, and nothing where it could not use it."""
    index = ctypes.c_int32(-1)
    if not npu.loaded() or library().team_index(team, ctypes.byref(index)) < 0 or index.value < 0:
        return 0
    found = min(world.device.scratch_bytes, world.device.heap_bytes // _OF_HEAP) // (2 * _GRAIN) * (2 * _GRAIN)
    return found if found >= max(SMALLEST, 2 * 2 * size * _PART) + flags(size) else 0


def _least(team: int, mine: int) -> int:
    """The least that any member offers. Collective over the team. Blocks."""
    word = (ctypes.c_int64 * 1)(mine)
    at = ctypes.addressof(word)
    arguments = (team, _abi.COLLECTIVE["ALL_REDUCE"], at, at, 1, _abi.DTYPE["I64"], _abi.REDUCE["MIN"], 0, 1.0, None, 0, _abi.DEFAULT_TIMEOUT)
    _call.start(library().collective, arguments, 0, "new_group")
    return int(word[0])
