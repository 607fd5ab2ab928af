"""The whole path without torch: heaps built from mapped memory, and the real kernels between processes."""

import contextlib
import os
import select
import subprocess
import time

import pytest

from conftest import HERE, ROOT
from test_rules import CHIPS

ARCH = {"910B1": "2201", "910_93": "2201", "950": "3510"}


@pytest.fixture(scope="session")
def pod(libraries, tmp_path_factory):
    program = tmp_path_factory.mktemp("pod") / "pod"
    flags = ["-std=c++17", "-Wall", "-Wextra", f"-L{libraries}", "-lascendcl", f"-Wl,-rpath,{libraries}"]
    subprocess.run([os.environ.get("CXX", "g++"), str(HERE / "pod.cpp"), *flags, "-o", str(program)], check=True)
    return program


def kernel_library(soc):
    """The CPU-model kernels, from GSHMEM_KERNELS (a folder) or build/kernels; they need clang, so may be absent."""
    folder = os.environ.get("GSHMEM_KERNELS", str(ROOT / "build" / "kernels"))
    path = os.path.join(folder, f"libgshmem_kernels_cpu_{ARCH[soc]}.so")
    if not os.path.exists(path):
        pytest.skip(f"no {path}: ./build.sh kernels makes it")
    return path


class Pod:
    """The processes of a pod and the round of lines between them."""

    def __init__(self, command, n, environment):
        self.processes = [
            subprocess.Popen([*command[:1], str(me), str(n), *command[1:]], env=environment, text=True, bufsize=1,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for me in range(n)
        ]

    def round(self, deadline):
        lines = []
        for me, process in enumerate(self.processes):
            ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
            line = process.stdout.readline() if ready else ""
            assert line, f"PE {me} said nothing: {self.last_words()}"
            lines.append(line)
        if set(lines) != {"ok\n"}:
            for process in self.processes:
                process.stdin.writelines(lines)
                process.stdin.flush()
        return lines

    def last_words(self):
        self.end()
        return [process.stderr.read()[-2000:] for process in self.processes]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()


@pytest.mark.parametrize("soc", CHIPS)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_kernels_between_processes(emulator, pod, n, soc):
    group = Pod([str(pod), kernel_library(soc)], n, emulator.environment(soc=soc, devices=max(n, 2), seed=n))
    deadline = time.monotonic() + 240
    try:
        while set(group.round(deadline)) != {"ok\n"}:
            pass
        assert [p.wait(30) for p in group.processes] == [0] * n
    finally:
        group.end()
        for process in group.processes:
            process.stderr.close()
