"""Tests over the ACL emulator: they build it once, and run what they test in fresh processes over it."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "acl_emulator"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(ROOT / "tests" / "py"))


def pytest_configure(config):
    config.addinivalue_line("markers", "torch_npu: needs torch_npu, and is skipped without it")
    config.addinivalue_line("markers", "long: left out of the short form (./build.sh test npu), run by --long")


@pytest.fixture(scope="session")
def libraries():
    """The folder with the emulator's libraries, built when a source is newer. Blocks for the build."""
    out = pathlib.Path(os.environ.get("ACLEMU_BUILD", ROOT / "build" / "acl_emulator"))
    out.mkdir(parents=True, exist_ok=True)
    lock = ["flock", str(out / "lock")] if subprocess.run(["which", "flock"], capture_output=True).returncode == 0 else []
    done = subprocess.run([*lock, str(SOURCE / "build.sh"), str(out)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


class Runner:
    """Runs Python programs over the emulator. Settings are ACLEMU_* names in lower case, or whole names."""

    def __init__(self, libraries):
        self.libraries = libraries

    def environment(self, release="", **settings):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("ACLEMU_", "ASCEND_"))}
        keep["LD_LIBRARY_PATH"] = str(self.libraries / release)
        keep["PYTHONPATH"] = str(HERE)
        for name, value in settings.items():
            keep[name if name.isupper() else "ACLEMU_" + name.upper()] = str(value)
        return keep

    def start(self, *arguments, **settings):
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env=self.environment(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, timeout=600, **settings):
        """Runs a program to its end and returns what it printed; fails the test when it fails."""
        process = self.start(*arguments, **settings)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"still running after {timeout} s\n{out}\n{err[-4000:]}")
        assert process.returncode == 0, f"exit {process.returncode}\n{out}\n{err[-4000:]}"
        return out


@pytest.fixture
def emulator(libraries):
    return Runner(libraries)


@pytest.fixture
def npu(libraries):
    """As emulator, for programs that import torch_npu; skips where that is not installed."""
    found = subprocess.run(
        [sys.executable, "-c", "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch_npu') and u.find_spec('torch')))"]
    )
    if found.returncode:
        pytest.skip("torch_npu is not installed here")
    return Runner(libraries)
