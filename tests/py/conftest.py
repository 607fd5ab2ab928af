"""Fixtures of the Python tests. Transport: SHMEM_TRANSPORT (shm or tcp). Sizes: 1, 2 and 3, and 5 or 8 in turn."""

from __future__ import annotations

import os
import signal
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
if HERE not in sys.path:
    sys.path.insert(0, HERE)
if os.environ.get("SHMEM_TEST_INSTALLED") != "1":
    sys.path.insert(0, os.path.join(ROOT, "python"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a shell's background job; what the tests start would inherit it, and Ctrl-C is tested
    signal.signal(signal.SIGINT, signal.default_int_handler)

import left_out  # noqa: E402, I001
from pool import pools  # noqa: E402


def seed() -> int:
    """The number that picks samples; printed, so that a failure can be run again with SHMEM_TEST_SEED."""
    chosen = os.environ.get("SHMEM_TEST_SEED")
    if chosen is None:
        import time

        chosen = os.environ["SHMEM_TEST_SEED"] = str(int(time.time()) // 3600)
    return int(chosen)


def pytest_report_header(config: pytest.Config) -> str:
    """Says what decides the samples."""
    return f"shmem: SHMEM_TEST_SEED={seed()} SHMEM_TRANSPORT={os.environ.get('SHMEM_TRANSPORT', 'shm')}"


ON_DEVICE = os.environ.get("SHMEM_TEST_DEVICE", "cpu") != "cpu"
_left_out: list = []


def pytest_collection_modifyitems(config, items):
    """On a device, what left_out.py names is not counted as tested."""
    if ON_DEVICE:
        if left_out.stale():
            raise pytest.UsageError(f"left_out.py names what does not exist: {left_out.stale()}")
        _left_out.extend(item for item in items if left_out.reason(item.nodeid))
        items[:] = [item for item in items if not left_out.reason(item.nodeid)]
        config.hook.pytest_deselected(items=_left_out)
        one_in = int(os.environ.get("SHMEM_TEST_SAMPLE", "1"))
        rest = [item for item in items if not left_out.sampled(item.nodeid, one_in, seed() // 24)]
        items[:] = [item for item in items if item not in rest]
        config.hook.pytest_deselected(items=rest)


def pytest_terminal_summary(terminalreporter):
    """Tells what was left out, and why."""
    if _left_out:
        terminalreporter.section("left out on a device", sep="-")
        for line in left_out.table(_left_out):
            terminalreporter.write_line(line)


def sizes() -> list:
    """The PE counts of this session: SHMEM_TEST_SIZES, else 1, 2, 3 and one of 5 and 8."""
    said = os.environ.get("SHMEM_TEST_SIZES")
    return [int(word) for word in said.split(",")] if said else [1, 2, 3, 5 if seed() % 2 else 8]


@pytest.fixture(params=sizes(), ids=lambda n: f"{n}pe")
def pool(request):
    """A pool of each size."""
    return pools.get(request.param)


@pytest.fixture
def pair():
    """A pool of two."""
    return pools.get(2)


@pytest.fixture
def trio():
    """A pool of three."""
    return pools.get(3)


def pytest_sessionfinish(session, exitstatus):
    """Ends every PE process."""
    pools.close()
