"""Ports that tests choose for what must know its port before it listens."""

import random
import socket

LOWEST, HIGHEST = 21000, 32000
"""Above the range of tests/c/ascend/many.c, and below what Linux hands to outgoing connections by default: a port above may be one of
a connection by the time it is bound."""


def free_port(before: int = 0, after: int = 0) -> int:
    """A port nobody listens on; nor on so many `before` it and `after` it. Another process may still come first, at long odds."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(LOWEST + before, HIGHEST - after)
        if all(map(_free, range(port - before, port + after + 1))):
            return port
    raise RuntimeError(f"no free port between {LOWEST} and {HIGHEST}")


def _free(port: int) -> bool:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
