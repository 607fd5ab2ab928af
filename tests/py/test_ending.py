"""Threads call everything through the C ABI while another thread destroys the team, aborts or finalizes and comes up again (tests/c/ending)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from processes import environment

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = [n for n in (int(n) for n in os.environ.get("SHMEM_TEST_SIZES", "1,2,3").split(",")) if n <= 3]
ROUNDS = {"teams": 60, "worlds": 25, "aborts": 25}

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, built against the library under test."""
    out = str(tmp_path_factory.mktemp("ending") / "ending")
    source = os.path.join(ROOT, "tests", "c", "ending", "ending.c")
    flags = ["-std=gnu11", "-O1", "-g", "-rdynamic", "-Wall", "-Wextra", "-Werror"]
    code = "import sys; from shmem.cli import cc; sys.exit(cc.main(cxx=False))"
    done = subprocess.run([sys.executable, "-c", code, *flags, source, "-o", out, "-lpthread"], env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return out


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ROUNDS)
def test_every_call_returns_and_touches_nothing_that_is_gone(program, tmp_path, kind, n):
    env = environment({"MALLOC_PERTURB_": "165", "SHMEM_LOG": "error"})  # freed memory of C is garbage at once
    pes = []
    try:
        for me in range(n):
            command = [program, str(me), str(n), str(tmp_path), kind, str(ROUNDS[kind]), str(n * 1000)]
            pes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        said = [pe.communicate(timeout=300) for pe in pes]
    finally:
        for pe in pes:
            pe.kill()
    codes = [pe.returncode for pe in pes]
    assert codes == [0] * n, "\n".join(err[-3000:] for _, err in said)
