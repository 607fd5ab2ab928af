"""PE processes that live on between tests, so that torch is imported once per process and not once per test.

    from pool import pools

    def body(ctx, x):                 # a module-level function of a test file; runs in every PE process
        assert shmem.my_pe() == ctx.me
        return ctx.me * x

    def test_it():
        assert pools.get(3).run(body, 5) == [0, 5, 10]

`run` gives what each PE returned, in order, or raises PoolError with the traceback of every PE that failed. A world is up
during `run` unless world=False. A run that exceeds its timeout has the stacks of all its processes dumped and the
processes killed; the next run gets new ones.
"""

from __future__ import annotations

import atexit
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")


class Outcome(NamedTuple):
    """How one PE ended a run: a value, or the name and text of an exception with its traceback."""

    ok: bool
    value: Any
    kind: str = ""
    text: str = ""


class PoolError(AssertionError):
    """At least one PE failed; the text has every traceback."""


class Worker:
    """One PE process and the connection to it."""

    def __init__(self, me: int, n: int, transport: str, folder: str, env: Dict[str, str]) -> None:
        """Starts the process; it imports nothing heavy until asked."""
        near, far = socket.socketpair()
        self.me = me
        self.log = os.path.join(folder, f"pe{me}.log")
        with open(self.log, "ab") as log:
            command = [sys.executable, os.path.join(HERE, "pool_worker.py"), str(far.fileno()), str(me), str(n), transport]
            self.process = subprocess.Popen(command, pass_fds=[far.fileno()], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        far.close()
        self.connection = Connection(near.detach())

    def dump(self) -> None:
        """Asks for the Python stacks, into its log."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Ends the process for sure."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.connection.close()

    def said(self, limit: int = 6000) -> str:
        """The end of its output."""
        with open(self.log, "rb") as log:
            return log.read()[-limit:].decode("utf-8", "replace")


class Pool:
    """n PE processes over one transport."""

    def __init__(self, n: int, transport: str, extra_env: Optional[Dict[str, str]] = None) -> None:
        """Starts nothing yet; use pools.get."""
        self.n = n
        self.transport = transport
        self.folder = tempfile.mkdtemp(prefix=f"shmem-pool-{n}-{transport}-")
        self.workers: List[Worker] = []
        self.up = False
        self.runs = 0
        self._env = dict(os.environ)
        for name in [k for k in self._env if k.startswith("SHMEM_") and k not in ("SHMEM_LIBRARY", "SHMEM_KERNELS", "SHMEM_TEST_DEVICE", "SHMEM_TEST_STAGED")]:
            del self._env[name]
        installed = os.environ.get("SHMEM_TEST_INSTALLED") == "1"
        path = [HERE] + ([] if installed else [PACKAGE]) + self._env.get("PYTHONPATH", "").split(os.pathsep)
        self._env["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
        self._env["SHMEM_TRANSPORT"] = transport
        self._env.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": self._env.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")})
        if self._env.get("SHMEM_TEST_DEVICE", "cpu") != "cpu" and os.environ.get("SHMEM_TEST_STAGED") != "1":
            self._env.update({"SHMEM_DEVICE": "npu", "SHMEM_DEVICE_SIZE": "64M"})  # for worlds that a process group makes
        elif os.environ.get("SHMEM_TEST_STAGED") == "1":
            self._env["SHMEM_DEVICE"] = "none"
        self._env.update(extra_env or {})

    def run(self, function: Callable[..., Any], *args: Any, world: bool = True, timeout: float = 300, heap: str = "256M") -> List[Any]:
        """Runs function(ctx, *args) in every PE and gives the values; raises PoolError when any failed."""
        outcomes = self.outcomes(function, *args, world=world, timeout=timeout, heap=heap)
        bad = [(pe, o) for pe, o in enumerate(outcomes) if not o.ok]
        if bad:
            raise PoolError("\n".join(f"--- PE {pe} of {self.n} ({self.transport}): {o.kind}\n{o.text}" for pe, o in bad))
        return [o.value for o in outcomes]

    def outcomes(self, function: Callable[..., Any], *args: Any, world: bool = True, timeout: float = 300, heap: str = "256M") -> List[Outcome]:
        """The same, but failures are given back."""
        self._prepare(world, heap)
        self.runs += 1
        scratch = os.path.join(self.folder, f"run{self.runs}")
        os.makedirs(scratch)
        order = ("run", function.__module__, sys.modules[function.__module__].__file__, function.__qualname__, args, scratch)
        outcomes = self._ask(order, timeout)
        if not all(o.ok for o in outcomes):
            self._renew()
        shutil.rmtree(scratch, ignore_errors=True)
        return outcomes

    def close(self) -> None:
        """Ends the processes: politely, then surely."""
        for worker in self.workers:
            try:
                worker.connection.send_bytes(pickle.dumps(("exit",)))
            except OSError:
                pass
        deadline = time.monotonic() + 3
        while any(w.process.poll() is None for w in self.workers) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._drop_workers()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _drop_workers(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.workers = []
        self.up = False

    def _prepare(self, world: bool, heap: str) -> None:
        if any(w.process.poll() is not None for w in self.workers):
            self._drop_workers()
        if not self.workers:
            self.workers = [Worker(me, self.n, self.transport, self.folder, self._env) for me in range(self.n)]
        if world and not self.up:
            self._up(heap)
        elif not world and self.up:
            self._must(("finalize", 60.0), 300)
            self.up = False

    def _up(self, heap: str) -> None:
        uid = self._ask_one(self.workers[0], ("uid",), 300)
        if not uid.ok:
            raise PoolError(f"unique_id failed: {uid.text}\n{self.workers[0].said()}")
        self._must(("init", uid.value, heap), 300)  # with a device it imports torch first
        self.up = True

    def _must(self, order: Tuple[Any, ...], timeout: float) -> None:
        bad = [o for o in self._ask(order, timeout) if not o.ok]
        if bad:
            self._drop_workers()
            raise PoolError(f"{order[0]} failed in the pool of {self.n} ({self.transport}):\n{bad[0].text}")

    def _renew(self) -> None:
        """After a failure nothing of the world is trusted; new processes are the surest."""
        self._drop_workers()

    def _ask_one(self, worker: Worker, order: Tuple[Any, ...], timeout: float) -> Outcome:
        worker.connection.send_bytes(pickle.dumps(order))
        if not worker.connection.poll(timeout):
            return Outcome(False, None, "Watchdog", "no answer")
        return self._read(worker)

    def _read(self, worker: Worker) -> Outcome:
        try:
            return Outcome(*pickle.loads(worker.connection.recv_bytes()))
        except (EOFError, OSError):
            worker.process.wait(timeout=60)
            return Outcome(False, None, "Died", f"exit status {worker.process.returncode}\n{worker.said()}")

    def _ask(self, order: Tuple[Any, ...], timeout: float) -> List[Outcome]:
        data = pickle.dumps(order)
        waiting = {}
        answers: Dict[int, Outcome] = {}
        for worker in self.workers:
            try:
                worker.connection.send_bytes(data)
                waiting[worker.connection] = worker
            except OSError:
                answers[worker.me] = self._read(worker)
        deadline = time.monotonic() + timeout
        while waiting:
            ready = wait(list(waiting), timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for connection in ready:
                worker = waiting.pop(connection)  # type: ignore[call-overload]
                answers[worker.me] = self._read(worker)
            if any(not answer.ok for answer in answers.values()):
                deadline = min(deadline, time.monotonic() + 15)  # the others rarely get far without it
        if waiting:
            self._overdue(list(waiting.values()), answers, timeout)
        return [answers[worker.me] for worker in self.workers]

    def _overdue(self, late: List[Worker], answers: Dict[int, Outcome], timeout: float) -> None:
        for worker in late:
            worker.dump()
        time.sleep(0.5)
        for worker in late:
            answers[worker.me] = Outcome(False, None, "Watchdog", f"not done after {timeout:g} s; stacks and output:\n{worker.said()}")
            worker.kill()


class Pools:
    """The pools of this test session, one per size and transport, made when first asked for."""

    def __init__(self) -> None:
        """Starts nothing."""
        self._made: Dict[Tuple[int, str], Pool] = {}

    def get(self, n: int, transport: Optional[str] = None) -> Pool:
        """The pool of n PEs; transport is SHMEM_TRANSPORT of the session, "shm" without one."""
        kind = transport or os.environ.get("SHMEM_TRANSPORT") or "shm"
        key = (n, kind)
        if key not in self._made:
            others = [k for k in self._made if k[0] > 3 or k[1] != kind]
            for other in others:  # a few processes at a time: the machine is small
                self._made.pop(other).close()
            self._made[key] = Pool(n, kind)
        return self._made[key]

    def close(self) -> None:
        """Ends every process."""
        while self._made:
            self._made.popitem()[1].close()


pools = Pools()
atexit.register(pools.close)
