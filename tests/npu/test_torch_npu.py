"""The public torch_npu wheel over the emulator: devices, streams, memory, operators, training."""

import re
import signal

import pytest
from ports import free_port

from conftest import HERE
from test_rules import CHIPS

PROGRAM = HERE / "programs.py"
LONG = 600  # seconds; importing torch takes most of it on a busy machine


@pytest.mark.parametrize(
    "name",
    [
        *"devices streams_and_events raw_pointers sharing".split(),
        *(pytest.param(name, marks=pytest.mark.long) for name in "errors_reach_python random_numbers printing digits".split()),
    ],
)
def test_program(npu, name):
    assert npu.run(PROGRAM, name, timeout=LONG, devices=4, memory="1G").endswith("ok\n")


def some(*short):
    """Every chip; all but the named ones only in the long form."""
    return [soc if soc in short else pytest.param(soc, marks=pytest.mark.long) for soc in CHIPS]


@pytest.mark.parametrize("soc", some("910B1"))
@pytest.mark.parametrize("queue", [1, pytest.param(0, marks=pytest.mark.long)])
def test_training_matches_the_cpu(npu, soc, queue):
    npu.run(PROGRAM, "training", timeout=LONG, soc=soc, TASK_QUEUE_ENABLE=queue)


@pytest.mark.parametrize("soc", some("950"))
def test_operators_match_the_cpu(npu, soc):
    out = npu.run(HERE / "operators.py", CHIPS.index(soc), timeout=LONG, soc=soc)
    right, count = map(int, re.search(r"(\d+) of (\d+) right", out).groups())
    assert right == count > 270, out


@pytest.mark.parametrize("expandable", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_caching_allocator(npu, expandable):
    settings = {"PYTORCH_NPU_ALLOC_CONF": f"expandable_segments:{expandable}"}
    npu.run(PROGRAM, "allocator", timeout=LONG, memory="512M", **settings)


def test_a_missing_wait_shows(npu):
    def stale(how):
        return int(re.search(r"stale (\d+)", npu.run(PROGRAM, "missing_wait_shows", how, timeout=LONG, late_us=150000))[1])

    assert stale("forget") > 10
    assert stale("wait") == 0


def test_host_code_faults_on_npu_tensors(npu):
    process = npu.start(PROGRAM, "device_memory_is_out_of_reach")
    out, _ = process.communicate(timeout=LONG)
    assert "touching" in out and process.returncode == -signal.SIGSEGV


def test_a_missing_operator_is_named(npu):
    out = npu.run(PROGRAM, "missing_operator_is_named", timeout=LONG)
    assert re.search(r"\bAcos\b.*tests/acl_emulator/operators", out), out


@pytest.mark.parametrize("size", [2])
def test_data_parallel_training_matches_one_cpu_process(npu, size):
    port = free_port()
    ranks = [npu.start(HERE / "distributed.py", rank, size, port, devices=size) for rank in range(size)]
    try:
        for process in ranks:
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.endswith("ok\n"), err[-3000:]
    finally:
        for process in ranks:
            process.kill()
