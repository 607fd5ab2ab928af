"""torch_npu's symmetric memory (NPUSHMEM) over our libshmem.so: two processes, the real wheel, our library."""

import os
import pathlib
import sys

import pytest
from ports import free_port

from conftest import HERE, ROOT

LONG = 600


def library():
    """The libshmem.so under test: SHMEM_LIBRARY, else that of the installed package, else of the tree."""
    chosen = os.environ.get("SHMEM_LIBRARY")
    if chosen:
        return pathlib.Path(chosen)
    import subprocess

    env = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT / "python")}
    said = subprocess.run([sys.executable, "-c", "from shmem import _lib; print(_lib.library_path())"], capture_output=True, text=True, env=env, check=True)
    return pathlib.Path(said.stdout.split()[-1])


def run(npu, case, tmp_path, size=2, **settings):
    port = free_port()
    lib = library()
    package = [] if os.environ.get("SHMEM_TEST_INSTALLED") == "1" else [str(ROOT / "python")]
    settings.update(
        LD_LIBRARY_PATH=f"{npu.libraries}:{lib.parent}",
        PYTHONPATH=os.pathsep.join([str(HERE), *package, *filter(None, [os.environ.get("PYTHONPATH")])]),
        T_LIBRARY=lib,
        T_MEET=tmp_path / "meet",
        SHMEM_KERNELS=os.environ.get("SHMEM_KERNELS", str(ROOT / "build" / "kernels")),
        NPU_SHMEM_SYMMETRIC_SIZE="64M",
    )
    ranks = [npu.start(HERE / "npushmem.py", rank, size, port, case, devices=size, **settings) for rank in range(size)]
    try:
        for process in ranks:
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.endswith("ok\n"), f"{out}\n{err[-4000:]}"
            assert "PLEASE" not in err and "Traceback" not in err, err[-4000:]
    finally:
        for process in ranks:
            process.kill()


@pytest.mark.parametrize("case", ["buffers", "transfers", "beside"])
def test_npushmem(npu, tmp_path, case):
    run(npu, case, tmp_path)
