"""A device in the world, over the emulated runtime and the real kernels: the C interface and the Ascend names, process per PE."""

import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import HERE, ROOT
from test_pod import kernel_library
from test_rules import CHIPS

LIBRARY = os.environ.get("SHMEM_LIBRARY", str(ROOT / "python" / "shmem" / "lib" / "libshmem.so"))
SECRET = "5a" * 32


@pytest.fixture
def pes(emulator, tmp_path):
    """Runs n PEs of a program to their ends and gives (exit status, words) of each; kills what is left."""
    if not os.path.exists(LIBRARY):
        pytest.skip(f"no {LIBRARY}: ./build.sh lib makes it")
    running = []

    def run(n, program, *arguments, soc="910B1", limit=500, device="npu:{pe}", of_one={}, **settings):
        usual = {"SHMEM_KERNELS": kernel_library(soc), "SHMEM_LIBRARY": LIBRARY, "SHMEM_SIZE": n, "SHMEM_RENDEZVOUS": f"file:{tmp_path}/meet{len(running)}",
                 "SHMEM_SECRET": SECRET, "SHMEM_DEVICE_SIZE": "32m", "SHMEM_SYMMETRIC_SIZE": "64m", "SHMEM_TIMEOUT": 120,
                 "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(HERE)])}
        common = emulator.environment(soc=soc, devices=max(n, 2), seed=n, **{**usual, **settings})
        first = len(running)
        for pe in range(n):
            own = {**common, "SHMEM_RANK": str(pe)}
            if device:
                own["SHMEM_DEVICE"] = device.format(pe=pe)
            own.update(of_one if pe == n - 1 else {})
            words = [word.format(pe=pe, n=n) for word in arguments]
            running.append(subprocess.Popen([sys.executable, str(HERE / program), *words], env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return collect(running[first:], limit)

    yield run
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def collect(processes, limit):
    until = time.monotonic() + limit
    ends = []
    for process in processes:
        try:
            words, _ = process.communicate(timeout=max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            words, _ = process.communicate()
            words += "\nstill running at the limit"
        ends.append((process.returncode, words))
    return ends


def all_good(ends):
    bad = [f"PE {pe} exited with {status}\n{words[-3000:]}" for pe, (status, words) in enumerate(ends) if status]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("soc", CHIPS)
@pytest.mark.parametrize("case", ["onesided", "streams", "collectives"])
def test_two_pes_on_every_chip(pes, case, soc):
    all_good(pes(2, "device_pe.py", case, soc=soc))


@pytest.mark.parametrize("soc, n, settings", [("910B1", 1, {}), ("910B1", 3, {}), ("910_93", 2, {"SHMEM_DEVICE_HOST": "yes"}), ("950", 2, {"ACLEMU_CANN": "9.1.0"})])
def test_host_memory_within_the_devices_reach(pes, soc, n, settings):
    all_good(pes(n, "device_pe.py", "hosted", soc=soc, SHMEM_SYMMETRIC_SIZE="8m", **settings))


def test_every_failure_while_kernels_are_told_of_host_memory_leaves_nothing(pes):
    all_good(pes(2, "device_pe.py", "copied", SHMEM_SYMMETRIC_SIZE="8m"))


def test_a_peer_whose_host_memory_cannot_be_registered_is_named(pes):
    all_good(pes(3, "device_pe.py", "partly", SHMEM_SYMMETRIC_SIZE="8m", of_one={"ACLEMU_FAIL": "aclrtHostRegisterV2:2:507899"}))


def test_peers_that_are_not_mapped_are_out_of_the_devices_reach(pes):
    all_good(pes(2, "device_pe.py", "unmapped", SHMEM_SYMMETRIC_SIZE="8m", SHMEM_TRANSPORT="tcp"))


UNHOSTED = [
    ("950", {}, "-105", "950PR", {}),  # the chip registers nothing on this release
    ("910B1", {"ACLEMU_FAIL": "aclrtHostRegisterV2:1:207001"}, "-405", "aclrtHostRegisterV2", {}),
    ("910_93", {"ACLEMU_FAIL": "aclrtHostGetDevicePointer:1:507899"}, "-404", "aclrtHostGetDevicePointer", {}),
    ("910B1", {}, "-405", "host", {"SHMEM_SYMMETRIC_SIZE": "1t"}),  # more than there is to lock
]


@pytest.mark.parametrize("soc, of_one, code, words, of_all", UNHOSTED)
def test_host_memory_out_of_the_devices_reach_is_an_error_on_all(pes, soc, of_one, code, words, of_all):
    settings = {"SHMEM_SYMMETRIC_SIZE": "8m", "EXPECTED": code, "WORDS": words, **of_all}
    all_good(pes(2, "device_pe.py", "unhosted", soc=soc, of_one=of_one, **settings))


@pytest.mark.parametrize("n, case", [(1, "onesided"), (1, "collectives"), (4, "streams"), (3, "collectives"), (2, "cycles"), (4, "aborts"), (3, "teams"), (3, "worlds"), (1, "late"), (3, "late")])
def test_other_numbers_of_pes(pes, n, case):
    all_good(pes(n, "device_pe.py", case, device="none" if case == "late" else "npu:{pe}"))


@pytest.mark.parametrize("n", [2, 4])
def test_a_killed_pe_ends_the_kernels_that_wait_for_it(pes, n):
    ends = pes(n, "device_pe.py", "killed")
    assert ends[-1][0] == -signal.SIGKILL
    for pe, (status, words) in enumerate(ends[:-1]):
        assert status == 0 and "survived" in words, f"PE {pe} exited with {status}\n{words[-4000:]}"


def test_kernels_that_wait_too_long_end_and_say_so(pes):
    all_good(pes(2, "device_pe.py", "stalled", SHMEM_TIMEOUT=6))


def test_a_world_ends_while_a_kernel_waits(pes):
    all_good(pes(2, "device_pe.py", "left"))


@pytest.mark.parametrize("n, how", [(n, how) for n in (2, 3) for how in ("own", "peers", "destroy", "both")])
def test_one_team_is_given_up_and_the_others_go_on(pes, n, how):
    all_good(pes(n, "device_pe.py", "forsaken", how))


def test_a_destroyed_team_does_its_part_to_the_end(pes):
    all_good(pes(3, "device_pe.py", "patient"))


def test_a_pe_that_left_in_order_is_nobodys_fault(pes):
    all_good(pes(2, "device_pe.py", "parted"))


def test_without_kernels_copies_and_barriers_go_on(pes, tmp_path):
    ends = pes(2, "device_pe.py", "without_kernels", SHMEM_KERNELS=str(tmp_path))
    all_good(ends)


@pytest.mark.parametrize("soc,n", [("910B1", 1), ("910B1", 3), *((soc, 2) for soc in CHIPS)])
def test_the_ascend_names_with_the_runtimes_own_streams(pes, tmp_path, soc, n):
    all_good(pes(n, "device_face.py", "{pe}", "{n}", str(tmp_path), soc=soc, device=""))  # the device is found, not asked for


def test_a_device_that_was_reset_before_finalize_ends_without_words(pes, tmp_path):
    ends = pes(2, "device_face.py", "{pe}", "{n}", str(tmp_path), "early", device="")
    all_good(ends)
    assert [words for _, words in ends] == ["", ""]


@pytest.mark.parametrize("point", ["aclrtMallocPhysical:1:207001", "aclrtReserveMemAddress:1:207018", "aclrtMallocHost:1:207001", "aclrtMemsetAsync:2:507899",
                                   "aclrtMalloc:2:207001", "aclrtCreateStream:1:207008", "aclInit:1:500000"])
def test_trouble_of_one_pe_while_the_device_comes_up_is_an_error_on_all(pes, point):
    ends = pes(3, "device_pe.py", "onesided", of_one={"ACLEMU_FAIL": point})
    for status, words in ends:
        assert status == 1, words
    assert point.split(":")[0] in ends[-1][1], ends[-1][1]
    for _, words in ends[:-1]:
        assert "(PE 2)" in words and "could not open its device" in words, words


def test_auto_does_not_pass_over_a_device_in_trouble(pes):
    ends = pes(2, "device_pe.py", "none", device="auto", of_one={"ACLEMU_FAIL": "aclrtMallocPhysical:1:207001"})
    for status, words in ends:
        assert status == 1 and "init" in words and "memory" in words, words


@pytest.mark.parametrize("missing", [{"LD_LIBRARY_PATH": ""}, {"ACLEMU_FAIL": "aclInit:1:500000"}, {"ACLEMU_FAIL": "aclrtGetDeviceCount:1:507033"}])
def test_auto_does_without_when_one_pe_has_none(pes, missing):
    all_good(pes(2, "device_pe.py", "none", device="auto", of_one=missing))


def test_a_peer_that_cannot_be_mapped_costs_what_needs_it(pes):
    all_good(pes(2, "device_pe.py", "far", of_one={"ACLEMU_FAIL": "aclrtMemImportFromShareableHandleV2:1:507899"}))


@pytest.mark.parametrize("device, words", [("npu:7", "device 7"), ("npu", "was not found")])
def test_no_device_is_an_error_on_every_pe_and_auto_is_not(pes, device, words):
    missing = {} if device == "npu:7" else {"LD_LIBRARY_PATH": ""}
    ends = pes(2, "device_pe.py", "none", device=device, **missing)
    for status, said in ends:
        assert status != 0 and words in said, said
    all_good(pes(2, "device_pe.py", "none", device="auto", LD_LIBRARY_PATH=""))
