"""Runs the test sections, shows what happens, and ends with one plain line: `N passed, N failed`.

    python toolchain/testrun.py [--sections go --sections py ...] [--transport shm|tcp] [--quick] [--long]

Called by `./build.sh test`, which prepares the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from typing import Callable, Dict, List, NamedTuple, Optional

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTIONS = ("go", "c", "py", "torch", "kernels", "npu")


class Tally(NamedTuple):
    """What one section came to."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def shown(name: str) -> None:
    """Says what starts now."""
    print(f"\n==> {name}", flush=True)


def run_go(options: argparse.Namespace) -> List[Tally]:
    """Every Go test; the output of those that fail is shown."""
    go = os.environ.get("SHMEM_GO") or shutil.which("go") or "go"
    packages = ["./gocore/...", "./capi/...", "./tests/go/..."]
    packages = [p for p in packages if os.path.isdir(os.path.join(ROOT, p.strip("./").split("/...")[0]))]
    shown("Go tests")
    command = [go, "test", "-json", "-timeout", "3600s", *packages]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    began = time.monotonic()
    counts = {"pass": 0, "fail": 0, "skip": 0}
    said: Dict[str, List[str]] = {}
    for line in process.stdout:
        _take_event(line, counts, said)
    status = process.wait()
    if status != 0 and counts["fail"] == 0:
        counts["fail"] = 1  # a package that did not build
    return [Tally("go", counts["pass"], counts["fail"], counts["skip"], time.monotonic() - began)]


def _take_event(line: str, counts: Dict[str, int], said: Dict[str, List[str]]) -> None:
    try:
        event = json.loads(line)
    except ValueError:
        print(line, end="", flush=True)
        return
    key = f"{event.get('Package', '')} {event.get('Test', '')}"
    action = event.get("Action", "")
    if action in ("output", "build-output"):
        said.setdefault(key, []).append(event.get("Output", ""))
        if action == "build-output":
            print(event.get("Output", ""), end="")
        return
    if action in counts:
        output = said.pop(key, [])
        if "Test" in event:
            counts[action] += 1
        elif action != "skip":
            print(f"  {'ok  ' if action == 'pass' else 'FAIL'} {event['Package']} ({event.get('Elapsed', 0):.1f} s)", flush=True)
        if action == "fail":
            print("".join(output)[-6000:], flush=True)


def run_pytest(name: str, targets: List[str], env: Dict[str, str], extra: List[str], python: str = sys.executable) -> Tally:
    """One pytest run, counted from its JUnit file."""
    shown(f"{name}: {' '.join(os.path.relpath(t, ROOT) for t in targets)}")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        command = [python, "-m", "pytest", "--durations=5", f"--junitxml={report}", "-o", "junit_family=xunit1", *extra, *targets]
        began = time.monotonic()
        status = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}).returncode
        seconds = time.monotonic() - began
        try:
            suites = list(xml.parse(report).getroot().iter("testsuite"))
        except (OSError, xml.ParseError):
            return Tally(name, 0, 1, 0, seconds)
    total, bad, skipped = (sum(int(s.get(k, 0)) for s in suites) for k in ("tests", "failures", "skipped"))
    bad += sum(int(s.get("errors", 0)) for s in suites)
    if status not in (0, 5) and bad == 0:
        bad = 1
    return Tally(name, max(0, total - bad - skipped), bad, skipped, seconds)


def transports(options: argparse.Namespace) -> List[str]:
    """shm and tcp, or the one asked for."""
    return [options.transport] if options.transport else ["shm", "tcp"]


# Tests that do not depend on the transport run once.
_ONCE = ["test_abi.py", "test_surface.py", "test_build.py"]


def run_py(options: argparse.Namespace) -> List[Tally]:
    """The core Python tests, on each transport."""
    folder = os.path.join(ROOT, "tests", "py")
    files = sorted(f for f in os.listdir(folder) if f.startswith("test_") and f.endswith(".py"))
    tallies = [run_pytest("py once", [os.path.join(folder, f) for f in files if f in _ONCE], {}, [])]
    per = [os.path.join(folder, f) for f in files if f not in _ONCE]
    for transport in transports(options):
        env = {"SHMEM_TRANSPORT": transport}
        if options.quick:
            env["SHMEM_TEST_SIZES"] = "2,3"
        tallies.append(run_pytest(f"py {transport}", per, env, []))
        tallies.append(run_pytest(f"ascend {transport}", [os.path.join(folder, "compat")], env, []))
    return tallies


def run_torch(options: argparse.Namespace) -> List[Tally]:
    """The torch.distributed tests; the core set also over tcp."""
    folder = os.path.join(ROOT, "tests", "py", "torch")
    if not any(f.startswith("test_") for f in os.listdir(folder)) if os.path.isdir(folder) else True:
        return []
    tallies = []
    for transport in transports(options):
        extra = ["-m", "core"] if transport == "tcp" and options.transport is None else []
        tallies.append(run_pytest(f"torch {transport}", [folder], {"SHMEM_TRANSPORT": transport}, extra))
    return tallies


def run_c(options: argparse.Namespace) -> List[Tally]:
    """The library's face: exported symbols, the header in C and C++, the C floor program."""
    began = time.monotonic()
    shown("C: exported symbols and headers")
    passed = failed = 0
    for check in (symbols_are_the_map, nothing_is_unresolved, library_is_small, header_compiles_alone):
        try:
            words = check()
        except (OSError, subprocess.CalledProcessError, AssertionError) as problem:
            failed += 1
            print(f"  FAIL {check.__name__}: {problem}")
        else:
            passed += 1
            print(f"  ok   {check.__name__}: {words}")
    return [Tally("c", passed, failed, 0, time.monotonic() - began)]


def _library() -> str:
    done = subprocess.run([sys.executable, "-c", "from shmem import _lib; print(_lib.library_path())"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def symbols_are_the_map() -> str:
    """Exactly the symbols of the version script are exported."""
    said = subprocess.run(["nm", "-D", "--defined-only", _library()], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in said.splitlines() if line.split()[1] not in ("A",)}
    with open(os.path.join(ROOT, "capi", "shmem.map"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|#[^\n]*", " ", file.read(), flags=re.S)
    wanted = set(re.findall(r"([A-Za-z_]\w*)\s*;", text.split("local:")[0]))
    assert exported == wanted, f"exported and not in the map: {sorted(exported - wanted)}; in the map and not exported: {sorted(wanted - exported)}"
    return f"{len(exported)} symbols"


def nothing_is_unresolved() -> str:
    """Every symbol that the library needs has a version of glibc: one without was never declared, and fails at load on an old system."""
    said = subprocess.run(["nm", "-D", "--undefined-only", _library()], capture_output=True, text=True, check=True).stdout
    needed = [line.split() for line in said.splitlines() if line.strip()]
    loose = sorted(words[-1] for words in needed if words[0] == "U" and "@GLIBC_" not in words[-1])
    assert not loose, f"unresolved: {loose}"
    return f"{len(needed)} symbols of glibc"


SIZE_LIMIT = 8 << 20


def library_is_small() -> str:
    """Under 8 MiB without debug information. What grew it: `go tool nm -size -sort size` of a library built without -s -w."""
    size = os.path.getsize(_library())
    assert size < SIZE_LIMIT, f"{size >> 10} KiB; the limit is {SIZE_LIMIT >> 10} KiB"
    return f"{size >> 10} KiB of {SIZE_LIMIT >> 10}"


def header_compiles_alone() -> str:
    """gshmem.h is complete as C99 and as C++11, with every warning an error."""
    header = os.path.join(ROOT, "capi", "include", "gshmem.h")
    compilers = [(c, "c", "c99") for c in ("gcc", "clang") if shutil.which(c)] + [(c, "c++", "c++11") for c in ("g++", "clang++") if shutil.which(c)]
    for compiler, language, standard in compilers:
        command = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", header]
        subprocess.run(command, check=True)
    assert compilers, "no gcc or clang on the PATH"
    return ", ".join(c for c, _, _ in compilers)


def run_kernels(options: argparse.Namespace) -> List[Tally]:
    """The kernels under the CPU model, by `build.sh kernels`."""
    if not os.path.exists(os.path.join(ROOT, "kernels", "Makefile")):
        return []
    shown("kernels under the CPU model")
    began = time.monotonic()
    done = subprocess.run([os.path.join(ROOT, "build.sh"), "kernels"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    counted = [(int(cases), int(bad)) for cases, bad in re.findall(r"arch \d+: (\d+) cases, (\d+) failed", done.stdout)]
    print(done.stdout[-4000:], flush=True)
    failed = sum(bad for _, bad in counted)
    passed = sum(cases for cases, _ in counted) - failed
    if done.returncode != 0 and failed == 0:
        failed = 1
    return [Tally("kernels", passed, failed, 0, time.monotonic() - began)]


# The suites of tests/py with an emulated NPU under every world: (name, what, chip, PEs, settings). tests/py/left_out.py says what stays out.
# Chips differ in their memory handles, atomics and kernels; only tests of a pool change with the number of PEs.
_PY = os.path.join(ROOT, "tests", "py")
_TORCH = os.path.join(_PY, "torch")
_CHIPS = ["test_rma.py", "test_signals.py", "test_atomics.py", "test_memory.py", "test_collectives.py"]
_STAGED = ["test_ops.py", "test_async.py", "test_subgroups.py", "test_training.py"]


class Suite(NamedTuple):
    """One run of tests over the emulated NPU."""

    name: str
    targets: List[str]
    chip: str = "910B1"
    size: int = 2
    more: List[str] = []
    env: Dict[str, str] = {}


def _npu_suites(long: bool) -> List[Suite]:
    """The short form takes of each suite its fixed core and a sample that changes by the day (tests/py/conftest.py)."""
    core = [os.path.join(_PY, f) for f in sorted(os.listdir(_PY)) if f.startswith("test_")]
    whole = [("npu core", core), ("npu ascend", [os.path.join(_PY, "compat")]), ("npu torch", [_TORCH])]
    suites = [Suite(name, what, env={} if long else {"SHMEM_TEST_SAMPLE": "8"}) for name, what in whole]
    if not long:
        return suites
    suites.append(Suite("npu staged", [os.path.join(_TORCH, f) for f in _STAGED], env={"SHMEM_TEST_STAGED": "1"}))
    wide = ["-k", "4pe or every_function and 4 or test_program and 4"]
    suites += [Suite(name + " 4", what, size=4, more=wide) for name, what in whole]
    for chip in ("910_93", "950"):
        suites.append(Suite(f"core {chip}", [os.path.join(_PY, f) for f in _CHIPS], chip))
        suites.append(Suite(f"ascend {chip}", [os.path.join(_PY, "compat", "test_c.py")], chip))
        suites.append(Suite(f"torch {chip}", [os.path.join(_TORCH, f) for f in ("test_ops.py", "test_symmetric.py")], chip))
    return suites


def run_npu(options: argparse.Namespace) -> List[Tally]:
    """The emulated NPU, torch_npu over it, and the suites with npu tensors; build.sh says which Python has torch_npu."""
    emulator, kernels = os.path.join(ROOT, "build", "acl_emulator"), os.path.join(ROOT, "build", "kernels")
    python = os.environ.get("SHMEM_NPU_PYTHON", "")
    here = os.path.join(ROOT, "tests", "npu")
    shown("the emulated NPU and its kernels")
    os.makedirs(emulator, exist_ok=True)
    for command in ([os.path.join(ROOT, "tests", "acl_emulator", "build.sh"), emulator], [os.path.join(ROOT, "build.sh"), "kernels", "all"]):
        if subprocess.run(command, cwd=ROOT).returncode:
            print(f"FAIL {' '.join(command)}", flush=True)
            return [Tally("npu", 0, 1, 0, 0.0)]
    env = {"ACLEMU_BUILD": emulator, "GSHMEM_KERNELS": kernels, "SHMEM_KERNELS": kernels, "SHMEM_LIBRARY": _library()}
    extra = [] if options.long else ["-m", "not long"]
    if not python:
        print("SHMEM_NPU_VENV is none: what needs torch_npu is skipped", flush=True)
        return [run_pytest("npu", [here], env, extra), Tally("npu torch", 0, 0, 1, 0.0)]
    tallies = [run_pytest("npu", [here], env, extra, python)]
    for suite in _npu_suites(options.long):
        device = {"LD_LIBRARY_PATH": emulator, "SHMEM_TEST_DEVICE": "npu", "SHMEM_TEST_SIZES": str(suite.size), "ACLEMU_SOC": suite.chip}
        tallies.append(run_pytest(suite.name, suite.targets, {**env, **device, **suite.env}, suite.more, python))
    print_left_out()
    return tallies


def print_left_out() -> None:
    """What of tests/py has not run over the NPU, with the reasons."""
    sys.path.insert(0, _PY)
    import left_out

    shown("left out over the NPU")
    for name, why in left_out.NPU.items():
        print(f"  {name}: {why}", flush=True)


RUNNERS: Dict[str, Callable[[argparse.Namespace], List[Tally]]] = {
    "go": run_go,
    "c": run_c,
    "py": run_py,
    "torch": run_torch,
    "kernels": run_kernels,
    "npu": run_npu,
}


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs what is asked for; the exit status is 0 when nothing failed and something ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", action="append", choices=SECTIONS)
    parser.add_argument("--transport", choices=("shm", "tcp"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args(arguments)
    tallies: List[Tally] = []
    for section in options.sections or SECTIONS:
        tallies += RUNNERS[section](options)
    print(f"\n{'section':<14}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for t in tallies:
        print(f"{t.name:<14}{t.passed:>8}{t.failed:>8}{t.skipped:>9}{t.seconds:>9.0f}")
    passed, failed, skipped = (sum(t[i] for t in tallies) for i in (1, 2, 3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped" if skipped else f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
