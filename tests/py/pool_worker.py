"""The program of one PE process of a pool (see pool.py)."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib.util
import os
import pickle
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any, Optional


class Context:
    """What a body gets: its PE number, the size, the transport, and a folder that the PEs of this run share."""

    def __init__(self, me: int, n: int, transport: str, scratch: str) -> None:
        """Made anew for each run."""
        self.me, self.n, self.transport, self.scratch = me, n, transport, scratch

    @property
    def mapped(self) -> bool:
        """Whether peers' memory is expected to be mapped."""
        return self.transport != "tcp" or self.n == 1


class Runner:
    """Does what the parent asks, one order at a time."""

    def __init__(self, me: int, n: int, transport: str) -> None:
        """Imports nothing yet."""
        self.me, self.n, self.transport = me, n, transport
        self.modules: dict = {}
        self.device = os.environ.get("SHMEM_TEST_DEVICE", "cpu")

    def do(self, order: tuple) -> Any:
        """Runs one order and gives its value."""
        return getattr(self, "do_" + order[0])(*order[1:])

    def do_uid(self) -> bytes:
        """Makes the unique id of the next world."""
        import shmem

        return shmem.unique_id("127.0.0.1")

    def do_init(self, uid: bytes, heap: str) -> None:
        """Comes up."""
        import shmem

        more = {}
        if self.device != "cpu":
            self.place(self.device)
            more = {"device": self.device, "device_heap": heap}
        shmem.init(self.me, self.n, uid=uid, heap=heap, timeout=120, **more)

    def do_finalize(self, timeout: float) -> None:
        """Leaves."""
        import gc

        import shmem

        gc.collect()
        shmem.finalize(timeout)

    def do_run(self, name: str, path: Optional[str], qualname: str, args: tuple, scratch: str) -> Any:
        """Calls a test body."""
        function: Any = self.module(name, path)
        made_on, host_file = getattr(function, "MADE_ON", self.device), getattr(function, "ON_HOST", False)
        for part in qualname.split("."):
            function = getattr(function, part)
        context = Context(self.me, self.n, self.transport, scratch)
        if self.device == "cpu":
            return function(context, *args)
        import data

        on_host = host_file or getattr(function, "ON_HOST", False)
        self.place("cpu" if on_host else made_on)
        with data.on_host() if on_host else contextlib.nullcontext():
            return function(context, *args)

    def place(self, device: str) -> None:
        """With SHMEM_TEST_DEVICE=npu, tensors are made on this PE's device unless MADE_ON or ON_HOST of the file, or data.host_memory, says otherwise."""
        if self.device != "cpu":
            import torch
            import torch_npu

            import shmem

            torch_npu.npu.set_device(self.me)
            torch.set_default_device(device)
            for name in ("empty", "zeros", "ones", "full"):
                made = getattr(shmem, name)
                setattr(shmem, name, functools.partial(made.func if isinstance(made, functools.partial) else made, device=device))

    def module(self, name: str, path: Optional[str]) -> Any:
        """Imports a test file once, under the name that it has in the parent."""
        if name not in self.modules:
            if name in sys.modules or path is None:
                self.modules[name] = importlib.import_module(name)
            else:
                folder = os.path.dirname(path)
                if folder not in sys.path:
                    sys.path.append(folder)
                spec = importlib.util.spec_from_file_location(name, path)
                assert spec is not None and spec.loader is not None
                made = importlib.util.module_from_spec(spec)
                sys.modules[name] = made
                spec.loader.exec_module(made)
                self.modules[name] = made
        return self.modules[name]


def answer(runner: Runner, order: tuple) -> bytes:
    """Runs an order and packs what came of it."""
    try:
        value = runner.do(order)
    except BaseException as problem:  # a KeyboardInterrupt of a body is its failure, not ours
        return pickle.dumps((False, None, type(problem).__name__, traceback.format_exc()))
    try:
        return pickle.dumps((True, value, "", ""))
    except Exception as problem:
        return pickle.dumps((False, None, type(problem).__name__, f"the value {value!r:.200} cannot be sent: {problem}"))


def main() -> None:
    """Serves orders until told to exit or the parent is gone."""
    fd, me, n, transport = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    connection = Connection(fd)
    runner = Runner(me, n, transport)
    while True:
        try:
            order = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)
        if order[0] == "exit":
            break
        sys.stdout.flush()
        connection.send_bytes(answer(runner, order))


if __name__ == "__main__":
    main()
