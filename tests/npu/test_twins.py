"""Process groups of npu tensors: random operations against the CPU, and ends of all kinds, between processes over the emulator."""

import os
import signal

import pytest

from conftest import HERE, ROOT

LONG = 600


def start(npu, program, folder, n, *arguments, **settings):
    package = [] if os.environ.get("SHMEM_TEST_INSTALLED") == "1" else [str(ROOT / "python")]
    settings["PYTHONPATH"] = os.pathsep.join([str(HERE), *package])
    settings.setdefault("SHMEM_KERNELS", os.environ.get("SHMEM_KERNELS", str(ROOT / "build" / "kernels")))
    more = {"SHMEM_DEVICE": "npu", "SHMEM_DEVICE_SIZE": "64M", "SHMEM_TIMEOUT": "120", "PYTHONFAULTHANDLER": "1", **settings}
    return [npu.start(HERE / program, me, n, folder, *arguments, devices=n, seed=me + 1, **more) for me in range(n)]


def finish(processes, bad=()):
    """What each said; every process ends well but those named, which end as they should."""
    said = []
    try:
        for me, process in enumerate(processes):
            out, err = process.communicate(timeout=LONG)
            want = dict(bad).get(me, 0)
            assert process.returncode == want and (want or out.endswith("ok\n")), f"PE {me} ended with {process.returncode}: {out}\n{err[-4000:]}"
            said.append(out)
    finally:
        for process in processes:
            process.kill()
    return said


SEEDS = [(2, 1, "910B1"), *(pytest.param(*case, marks=pytest.mark.long) for case in ((3, 2, "950"), (3, 7, "910_93"), (4, 3, "910_93")))]


@pytest.mark.parametrize("n,seed,soc", SEEDS)
def test_random_operations(npu, tmp_path, n, seed, soc):
    """A scratch so small that tensors go in pieces."""
    for said in finish(start(npu, "twins.py", tmp_path, n, seed, 60 if n == 2 else 150, soc=soc, SHMEM_DEVICE_SCRATCH="320k")):
        assert "kernels" in said


ABORTED = ["pieces", "kernel", "uneven", "gather"]


def test_a_process_that_ends_by_an_exception(npu, tmp_path):
    """The others are told in seconds and do not wait for the timeout; it itself ends as Python does, without a fault."""
    finish(start(npu, "ending.py", tmp_path, 2, "crashed"), {1: 1})


def test_a_group_has_its_own_timeout(npu, tmp_path):
    finish(start(npu, "ending.py", tmp_path, 2, "late"))


@pytest.mark.parametrize("n,operation", [(2, "kernel"), *(pytest.param(n, name, marks=pytest.mark.long) for n in (2, 3) for name in ABORTED[n - 2 :])])
def test_one_group_is_aborted(npu, tmp_path, n, operation):
    finish(start(npu, "ending.py", tmp_path, n, "aborted", operation))


@pytest.mark.long
def test_groups_end_with_work_pending(npu, tmp_path):
    finish(start(npu, "ending.py", tmp_path, 2, "destroyed"))


@pytest.mark.long
@pytest.mark.parametrize("size,scratch", [("4M", "32m"), ("32M", "0"), ("32M", "1g")])
def test_little_memory(npu, tmp_path, size, scratch):
    finish(start(npu, "ending.py", tmp_path, 2, "cramped", SHMEM_DEVICE_SIZE=size, SHMEM_DEVICE_SCRATCH=scratch))


@pytest.mark.long
@pytest.mark.parametrize("operation", ["kernel", "pieces", "reduce", "gather", "uneven", "staged", "message", "barrier", "host"])
def test_a_killed_process_in_each_operation(npu, tmp_path, operation):
    finish(start(npu, "ending.py", tmp_path, 3, "killed", operation), {2: -signal.SIGKILL})
