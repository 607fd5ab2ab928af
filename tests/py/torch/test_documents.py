"""What readers are told to run does run: the examples, and every Python and C block of the documents."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from processes import environment

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
RUN = [sys.executable, "-m", "shmem.cli.run"]
DOCUMENTS = ["README.md"] + [os.path.join("docs", name) for name in sorted(os.listdir(os.path.join(ROOT, "docs"))) if name.endswith(".md")]


def blocks(language):
    """Every fenced block of a language, each with its place as id."""
    found = []
    for name in DOCUMENTS:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = file.read()
        for block in re.finditer(rf"^```{language}\n(.*?)^```", text, re.M | re.S):
            if "import torch_npu" in block.group(1) or ", torch_npu" in block.group(1):
                continue  # tests/npu runs it
            line = text.count("\n", 0, block.start()) + 1
            found.append(pytest.param(block.group(1), id=f"{name}:{line}"))
    assert found, f"no document has a block of {language}"
    return found


def run(*command, n=2):
    done = subprocess.run([*RUN, "-n", str(n), *command], env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.core
@pytest.mark.parametrize("text", blocks("python"))
def test_python_block(text, tmp_path):
    script = tmp_path / "block.py"
    installed = os.environ.get("SHMEM_TEST_INSTALLED") == "1"  # else torch cannot find the backend by itself
    script.write_text(text if installed else "from shmem import _autoload\n_autoload.register()\n" + text)
    run(sys.executable, str(script))


def compiled(source, out):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on the PATH")
    done = subprocess.run([sys.executable, "-m", "shmem.cli.cc", "-O2", "-o", str(out), str(source), "-lm"], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(out)


@pytest.mark.parametrize("text", blocks("c"))
def test_c_block(text, tmp_path):
    source = tmp_path / "block.c"
    source.write_text(text)
    run(compiled(source, tmp_path / "block"), n=3)


@pytest.mark.parametrize("text", [block for block in blocks("cpp") if "int main(" in block.values[0]])
def test_ascend_program(text, tmp_path):
    """Compiled with the words of the document: what shmem-config prints, behind the folder of the Ascend names."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler on the PATH")
    (tmp_path / "ring.cpp").write_text(text)
    include, libs = (
        subprocess.run([sys.executable, "-m", "shmem.cli.config", word], env=environment(), capture_output=True, text=True, check=True).stdout.strip()
        for word in ("--includedir", "--libs")
    )
    command = ["c++", f"-I{include}/ascend", str(tmp_path / "ring.cpp"), *shlex.split(libs), "-o", str(tmp_path / "ring")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(run(str(tmp_path / "ring"), n=3).splitlines()) == ["PE 0 got 2", "PE 1 got 0", "PE 2 got 1"]


def example(name, *arguments, n=3):
    return run(sys.executable, os.path.join(ROOT, "examples", name), *arguments, n=n)


@pytest.mark.core
def test_heat():
    assert "largest difference 0\n" in example("heat.py", "--size", "61", "--steps", "50")


@pytest.mark.core
def test_ring_attention():
    assert "3 PEs, 111 tokens" in example("ring_attention.py", "--tokens", "37", "--heads", "2", "--width", "8")


def test_ring_attention_of_five():
    example("ring_attention.py", "--tokens", "11", "--heads", "2", "--width", "8", n=5)


@pytest.mark.core
def test_work_queue():
    assert "wrong: []" in example("work_queue.py", "--tasks", "31")


def test_pi(tmp_path):
    assert "pi is about 3.1" in run(compiled(os.path.join(ROOT, "examples", "pi.c"), tmp_path / "pi"), "300000", n=3)


def test_train_digits(tmp_path):
    command = [sys.executable, os.path.join(ROOT, "examples", "train_digits.py"), "--rounds", "1"]
    done = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shmem" in done.stdout and "gloo" in done.stdout
