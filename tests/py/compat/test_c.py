"""The Ascend interface in C and C++: headers, and programs that call every function, at several PE counts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import devices
import pytest
from ports import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOURCES = os.path.join(ROOT, "tests", "c", "ascend")
sys.path.insert(0, os.path.join(ROOT, "capi", "gen", "ascend"))

import aliases  # noqa: E402
import names  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
OURS = re.compile(r"aclshmem_cpu_")  # ours, for the stand-in of acl/acl_rt.h


def library() -> str:
    from shmem import _lib

    return _lib.library_path()


def environment() -> dict:
    kept = ("SHMEM_TRANSPORT",)
    env = {k: v for k, v in os.environ.items() if not k.startswith("SHMEM_") or k in kept}
    device = devices.environment()
    return {**env, **device, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [os.path.dirname(library()), device.get("LD_LIBRARY_PATH")]))}


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("ascend"), {}

    def compile_one(source: str, *more: str, compiler: str = "") -> str:
        if source not in made:
            out = str(folder / source.replace(".", "_"))
            kind = [compiler] if compiler else ["g++", "-std=c++17"] if source.endswith(".cpp") else ["gcc", "-std=gnu11"]
            include = [*devices.compiled(), "-I", names.INCLUDE, "-L", os.path.dirname(library())]
            subprocess.run([*kind, "-O1", *WARNINGS, os.path.join(SOURCES, source), *include, "-o", out, "-lshmem", *more], check=True)
            made[source] = out
        return made[source]

    return compile_one


def run(program: str, n: int, timeout: float = 400) -> list:
    """Runs n PEs; gives (code, output, errors) of each. Nothing is left running."""
    port = str(free_port(before=8, after=8))  # its neighbours serve other instances
    env, pipes = environment(), {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    pes = [subprocess.Popen([program, str(me), str(n), port], env={**env, "LOCAL_RANK": str(me)}, **pipes) for me in range(n)]
    try:
        ended = [pe.communicate(timeout=timeout) for pe in pes]
    except subprocess.TimeoutExpired:
        for pe in pes:
            pe.kill()
        raise AssertionError("\n".join(f"PE {me}: {pe.communicate()}" for me, pe in enumerate(pes))) from None
    return [(pe.returncode, out, err) for pe, (out, err) in zip(pes, ended)]


def good(program: str, n: int) -> str:
    ended = run(program, n)
    assert all(code == 0 for code, _, _ in ended), "\n".join(f"PE {me}: exit {code}\n{out[-500:]}\n{err[-3000:]}" for me, (code, out, err) in enumerate(ended))
    return ended[0][1]


EVERY = ["every_rma.c", "every_wait.c", "every_rest.c"]


SIZES = [1, 2, 3, 5, 8] if not devices.ON_DEVICE else [int(n) for n in os.environ.get("SHMEM_TEST_SIZES", "2").split(",")]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("source", EVERY)
def test_every_function(build, source, n):
    good(build(source), n)


def test_declared_exported_and_called_are_the_same(build):
    declared = set(names.names())
    said = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in said.splitlines()}
    called = set()
    for source in EVERY:
        called |= set(re.findall(r"^CALLED (\w+)$", good(build(source), 2), re.M))
    called |= set(re.findall(r"^CALLED (\w+)$", run(build("exits.c"), 2)[0][1], re.M))
    upstream = {name for name in declared if not OURS.match(name)}
    assert len(upstream) == 350
    assert declared <= exported
    assert upstream == called, f"never called: {sorted(upstream - called)}; called and not declared: {sorted(called - upstream)}"
    print(f"declared {len(upstream)}, exported {len(upstream & exported)}, called {len(called)}")


def test_no_short_name_is_exported_by_the_ascend_face():
    short = {a for a, _ in aliases.aliases() if not a.endswith("_t")}
    assert len(short) > 100
    assert not {name for name in names.names() if name.startswith("shmem")}


def test_the_alias_header_is_what_the_generator_writes():
    with open(os.path.join(names.INCLUDE, "shmem_aliases.h"), encoding="utf-8") as file:
        assert file.read() == aliases.text()
    for short, long in aliases.aliases():
        assert short != long
    targets = {long for _, long in aliases.aliases() if not long.endswith(("_t", "decrypt_handler", "sync_bit"))}
    assert targets <= set(names.names())


@pytest.mark.parametrize("language,standard", [("c++", s) for s in ("c++11", "c++14", "c++17", "c++20")] + [("c", "c11"), ("c", "c17")])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_headers_are_clean(tmp_path, compiler, language, standard):
    found = shutil.which(compiler) or shutil.which(f"{compiler}-14")
    if not found:
        pytest.skip(f"no {compiler}")
    heads = [os.path.relpath(os.path.join(f, h), names.INCLUDE) for f, _, hs in os.walk(names.INCLUDE) for h in hs]
    for head in sorted(heads):
        source = tmp_path / "t"
        source.write_text(f'#include "{head}"\n#include "{head}"\nextern int something;\n')
        command = [found, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", names.INCLUDE, str(source)]
        subprocess.run(command, check=True)


LAYOUTS = """
#include "shmem.h"
#include <stddef.h>
#define SIZE(T, n) static_assert(sizeof(T) == n, #T)
#define AT(T, m, n) static_assert(offsetof(T, m) == n, #T "." #m)
SIZE(aclshmem_init_optional_attr_t, 24); SIZE(aclshmemx_init_attr_t, 120); SIZE(aclshmemx_uniqueid_t, 136); SIZE(aclshmem_team_config_t, 64);
SIZE(aclshmem_handle_t, 4); SIZE(aclshmem_instance_ctx, 16); SIZE(aclshmem_ub_config_t, 16); SIZE(aclshmem_prof_block_t, 16384);
SIZE(aclshmem_prof_pe_t, 1048584); SIZE(aclshmemx_team_t, 131160); SIZE(aclshmem_device_host_state_t, 32992); SIZE(aclshmem_host_state_t, 400);
SIZE(aclshmem_transport_t, 1); SIZE(aclshmemx_bootstrap_t, 4); SIZE(aclshmemx_sync_bit, 64); SIZE(data_op_engine_type_t, 4);
AT(aclshmemx_init_attr_t, ip_port, 8); AT(aclshmemx_init_attr_t, local_mem_size, 72); AT(aclshmemx_init_attr_t, option_attr, 80);
AT(aclshmemx_init_attr_t, comm_args, 104); AT(aclshmemx_init_attr_t, instance_id, 112); AT(aclshmem_init_optional_attr_t, sockFd, 20);
AT(aclshmemx_uniqueid_t, internal, 12); AT(aclshmem_team_config_t, uniqueid, 8); AT(aclshmemx_team_t, config, 24); AT(aclshmemx_team_t, pe_mapping, 88);
AT(aclshmem_device_host_state_t, topo_list, 80); AT(aclshmem_device_host_state_t, heap_size, 16464); AT(aclshmem_device_host_state_t, team_pools, 16472);
AT(aclshmem_device_host_state_t, sync_pool, 32856); AT(aclshmem_device_host_state_t, is_aclshmem_created, 32889);
AT(aclshmem_device_host_state_t, mte_config, 32896); AT(aclshmem_device_host_state_t, qp_info, 32960); AT(aclshmem_device_host_state_t, signal_addr, 32984);
AT(aclshmem_host_state_t, notify_arr, 16); AT(aclshmem_prof_pe_t, block_prof, 8);
static_assert(SYNC_POOL_SIZE == 5242880 && SYNC_COUNTERS_SIZE == 131072 && ACLSHMEM_CORE_SYNC_POOL_SIZE == 18432 && ACLSHMEM_EXTRA_SIZE == 6291456, "");
static_assert(ACLSHMEM_UNIQUEID_VERSION == 65672 && ACLSHMEM_HEAP_ALIGNMENT_SIZE == 1ul << 30 && ACLSHMEM_MAX_LOCAL_SIZE == 42949672960ul, "");
static_assert(ACLSHMEM_NOT_SUPPORTED == -100 && ACLSHMEM_UNDER_API_UNLOAD == -11 && ACLSHMEM_STATUS_INVALID == 2147483647, "");
static_assert(ACLSHMEMX_INIT_WITH_UNIQUEID == 8 && ACLSHMEM_DATA_OP_ROCE == 4 && ACLSHMEM_TRANSPORT_ROCE == 2, "");
static_assert(ALIGN_UP(5, 4) == 8 && ALIGH_TO(5, 3) == 6, "");
int main() {
  aclshmemx_init_attr_t a; aclshmemx_uniqueid_t u = ACLSHMEM_UNIQUEID_INITIALIZER;
  return a.option_attr.version == 65560 && a.option_attr.shm_init_timeout == 120 && !a.comm_args && u.version == 65672 ? 0 : 1;
}
"""


def test_layouts_and_values_are_upstreams(tmp_path):
    source, out = tmp_path / "layouts.cpp", str(tmp_path / "layouts")
    source.write_text(LAYOUTS)
    subprocess.run(["g++", "-std=c++11", *WARNINGS, "-I", names.INCLUDE, str(source), "-o", out], check=True)
    subprocess.run([out], check=True)


@pytest.mark.parametrize("n", [1, 3])
def test_a_program_in_upstreams_style(build, n):
    assert f"PE 0 of {n}: 0 wrong" in good(build("ring.cpp"), n)


@pytest.mark.parametrize("n", [1, 3])
def test_global_exit_ends_every_pe(build, n):
    assert [code for code, _, _ in run(build("exits.c"), n, timeout=240)] == [23] * n


def test_as_many_instances_as_there_can_be(build):
    good(build("many.c"), 1)


def test_init_through_mpi(build):
    if not (shutil.which("mpicc") and shutil.which("mpirun")):
        pytest.skip("no MPI")
    program = build("mpi.c", compiler="mpicc")
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", program]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.count("MPI fine") == 2, done.stdout + done.stderr
