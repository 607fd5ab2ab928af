"""Prototypes, constants and layouts: the table, the emulator's header, its libraries and the vendor's header agree."""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess

import pytest

from conftest import SOURCE

INTERFACE = SOURCE / "interface"
RELEASES = ["8_1", "8_5", "9_0", "9_1", "9_2b1", "master"]
TABLE = re.findall(
    r"^ACL_FUNCTION\((\w+), (.+?), (acl\w+), (\(.*\))\)$", (INTERFACE / "functions.def").read_text(), re.MULTILINE
)


def compile_check(*flags):
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-w", "-fsyntax-only", *flags, f"-I{INTERFACE}", str(INTERFACE / "check.cpp")]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_table_has_every_entry_point_once():
    names = [name for _, _, name, _ in TABLE]
    assert len(names) == len(set(names)) == 143
    assert {since for since, _, _, _ in TABLE} == set(RELEASES)


def test_the_emulators_header_agrees_with_the_tables():
    done = compile_check()
    assert done.returncode == 0, done.stderr


def test_a_wrong_table_does_not_compile(tmp_path):
    for source in INTERFACE.iterdir():
        (tmp_path / source.name).write_text(source.read_text())
    for name, old, new in [
        ("constants.def", "(ACL_MEMCPY_DEFAULT, 4)", "(ACL_MEMCPY_DEFAULT, 5)"),
        ("layouts.def", "(aclrtPhysicalMemProp, reserve, 24)", "(aclrtPhysicalMemProp, reserve, 16)"),
    ]:
        text = (tmp_path / name).read_text()
        assert old in text
        (tmp_path / name).write_text(text.replace(old, new))
        command = [os.environ.get("CXX", "g++"), "-std=c++17", "-fsyntax-only", f"-I{tmp_path}", str(tmp_path / "check.cpp")]
        assert subprocess.run(command, capture_output=True).returncode, name
        (tmp_path / name).write_text(text)


def test_the_vendors_headers_agree_with_the_tables(tmp_path):
    spec = importlib.util.find_spec("torch_npu")
    if spec is None:
        pytest.skip("torch_npu, which ships the headers, is not installed here")
    include = pathlib.Path(spec.origin).parent / "include"
    declared = "".join((include / "acl" / name).read_text() for name in ("acl_rt.h", "acl_base_rt.h"))
    absent = [row for row in TABLE if not re.search(rf"\b{row[2]}\(", declared)]
    assert all(RELEASES.index(row[0]) > RELEASES.index("9_0") or row[0] == "9_0" for row in absent), absent
    assert len(absent) < 10
    lines = [f'extern "C" {result} {name}{parameters};' for _, result, name, parameters in absent]
    (tmp_path / "absent.h").write_text("\n".join(lines))
    done = compile_check("-DVENDOR", f"-I{tmp_path}", f"-I{include}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("release,folder", [("8_1", "cann-8.1"), ("8_5", "."), ("master", "cann-9.2")])
def test_each_release_exports_what_it_has_and_nothing_newer(libraries, release, folder):
    library = ctypes.CDLL(str(libraries / folder / "libascendcl.so"))
    wrong = []
    for since, _, name, _ in TABLE:
        expected = RELEASES.index(since) <= RELEASES.index(release)
        if hasattr(library, name) != expected:
            wrong.append((since, name))
    assert not wrong


def test_torch_npu_finds_all_it_links_with(libraries):
    spec = importlib.util.find_spec("torch_npu")
    if spec is None:
        pytest.skip("torch_npu is not installed here")
    folder = pathlib.Path(spec.origin).parent
    wanted = set()
    for path in [*(folder / "lib").glob("lib[tn]*.so"), *folder.glob("_C*.so")]:
        listing = subprocess.run(["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True).stdout
        wanted |= set(re.findall(r"\b((?:acl|rt[A-Z]|Msprof)\w+)$", listing, re.MULTILINE))
    assert len(wanted) == 84
    library = ctypes.CDLL(str(libraries / "libascendcl.so"))
    assert not [name for name in wanted if not hasattr(library, name)]
