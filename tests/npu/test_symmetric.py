"""Symmetric npu tensors, streams, and the process group over them, between processes: the real torch_npu over the emulator."""

import os
import re
import signal

import pytest

from conftest import HERE, ROOT

LONG = 600


def start(npu, case, folder, n, **settings):
    package = [] if os.environ.get("SHMEM_TEST_INSTALLED") == "1" else [str(ROOT / "python")]
    settings["PYTHONPATH"] = os.pathsep.join([str(HERE), *package, *filter(None, [os.environ.get("PYTHONPATH")])])
    settings.setdefault("SHMEM_KERNELS", os.environ.get("SHMEM_KERNELS", str(ROOT / "build" / "kernels")))
    return [npu.start(HERE / "symmetric.py", me, n, folder, case, devices=n, seed=me + 1, **settings) for me in range(n)]


def finish(processes, dead=()):
    """What each said; fails the test when one failed that was not to die."""
    said = []
    try:
        for me, process in enumerate(processes):
            out, err = process.communicate(timeout=LONG)
            if me in dead:
                assert process.returncode == -signal.SIGKILL
            else:
                assert process.returncode == 0 and out.endswith("ok\n"), f"PE {me}: {out}\n{err[-4000:]}"
            said.append(out)
    finally:
        for process in processes:
            process.kill()
    return said


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", ["one_sided", "memory", "streams", "collectives", "groups"])
def test_case(npu, tmp_path, case, n):
    finish(start(npu, case, tmp_path, n))


def test_without_kernels_everything_goes_through_copies(npu, tmp_path):
    """No library of kernels: one-sided access by the device's copies; what only kernels do raises."""
    finish(start(npu, "one_sided", tmp_path, 2, SHMEM_KERNELS=tmp_path / "none"))


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.long)])
def test_memory_in_use_is_not_handed_out(npu, tmp_path, n):
    finish(start(npu, "reuse", tmp_path, n, late_us=15000))


@pytest.mark.parametrize("soc", ["910_93", "950"])
@pytest.mark.long
def test_other_chips(npu, tmp_path, soc):
    finish(start(npu, "streams", tmp_path, 2, soc=soc))


def test_a_missing_wait_shows(npu, tmp_path):
    """The emulator catches what a program forgets: the same program, with the wait and without it."""
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    counts = [[int(re.search(r"stale (\d+)", out)[1]) for out in finish(start(npu, case, tmp_path / at, 2, late_us=40000))] for case, at in (("stale", "a"), ("ordered", "b"))]
    assert max(counts[0]) > 3, counts
    assert counts[1] == [0, 0], counts


@pytest.mark.parametrize("n", [3, pytest.param(4, marks=pytest.mark.long)])
def test_a_killed_process_is_named_while_streams_wait(npu, tmp_path, n):
    finish(start(npu, "killed", tmp_path, n), dead=(n - 1,))
