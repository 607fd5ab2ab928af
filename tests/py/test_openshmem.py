"""The OpenSHMEM face: the C programs of tests/c/openshmem, built by shmem-cc and run by shmem-run at several PE counts."""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import subprocess
import sys

import pytest

from processes import environment

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCES = os.path.join(ROOT, "tests", "c", "openshmem")
EVERY = ["every_rma", "every_atomic", "every_wait", "every_coll", "life"]
ENDS = ["shmem_global_exit", "shmem_ctx_c11_generic_selection_failed"]  # exercised by exits.c, which cannot report
SIZES = [int(n) for n in os.environ.get("SHMEM_TEST_SIZES", "1,2,3,8").split(",")]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def compiled(source, out, *flags):
    """Builds one program by shmem-cc (or shmem-c++)."""
    cxx = source.endswith(".cpp")
    code = f"import sys; from shmem.cli import cc; sys.exit(cc.main(cxx={cxx}))"
    command = [sys.executable, "-c", code, *flags, os.path.join(SOURCES, source), "-o", str(out), "-lpthread"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return str(out)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Gives a function that builds a program once and returns its path."""
    folder, built = tmp_path_factory.mktemp("openshmem"), {}

    def get(name):
        if name not in built:
            cxx = os.path.exists(os.path.join(SOURCES, name + ".cpp"))
            flags = ["-std=c++17", *STRICT] if cxx else ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
            built[name] = compiled(name + (".cpp" if cxx else ".c"), folder / name, *flags)
        return built[name]

    return get


def run(n, *command, timeout=400, **variables):
    env = {**environment(), **variables}
    return subprocess.run([sys.executable, "-m", "shmem.cli.run", "-n", str(n), *command], env=env, capture_output=True, text=True, timeout=timeout)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", [*EVERY, "generic", "plain"])
def test_program(programs, name, n):
    done = run(n, programs(name))
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_function_is_exercised(programs):
    said = set(ENDS)
    for name in EVERY:
        done = run(2, programs(name))
        assert done.returncode == 0, done.stderr[-4000:]
        said |= set(re.findall(r"^used (\w+)$", done.stdout, flags=re.M))
    with open(os.path.join(ROOT, "capi", "shmem.map"), encoding="utf-8") as file:
        exported = set(re.findall(r"^\s+(shmem_\w+);", file.read(), flags=re.M))
    assert said == exported, f"not exercised: {sorted(exported - said)}; not exported: {sorted(said - exported)}"


def test_generated_files_are_fresh():
    generator = os.path.join(ROOT, "capi", "gen", "openshmem", "generate.py")
    done = subprocess.run([sys.executable, "-B", generator, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler,language,standard", [("gcc", "c", "c11"), ("g++", "c++", "c++17"), ("clang", "c", "c11"), ("clang++", "c++", "c++17")])
def test_header_is_clean(compiler, language, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    for header in ("gshmem.h", "aclshmem.h", "openshmem/shmem.h", "ascend/shmem.h"):
        path = os.path.join(ROOT, "capi", "include", header)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([compiler, "-x", language, f"-std={standard}", *STRICT, "-fsyntax-only", path], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr[-2000:]
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        assert seconds < 2, f"{header} takes {compiler} {seconds:.2f} s"


@pytest.mark.parametrize("status", [0, 7])
def test_global_exit_ends_waiting_and_computing_pes(programs, status):
    done = run(3, programs("exits"), "global", str(status), timeout=240)
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize("how", ["return", "unequal", "fork", "again"])
def test_other_endings(programs, how):
    done = run(3, programs("exits"), how, timeout=240)
    assert done.returncode == 0, done.stderr
    if how == "unequal":
        assert "PEs disagree" in done.stderr and "100" in done.stderr and "200" in done.stderr


@pytest.mark.parametrize("how,words", [("bad-pe", "PE 2 does not exist"), ("bad-address", "not symmetric"), ("selection", "C11 generic")])
def test_misuse_ends_the_job_in_words(programs, how, words):
    done = run(2, programs("exits"), how, timeout=240)
    assert done.returncode == 1 and words in done.stderr, done.stderr


def test_static_data_can_be_refused(programs):
    done = run(2, programs("exits"), "again", SHMEM_STATIC_DATA="0")
    assert done.returncode == 1 and "SHMEM_STATIC_DATA is 0" in done.stderr, done.stderr


def test_the_compiler_command_is_shown():
    done = subprocess.run([sys.executable, "-m", "shmem.cli.cc", "--show", "-c", "a.c"], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "openshmem" in done.stdout and "-lshmem" not in done.stdout
    done = subprocess.run([sys.executable, "-m", "shmem.cli.cc", "--show", "a.c"], env=environment(), capture_output=True, text=True)
    assert "-lshmem" in done.stdout and "-Wl,-rpath," in done.stdout


SANITIZE = os.environ.get("SHMEM_C_SANITIZE")  # of `build.sh asan`


@pytest.mark.skipif(not SANITIZE, reason="build.sh asan runs this")
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", EVERY)
def test_faces_under_the_sanitizers(sanitized, name, n):
    """The library's C files and the program under address and undefined-behaviour sanitizers."""
    done = run(n, sanitized(name), timeout=300, ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=1")
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Gives a function that builds a program against a library built for the sanitizers."""
    folder, env, flags = tmp_path_factory.mktemp("sanitized"), dict(os.environ), [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-g", "-O1"]
    env.update({"CGO_CFLAGS": " ".join(flags), "CGO_LDFLAGS": flags[0], "CC": "gcc"})
    build = f"import sys; sys.path.insert(0, 'toolchain'); import library; library.build({str(folder / 'libshmem.so')!r}, extra=('-asan',))"
    done = subprocess.run([sys.executable, "-c", build], cwd=ROOT, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]

    def get(name):
        # The variables move into the heap as a whole, with the space between them: the program's are not watched.
        include = [f"-I{os.path.join(ROOT, 'capi', 'include', p)}" for p in ("openshmem", "")]
        command = ["gcc", "-std=gnu11", *flags, "--param", "asan-globals=0", *include, os.path.join(SOURCES, name + ".c"), "-o", str(folder / name)]
        command += [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lshmem", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        return str(folder / name)

    return get


def test_a_package_on_a_path_with_spaces(tmp_path):
    """What a wheel installs, somewhere else: shmem-cc and shmem-run find headers and library, and so does the program."""
    from shmem import _lib

    site = tmp_path / "two words" / "site packages"
    shutil.copytree(os.path.dirname(os.path.abspath(_lib.__file__)), site / "shmem", ignore=shutil.ignore_patterns("__pycache__", "lib", "include"))
    shutil.copytree(_lib.include_directory(), site / "shmem" / "include")
    (site / "shmem" / "lib").mkdir()
    shutil.copy(_lib.library_path(), site / "shmem" / "lib")
    env = {**environment(), "PYTHONPATH": str(site)}
    env.pop("SHMEM_LIBRARY", None)
    program = tmp_path / "two words" / "a hello"
    command = [sys.executable, "-m", "shmem.cli.cc", *STRICT, os.path.join(SOURCES, "hello.c"), "-o", str(program)]
    done = subprocess.run(command, env=env, cwd=site, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([sys.executable, "-m", "shmem.cli.run", "-n", "4", str(program)], env=env, cwd=site, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "4 PEs, sum 10" in done.stdout, done.stdout + done.stderr
    done = subprocess.run([sys.executable, "-m", "shmem.cli.config", "--cflags", "--libs"], env=env, cwd=site, capture_output=True, text=True, timeout=240)
    assert shlex.split(done.stdout)[:2] == [f"-I{site}/shmem/include", f"-L{site}/shmem/lib"], done.stdout + done.stderr


JOINING = """
import ctypes, os, shmem
shmem.init()
me, n = shmem.my_pe(), shmem.n_pes()
dll = ctypes.CDLL(shmem._lib.library_path())
dll.shmem_malloc.restype = ctypes.c_void_p
for round in range(2):
    dll.shmem_init()
    assert (dll.shmem_my_pe(), dll.shmem_n_pes()) == (me, n)
    p = dll.shmem_malloc(ctypes.c_size_t(8))
    dll.shmem_long_p(ctypes.c_void_p(p), ctypes.c_long(me + 40), (me + 1) % n)
    dll.shmem_barrier_all()
    assert ctypes.c_long.from_address(p).value == (me - 1) % n + 40
    dll.shmem_finalize()
    shmem.barrier()
shmem.finalize()
print("joined")
"""


def test_init_joins_the_world_of_python():
    done = run(2, sys.executable, "-c", JOINING, timeout=240)
    assert done.returncode == 0 and done.stdout.count("joined") == 2, done.stderr
