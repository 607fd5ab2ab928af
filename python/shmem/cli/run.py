"""shmem-run: starts N processes of one program on this host as the PEs of one job.

    shmem-run -n 4 python train.py --epochs 3
    shmem-run -n 2 ./a.out

It binds the rendezvous socket itself and hands it to PE 0, so no port is ever guessed. Each job has a secret of its own.
torch's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) are set as well, for init_process_group.
Into a pipe or a file, and with --prefix, output is passed on in whole lines, so that lines of two processes never mix. A
terminal is left to the processes themselves: progress bars work.
When a process fails, the others get SIGTERM and, after a grace period, SIGKILL; the exit status is that of the first failure.
"""

from __future__ import annotations

import argparse
import os
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Dict, List, Optional

from ._output import STDERR, STDOUT, Output, fill_standard_descriptors

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="shmem-run", description="Starts N processes of a program on this host as the PEs of one job.")
    made.add_argument("-n", "--np", type=int, required=True, metavar="N", help="how many processes")
    made.add_argument("--heap", metavar="BYTES", help="symmetric heap of each PE, e.g. 512M (SHMEM_SYMMETRIC_SIZE)")
    made.add_argument("--transport", choices=("auto", "shm", "tcp"), help="SHMEM_TRANSPORT for the job")
    made.add_argument("--timeout", metavar="SECONDS", help="SHMEM_TIMEOUT for the job")
    made.add_argument("-p", "--prefix", action="store_true", help="write each line of output behind its rank")
    made.add_argument("--grace", type=float, default=5.0, metavar="SECONDS", help="between SIGTERM and SIGKILL when a process failed (default 5)")
    made.add_argument("-x", "--env", action="append", default=[], metavar="NAME=VALUE", help="a variable for the job; repeatable")
    made.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM ...", help="the program and its arguments")
    return made


_OF_ANOTHER_JOB = ("SHMEM_RANK", "SHMEM_SIZE", "SHMEM_UNIQUE_ID", "SHMEM_RENDEZVOUS", "SHMEM_SECRET", "SHMEM_LISTEN_FD", "GROUP_RANK")


def _reserved_port() -> socket.socket:
    """A port for torch's store at PE 0, bound and never listening: with SO_REUSEADDR the store may bind it too, and nobody else gets it."""
    try:
        held = socket.socket(socket.AF_INET6)
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("::", 0))
    except OSError:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("0.0.0.0", 0))
    return held


class Job:
    """The processes of one run.

    running -> (all ended | one failed -> stopping -> all ended)
    """

    def __init__(self, options: argparse.Namespace, command: List[str]) -> None:
        """Starts nothing yet."""
        self.options = options
        self.command = command
        self.processes: "List[subprocess.Popen[bytes]]" = []
        self.failed: Optional[int] = None  # rank of the first that failed
        self.kill_at: Optional[float] = None
        self.signaled: Optional[int] = None
        self.doing = f"start {command[0]}"
        self._output = Output(leave=self._nobody_reads)

    def start(self) -> None:
        """Starts every process with its environment; PE 0 inherits the listening socket."""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(self.options.np + 16)
        shared = self._environment(listener.getsockname()[1])
        try:
            for rank in range(self.options.np):
                if self.signaled is None:
                    self._spawn(rank, shared, listener if rank == 0 else None)
        finally:
            listener.close()

    def _environment(self, port: int) -> Dict[str, str]:
        env = dict(os.environ)
        for name in list(env):
            if name.startswith("TORCHELASTIC_") or name in _OF_ANOTHER_JOB:
                del env[name]
        env.update({"SHMEM_SIZE": str(self.options.np), "SHMEM_RENDEZVOUS": f"127.0.0.1:{port}", "SHMEM_SECRET": secrets.token_hex(32)})
        chosen = {"SHMEM_SYMMETRIC_SIZE": self.options.heap, "SHMEM_TRANSPORT": self.options.transport, "SHMEM_TIMEOUT": self.options.timeout}
        env.update({name: value for name, value in chosen.items() if value is not None})
        self._torch_port = _reserved_port()
        env.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._torch_port.getsockname()[1])})
        env.update({"WORLD_SIZE": str(self.options.np), "LOCAL_WORLD_SIZE": str(self.options.np)})
        for pair in self.options.env:
            name, _, value = pair.partition("=")
            env[name] = value
        return env

    def _spawn(self, rank: int, shared: Dict[str, str], listener: Optional[socket.socket]) -> None:
        env = {**shared, "SHMEM_RANK": str(rank), "RANK": str(rank), "LOCAL_RANK": str(rank)}
        fds = []
        if listener is not None:
            fds = [listener.fileno()]
            env["SHMEM_LISTEN_FD"] = str(listener.fileno())
        out, err = (subprocess.PIPE if self._passes_on(sink) else None for sink in (STDOUT, STDERR))
        process = subprocess.Popen(self.command, env=env, pass_fds=fds, stdout=out, stderr=err, stdin=None if rank == 0 else subprocess.DEVNULL)
        self.processes.append(process)
        head = f"[{rank}] ".encode() if self.options.prefix else b""
        for pipe, sink in ((process.stdout, STDOUT), (process.stderr, STDERR)):
            if pipe is not None:
                self._output.add(pipe, sink, head)

    def _passes_on(self, sink: int) -> bool:
        """Whether output goes through us. With too few descriptors for a pipe each it does not, unless it must."""
        few = resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * self.options.np + 32
        return self.options.prefix or not (os.isatty(sink) or few)

    def run(self) -> int:
        """Starts all, watches until all have ended and gives the exit status."""
        before = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        try:
            self.start()
            self.doing = "pass on the output of the processes, which were ended"
            while self._running():
                self._copy_output(0.05)
                self._look()
            self._look()
            self._output.finish()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._kill_all(signal.SIGKILL)
        return self._status()

    def _running(self) -> bool:
        return any(process.poll() is None for process in self.processes)

    def _copy_output(self, pause: float) -> None:
        if self._output.idle():
            self._wait_any(pause)
        else:
            self._output.copy(pause)

    def _nobody_reads(self) -> bool:
        """Output cannot be passed on now: looks after the processes. Told to end, and they have, their output is given up."""
        self._look()
        return self.signaled is not None and not self._running() and self.kill_at is not None and time.monotonic() > self.kill_at

    def _wait_any(self, pause: float) -> None:
        alive = [process for process in self.processes if process.poll() is None]
        if alive:
            try:
                alive[0].wait(pause)
            except subprocess.TimeoutExpired:
                pass

    def _look(self) -> None:
        for rank, process in enumerate(self.processes):
            if process.poll() not in (None, 0) and self.failed is None:
                self.failed = rank
                if self._running():
                    self._end_soon()
                    self._say(f"PE {rank} {_how(process.returncode)}; ending the others")
                elif process.returncode < 0:
                    self._say(f"PE {rank} {_how(process.returncode)}")
        if self.kill_at is not None and time.monotonic() > self.kill_at:
            self._kill_all(signal.SIGKILL)

    def _say(self, text: str) -> None:
        try:
            self._output.write(STDERR, f"shmem-run: {text}\n".encode())
        except OSError:
            pass  # nobody is there to be told

    def _end_soon(self) -> None:
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.options.grace
            self._kill_all(signal.SIGTERM)

    def _kill_all(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def _forward(self, number: int, frame: object) -> None:
        self.signaled = number
        self._kill_all(number)
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.options.grace

    def _status(self) -> int:
        if self.failed is not None:
            code = self.processes[self.failed].returncode
            return 128 - code if code < 0 else code
        ended_by_it = len(self.processes) < self.options.np or any(process.returncode for process in self.processes)
        return 128 + self.signaled if self.signaled is not None and ended_by_it else 0


def _how(code: int) -> str:
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _no_command(word: str) -> str:
    """What to say of a first word that is no command, with what was probably meant."""
    said = f"{word!r} is no command that can be run"
    if not os.path.isfile(word):
        return said
    if word.endswith(".py"):
        return f"{said}; write: python {word}"
    return f"{said}; write: ./{word}" if os.access(word, os.X_OK) else f"{said}: it is a file without permission to execute (chmod +x makes a program of it)"


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command; gives its exit status."""
    fill_standard_descriptors()
    options = parser().parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser().error("no program given; for example: shmem-run -n 2 python train.py")
    if options.np < 1:
        parser().error(f"-n is {options.np}; it must be at least 1")
    if any("=" not in pair for pair in options.env):
        parser().error("-x takes NAME=VALUE")
    if shutil.which(command[0]) is None:
        parser().error(_no_command(command[0]))
    job = Job(options, command)
    try:
        return job.run()
    except BrokenPipeError:  # whoever read our output has left, as in `shmem-run ... | head`; the processes were ended
        return 128 + signal.SIGPIPE
    except OSError as problem:
        print(f"shmem-run: cannot {job.doing}: {problem}", file=sys.stderr)
        return 126


if __name__ == "__main__":
    sys.exit(main())
