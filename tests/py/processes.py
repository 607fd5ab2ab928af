"""Whole processes for tests that end badly on purpose: scripts as PEs of one job, with a watchdog."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Dict, List, NamedTuple, Optional

import devices

from pool import PACKAGE

PRELUDE = """
import faulthandler, os, signal, sys, time
faulthandler.enable(); faulthandler.register(signal.SIGUSR1, all_threads=True)
import shmem
ME, N, FOLDER = int(os.environ["T_ME"]), int(os.environ["T_N"]), os.environ["T_FOLDER"]
def up(**more):
    more.setdefault("timeout", 120)
    return shmem.init(ME, N, path=os.path.join(FOLDER, "meet"), heap="64M", **more)
def touch(name): open(os.path.join(FOLDER, name), "w").close()
def until(name, limit=240):
    end = time.monotonic() + limit
    while not os.path.exists(os.path.join(FOLDER, name)):
        assert time.monotonic() < end, f"waited for {name}"
        time.sleep(0.005)
"""


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def environment(extra: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """A clean environment in which the package under test is found."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SHMEM_") or k in ("SHMEM_LIBRARY", "SHMEM_TRANSPORT")}
    if os.environ.get("SHMEM_TEST_INSTALLED") != "1":
        env["PYTHONPATH"] = os.pathsep.join(p for p in (PACKAGE, env.get("PYTHONPATH")) if p)
    env.update({**devices.environment(), "OMP_NUM_THREADS": "1", **(extra or {})})
    return env


class Script:
    """n processes of one script; use as a context manager so that none is left."""

    def __init__(self, n: int, body: str, folder: object, env: Optional[Dict[str, str]] = None) -> None:
        """Starts them."""
        source = PRELUDE + textwrap.dedent(body)
        self.processes: List[subprocess.Popen] = []
        for me in range(n):
            mine = environment({"LOCAL_RANK": str(me), "T_ME": str(me), "T_N": str(n), "T_FOLDER": str(folder), **(env or {})})
            command = [sys.executable, "-c", source]
            self.processes.append(subprocess.Popen(command, env=mine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL))

    def wait(self, timeout: float = 300) -> List[Ended]:
        """Waits for all; a late one has its stacks dumped and fails the test."""
        deadline = time.monotonic() + timeout
        ended = []
        for me, process in enumerate(self.processes):
            try:
                out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGUSR1)
                time.sleep(0.5)
                self.close()
                said = "\n".join(f"PE {pe}: {p.communicate()}" for pe, p in enumerate(self.processes) if pe >= me)
                said += "".join(f"\nPE {pe} ended with {e.code}:\n{e.out}\n{e.err}" for pe, e in enumerate(ended))
                raise AssertionError(f"PE {me} was not done after {timeout} s:\n{said}") from None
            ended.append(Ended(process.returncode, out, err))
        return ended

    def good(self, timeout: float = 300) -> List[Ended]:
        """Waits, and fails the test when any process failed."""
        ended = self.wait(timeout)
        for me, e in enumerate(ended):
            assert e.code == 0, f"PE {me} ended with {e.code}:\n{e.out}\n{e.err}"
        return ended

    def close(self) -> None:
        """Ends them all."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()

    def __enter__(self) -> "Script":
        """Gives itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends them all."""
        self.close()
        for process in self.processes:
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
