"""Two and three processes here: importing torch in more of them takes longer than the tests. SHMEM_TEST_SIZES chooses others."""

from __future__ import annotations

import os

import pytest

from pool import pools


def sizes():
    """The process counts of this session."""
    said = os.environ.get("SHMEM_TEST_SIZES")
    return [int(word) for word in said.split(",")] if said else [2, 3]


@pytest.fixture(params=sizes(), ids=lambda n: f"{n}pe")
def pool(request):
    """A pool of each size."""
    return pools.get(request.param)


def pytest_configure(config):
    """The tests that also run over tcp."""
    config.addinivalue_line("markers", "core: also runs over tcp, with no peer memory mapped")
