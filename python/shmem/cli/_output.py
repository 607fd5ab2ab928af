"""Output of the processes of shmem-run: passed on in whole lines, without waiting for a reader that nobody could leave."""

from __future__ import annotations

import fcntl
import os
import select
import selectors
import termios
from typing import IO, Callable, Dict, Tuple

STDOUT, STDERR = 1, 2

_READ = 1 << 16
_LONGEST_LINE = 1 << 20
_LAST_WORDS = 1 << 20  # no pipe holds more; a process that outlives its parent could write on for ever


class Output:
    """The pipes of all processes, and what of their lines has not been passed on yet."""

    def __init__(self, leave: Callable[[], bool]) -> None:
        """`leave` is asked again and again while a reader of ours takes nothing; true throws the rest away."""
        self._leave = leave
        self._pipes = selectors.DefaultSelector()
        self._room: Dict[int, select.poll] = {}

    def add(self, pipe: IO[bytes], sink: int, head: bytes) -> None:
        """Passes what comes out of `pipe` on to the descriptor `sink`, each line behind `head`."""
        os.set_blocking(pipe.fileno(), False)
        self._pipes.register(pipe, selectors.EVENT_READ, (_Lines(head), sink))

    def idle(self) -> bool:
        """Whether all pipes have ended."""
        return not self._pipes.get_map()

    def copy(self, pause: float) -> None:
        """Passes on what is there, and waits at most `pause` seconds for some to come."""
        for key, _ in self._pipes.select(pause):
            self._read(key)

    def finish(self) -> None:
        """Passes on what is left when the processes have ended, lines without an end too. Others may hold the pipes open."""
        for key in list(self._pipes.get_map().values()):
            left = _LAST_WORDS
            while left > 0:
                got = self._read(key)
                left -= got or left
            lines, sink = key.data
            self.write(sink, lines.take(b"", last=True))

    def _read(self, key: selectors.SelectorKey) -> int:
        lines, sink = key.data
        try:
            data = os.read(key.fd, _READ)
        except BlockingIOError:
            return 0  # a false alarm
        if not data and key.fd in self._pipes.get_map():
            self._pipes.unregister(key.fileobj)
        self.write(sink, lines.take(data, last=not data))
        return len(data)

    def write(self, sink: int, data: bytes) -> None:
        """Writes bytes in whole lines, only when there is room, so that signals and failures are seen while a reader sleeps."""
        at = 0
        while at < len(data):
            if not self._has_room(sink):
                if self._leave():
                    return
                continue
            most = at + _takes_at_once(sink)
            end = data.rfind(b"\n", at, most) + 1
            try:
                at += os.write(sink, data[at : end or most])
            except BlockingIOError:  # somebody made it so, and was quicker
                continue

    def _has_room(self, sink: int) -> bool:
        room = self._room.get(sink)
        if room is None:
            room = self._room[sink] = select.poll()
            room.register(sink, select.POLLOUT)
        return bool(room.poll(50))


_GETPIPE_SZ = 1032  # fcntl.F_GETPIPE_SZ, which Python has from 3.10 on


def _takes_at_once(sink: int) -> int:
    """How many bytes go into a descriptor with room without waiting: all that a pipe holds when it is empty, else what POSIX promises."""
    try:
        waiting = fcntl.ioctl(sink, termios.FIONREAD, bytes(4))
        return select.PIPE_BUF if any(waiting) else max(fcntl.fcntl(sink, _GETPIPE_SZ), select.PIPE_BUF)
    except OSError:
        return select.PIPE_BUF


class _Lines:
    """Cuts what one process writes into whole lines, behind its rank if asked. A very long line comes in pieces."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._rest = b""

    def take(self, data: bytes, last: bool) -> bytes:
        """Gives the lines that are whole now; `last` gives a line without an end too."""
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if last or len(data) - end > _LONGEST_LINE:
            end = len(data)
        whole, self._rest = data[:end], data[end:]
        if self._head and whole:
            whole = b"".join(self._head + line + b"\n" for line in (whole[:-1] if whole.endswith(b"\n") else whole).split(b"\n"))
        return whole


def fill_standard_descriptors() -> Tuple[int, ...]:
    """Opens nothing at those of 0, 1, 2 that are closed, so that no socket of ours gets their numbers; gives which."""
    opened = []
    for number in (0, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            opened.append(os.open(os.devnull, os.O_RDWR))  # the lowest free number is this one
            os.set_inheritable(opened[-1], True)
    return tuple(opened)
