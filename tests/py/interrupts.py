"""A Ctrl-C that reaches a call of shmem while it waits. One that comes before the call has begun, as on a busy machine, says nothing."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any


def begun(frame: Any) -> bool:
    """Whether what a signal handler interrupts has begun: a frame above it holds the handle of a request."""
    while frame is not None:
        request = frame.f_locals.get("request")
        if getattr(request, "value", request):
            return True
        frame = frame.f_back
    return False


def control_c_once_begun(seconds: float) -> None:
    """Sends this process SIGINT after the seconds, and again until it meets a call that has begun."""
    usual: Any = signal.getsignal(signal.SIGINT)

    def come(number: int, frame: Any) -> None:
        if begun(frame):
            signal.signal(signal.SIGINT, usual)
            usual(number, frame)
        else:
            send(0.05)

    def send(after: float) -> None:
        threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()

    signal.signal(signal.SIGINT, come)
    send(seconds)
