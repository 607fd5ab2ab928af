"""Worlds: coming up, the current one, leaving."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import _abi, _block, _bootstrap, _call
from ._errors import InvalidArgumentError, NotInitializedError, ShmemError
from ._far import FAR
from ._lib import HeapStat, Options, library, loaded

if TYPE_CHECKING:
    from ._team import Team

_DEFAULT_TIMEOUT = 1800.0
_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class World:
    """A set of processes with one symmetric heap; leaving the `with` block finalizes it.

    Several may live at once. Making one is collective over its PEs and blocks until all are there, or the timeout.
    `rank` is this PE's number, `size` how many there are, `team` the team of all.
    """

    device: Any = None  # the _device.Device, in a world that has one

    def __init__(
        self,
        rank: Optional[int] = None,
        size: Optional[int] = None,
        *,
        heap: Any = None,
        timeout: Optional[float] = None,
        uid: Optional[bytes] = None,
        store: Any = None,
        endpoint: Optional[str] = None,
        path: Optional[str] = None,
        secret: Optional[str] = None,
        transport: Optional[str] = None,
        interface: Optional[str] = None,
        label: Optional[str] = None,
        device: Any = None,
        device_heap: Any = None,
    ) -> None:
        """Comes up. Collective. Blocks until every PE is there; the arguments are those of shmem.init."""
        self.handle = 0
        self._closed = False
        plan = _plan(rank, size, uid, store, endpoint, path, interface, timeout)
        options = _options(plan, heap, timeout, endpoint, path, secret, transport, interface, label)
        options.device = _device_name(device)
        options.device_bytes = heap_bytes(device_heap, "device_heap")
        words = _call.start(library().init_start, (ctypes.byref(options),), 2, "init")
        self._adopt(words[0], words[1], plan.reason)

    def _adopt(self, handle: int, team_handle: int, reason: str) -> None:
        from ._team import Team

        lib = library()
        self.handle = handle
        self.c_handle = ctypes.c_uint64(handle)  # ctypes takes it as it is, and need not convert a number at each call
        self.pid = os.getpid()
        self.rank = _call.check(lib.my_pe(handle), "my_pe")
        self.size = _call.check(lib.n_pes(handle), "n_pes")
        self.reason = reason
        self.team: Team = Team(self, team_handle, whole=True)
        self.calls: Any = lib if self._all_mapped() and lib.device_health(handle) == _abi.STATUS["EUNSUPPORTED"] else FAR
        self._find_device()
        self.put = self.calls.put
        self.put_small = lib.put_small if self.calls is lib else self.put
        _worlds.add(self)

    def _find_device(self) -> None:
        """Takes the world's device into use, if it has one."""
        if library().device_health(self.handle) == _abi.STATUS["EUNSUPPORTED"]:
            return
        from . import _device

        self.device = _device.find(self.handle, _info(self.handle))
        if self.device is not None:
            self.calls = _device.DeviceCalls(self.device)
            atexit.unregister(_leave_at_exit)  # leave before torch_npu, imported since, ends the device's runtime
            atexit.register(_leave_at_exit)

    @property
    def device_index(self) -> Optional[int]:
        """The number of this PE's npu, None in a world without one."""
        return None if self.device is None else self.device.index

    def _all_mapped(self) -> bool:
        """Whether every peer's memory is mapped: then one-sided calls never wait for anybody."""
        lib, at = library(), ctypes.c_void_p()
        low = self.heap_stats()["low"]
        return all(lib.ptr(self.handle, low, pe, ctypes.byref(at)) >= 0 for pe in range(self.size))

    @property
    def alive(self) -> bool:
        """Whether it is up in this process: not finalized, not inherited by a fork."""
        return not self._closed and self.handle != 0 and self.pid == os.getpid()

    def finalize(self, timeout: Optional[float] = None) -> None:
        """Leaves the world. Collective over the living PEs; blocks until they leave too, or the timeout. Repeating it does nothing.

        Live tensors keep their memory; operations on them raise FinalizedError.
        """
        if self._closed:
            return
        if self.device is not None and timeout != 0:
            self.device.synchronize()
        _block.take_back()
        try:
            _call.start(library().finalize_start, (self.handle, _call.timeout_ns(timeout)), 0, "finalize")
        except ShmemError:  # one that says who did not come has closed the world all the same
            if library().my_pe(self.handle) == _abi.STATUS["EFINALIZED"]:
                self._end()
            raise
        self._end()

    def _end(self) -> None:
        self._closed = True
        _forget(self)

    def abort(self, code: int = 1) -> None:
        """Ends the job: every blocked call of every PE raises AbortedError naming this one. Any thread; does not block."""
        _call.check(library().abort(self.handle, code), "abort")

    def info(self) -> Dict[str, Any]:
        """Everything about this world: settings and their sources, transports and why, heap, teams, dead PEs. Does not block."""
        _block.take_back()
        return _info(self.handle)

    def heap_stats(self) -> Dict[str, int]:
        """Size, use and largest hole of this PE's heap, in bytes. Does not block."""
        _block.take_back()
        stat = HeapStat()
        stat.size = ctypes.sizeof(HeapStat)
        _call.check(library().heap_stats(self.handle, ctypes.byref(stat)), "heap_stats")
        return {name: getattr(stat, name) for name in _abi.HEAP_STAT if name != "size"}

    def __enter__(self) -> "World":
        """Gives itself."""
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """Finalizes; after an exception it leaves without waiting for the others."""
        self.finalize(timeout=None if kind is None else 0)

    def __repr__(self) -> str:
        """Rank, size and whether it is up."""
        if not self.handle:
            return "World(coming up)"
        return f"World(rank={self.rank}, size={self.size}, {'up' if self.alive else 'finalized'})"


def _plan(rank: Any, size: Any, uid: Any, store: Any, endpoint: Any, path: Any, interface: Any, timeout: Any) -> _bootstrap.Plan:
    given = [name for name, value in (("uid", uid), ("store", store), ("endpoint", endpoint), ("path", path)) if value is not None]
    if len(given) > 1:
        raise InvalidArgumentError(f"init: give one of uid, store, endpoint and path, not {' and '.join(given)}")
    if (rank is None) != (size is None):
        raise InvalidArgumentError("init: rank and size go together; give both or neither")
    if rank is not None and not 0 <= rank < size:
        raise InvalidArgumentError(f"init: rank is {rank} and size is {size}; rank must lie in 0..size-1")
    wait = _DEFAULT_TIMEOUT if timeout is None else timeout
    if not given:
        return _plan_from_environment(rank, size, interface, wait)
    if rank is None:
        raise InvalidArgumentError(f"init: {given[0]} needs rank and size as well")
    if store is not None:
        return _bootstrap.through_store(store, rank, size, interface, wait)
    if uid is not None and len(uid) != _abi.UID_BYTES:
        raise InvalidArgumentError(f"init: uid has {len(uid)} bytes; shmem.unique_id() makes {_abi.UID_BYTES}")
    method = {"uid": "uid", "endpoint": "endpoint", "path": "file"}[given[0]]
    return _bootstrap.Plan(method, rank, size, uid, f"{given[0]} given")


def _plan_from_environment(rank: Any, size: Any, interface: Any, wait: float) -> _bootstrap.Plan:
    if rank is not None:
        if size == 1:
            return _bootstrap.Plan("single", 0, 1, None, "size 1")
        return _bootstrap.Plan("auto", rank, size, None, "rank and size given, the meeting place from the environment")
    if _bootstrap.started_by_torchrun():
        return _bootstrap.from_torchrun(interface, wait)
    return _bootstrap.Plan("auto", -1, -1, None, "environment")


def _options(plan: _bootstrap.Plan, heap: Any, timeout: Any, endpoint: Any, path: Any, secret: Any, transport: Any, interface: Any, label: Any) -> Options:
    options = Options()
    options.size = ctypes.sizeof(Options)
    options.me, options.n = plan.rank, plan.size
    options.heap_bytes = heap_bytes(heap)
    options.timeout_ns = 0 if timeout is None else max(_call.timeout_ns(timeout), 1) if timeout != float("inf") else _abi.FOREVER
    options.method = plan.method.encode()
    if plan.uid is not None:
        uid = (ctypes.c_uint8 * _abi.UID_BYTES).from_buffer_copy(plan.uid)
        options.uid = ctypes.addressof(uid)
        options._uid = uid
    for name, value in (("endpoint", endpoint or path), ("secret", secret), ("transport", transport), ("interface", interface), ("label", label)):
        setattr(options, name, None if value is None else os.fsencode(value))
    return options


def _device_name(device: Any) -> Optional[bytes]:
    """What the core calls a device; "npu" is torch.npu's current one when torch_npu is imported, so that both use the same."""
    name = str(device) if device is not None else os.environ.get("SHMEM_DEVICE", "")
    if name == "npu" and "torch_npu" in sys.modules:
        npu = sys.modules["torch"].npu
        if npu.is_available():
            npu.set_device(npu.current_device())
            name = f"npu:{npu.current_device()}"
    return name.encode() if name else None


def heap_bytes(heap: Any, what: str = "heap") -> int:
    """Bytes in 268435456, "256M" or "1.5g"; 0 for None (then SHMEM_SYMMETRIC_SIZE or SHMEM_DEVICE_SIZE decides)."""
    if heap is None:
        return 0
    if isinstance(heap, int) and heap > 0:
        return heap
    text = str(heap).strip().lower()
    text = text[:-2] if text.endswith("ib") else text[:-1] if text.endswith("b") else text
    unit = text[-1:] if text[-1:] in _SUFFIXES else ""
    try:
        value = float(text[: len(text) - len(unit)]) * _SUFFIXES[unit]
        if not 0 < value < 2**63:
            raise ValueError
    except ValueError:
        raise InvalidArgumentError(f"{what} is {heap!r}; give bytes > 0 or a text such as '256M' or '1.5G'") from None
    return int(value)


_worlds: "weakref.WeakSet[World]" = weakref.WeakSet()
_current: Optional[World] = None


def _forget(world: World) -> None:
    global _current
    _worlds.discard(world)
    if _current is world:
        _current = None
    _last_words.append(repr(world))
    del _last_words[:-1]


_last_words: List[str] = []


def init(
    rank: Optional[int] = None,
    size: Optional[int] = None,
    *,
    heap: Any = None,
    timeout: Optional[float] = None,
    uid: Optional[bytes] = None,
    store: Any = None,
    endpoint: Optional[str] = None,
    path: Optional[str] = None,
    secret: Optional[str] = None,
    transport: Optional[str] = None,
    interface: Optional[str] = None,
    label: Optional[str] = None,
    device: Any = None,
    device_heap: Any = None,
) -> World:
    """Comes up as one PE and makes this the current world. Collective. Blocks until every PE is there, or the timeout.

    Args:
        rank, size: this PE and how many there are; without them the environment tells (shmem-run, torchrun, MPI), or it is a world of one.
        heap: bytes of the symmetric heap, or a text such as "256M"; it costs nothing until blocks are allocated from it.
        timeout: seconds for coming up, and the default of the world's operations.
        uid: bytes that shmem.unique_id() made at PE 0; or store: a torch store; or endpoint: "host:port" of PE 0; or path: a file all can reach.
        secret: the job's secret for endpoint. transport: "auto", "shm" or "tcp". interface: the network interface or address to use.
        label: a name for messages.
        device: "npu" gives every PE a second symmetric heap on its Ascend NPU ("npu:2" names one, else torch.npu's current device; "auto": where
            every PE has one); None leaves it to SHMEM_DEVICE. device_heap: its bytes, as heap; this much memory of the device is taken at once.

    Returns: the world. Threads: any, one init at a time.
    """
    global _current
    if _current is not None and _current.alive:
        raise ShmemError(
            f"init: already initialized ({_current!r}); call shmem.finalize() first, or make another world with shmem.World(...)", operation="init"
        )
    _current = World(
        rank,
        size,
        heap=heap,
        timeout=timeout,
        uid=uid,
        store=store,
        endpoint=endpoint,
        path=path,
        secret=secret,
        transport=transport,
        interface=interface,
        label=label,
        device=device,
        device_heap=device_heap,
    )
    return _current


def current() -> World:
    """The current world, made by shmem.init; raises NotInitializedError without one. Does not block."""
    world = _current
    if world is None:
        before = f" (the last one, {_last_words[0]}, ended)" if _last_words else ""
        raise NotInitializedError(f"there is no world{before}; call shmem.init() first")
    return world


def finalize(timeout: Optional[float] = None) -> None:
    """Leaves the current world; does nothing without one. Collective over the living PEs. Blocks until they leave too, or the timeout."""
    if _current is not None:
        _current.finalize(timeout)


def is_initialized() -> bool:
    """Whether there is a current world in this process. Does not block."""
    return _current is not None and _current.alive


def my_pe(team: Optional[int] = None) -> int:
    """This PE's number in the current world. Does not block.

    Without a world of shmem.init it is the number in an instance that shmem.aclshmem_init made, and `team` is a team of such an instance.
    """
    if team is not None or _current is None:
        from . import _ascend

        if team is not None:
            return int(_ascend.bind("aclshmem_team_my_pe", "i32")(team))
        numbers = _ascend.pe_numbers()
        if numbers is not None:
            return numbers[0]
    handle = current().handle
    return _call.check(library().my_pe(handle), "my_pe")


def n_pes() -> int:
    """How many PEs the current world has. Does not block."""
    handle = current().handle
    return _call.check(library().n_pes(handle), "n_pes")


def abort(code: int = 1) -> None:
    """Ends the job of the current world on every PE. Any thread; does not block."""
    current().abort(code)


def info() -> Dict[str, Any]:
    """Library, settings and, with a current world, its transports, heap, teams and dead PEs. Does not block."""
    from . import _conflict
    from ._version import __version__

    world = _current if is_initialized() else None
    told = _info(world.handle if world is not None else 0)
    told["python"] = {"version": __version__, "library": library().path, "other_packages": _conflict.others()}
    if world is not None:
        told["python"]["bootstrap"] = world.reason
    groups = sys.modules.get(__package__ + ".interop.process_group_world")
    if groups is not None:
        told["python"]["torch_device_operations"] = groups.paths()
        told["python"]["torch_device_groups"] = groups.scratches()
    return told


def _info(handle: int) -> Dict[str, Any]:
    lib = library()
    need = ctypes.c_uint64()
    _call.check(lib.info(handle, None, 0, ctypes.byref(need)), "info")
    room = need.value + 4096
    text = ctypes.create_string_buffer(room)
    _call.check(lib.info(handle, text, room, ctypes.byref(need)), "info")
    told: Dict[str, Any] = json.loads(text.value.decode())
    return told


def heap_stats() -> Dict[str, int]:
    """Size, use and largest hole of this PE's heap in the current world, in bytes. Does not block."""
    return current().heap_stats()


@atexit.register
def _leave_at_exit() -> None:
    """A process that ends without finalize leaves its worlds alone: peers are told, nobody is waited for."""
    if loaded() is None:
        return
    for world in list(_worlds):
        if world.alive:
            world._closed = True
            library().finalize(world.handle, 0)
