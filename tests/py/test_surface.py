"""The public names, their documentation, and what importing costs."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys

import pytest

import shmem

PACKAGE = os.path.dirname(os.path.abspath(shmem.__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Calls in which every member of a team must take part; their documentation says so, and nobody else's does.
COLLECTIVE = {
    "all_gather", "all_gather_v", "all_reduce", "all_to_all", "all_to_all_v", "barrier", "barrier_on_stream", "broadcast", "buffer", "collect", "empty",
    "empty_like", "finalize", "free", "full", "gather", "init", "ones", "reduce", "reduce_scatter", "scatter", "symmetric_copy", "sync",
    "zeros", "zeros_like",
}  # fmt: skip


def functions():
    return [name for name in shmem.__all__ if inspect.isfunction(getattr(shmem, name))]


def test_names_are_sorted_unique_and_exist():
    names = [n for n in shmem.__all__ if n != "__version__"]
    assert names == sorted(set(names))
    for name in shmem.__all__:
        assert getattr(shmem, name) is not None


def test_what_type_checkers_see_is_what_there_is():
    with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}
    errors = {n for n in shmem.__all__ if inspect.isclass(getattr(shmem, n)) and issubclass(getattr(shmem, n), shmem.ShmemError)}
    assert seen - {"symm"} == set(shmem.__all__) - errors - {"__version__"}


@pytest.mark.parametrize("name", functions())
def test_docstring(name):
    doc = inspect.getdoc(getattr(shmem, name)) or ""
    first = doc.split("\n\n")[0]
    assert first and first.rstrip().endswith("."), f"{name}: the first paragraph is not made of sentences"
    assert ("Collective" in doc) == (name in COLLECTIVE), f"{name}: says Collective when it is, and only then"
    assert re.search(r"[Bb]lock|not wait", doc), f"{name}: does not say whether it blocks"


def public_definitions():
    for folder, _, files in os.walk(PACKAGE):
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(folder, file)
                with open(path, encoding="utf-8") as source:
                    tree = ast.parse(source.read())
                yield path, tree


def test_every_public_definition_and_module_has_a_docstring():
    missing = []
    for path, tree in public_definitions():
        where = os.path.relpath(path, PACKAGE)
        if not ast.get_docstring(tree):
            missing.append(where)
        kinds = (ast.FunctionDef, ast.ClassDef)
        for node in (n for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")):
            inside = node.body if isinstance(node, ast.ClassDef) else []
            for one in (node, *(m for m in inside if isinstance(m, kinds) and not m.name.startswith("_"))):
                if not ast.get_docstring(one):
                    missing.append(f"{where}: {one.name}")
    assert not missing


def test_functions_and_files_stay_short():
    long = []
    for path, tree in public_definitions():
        with open(path, encoding="utf-8") as source:
            lines = source.read().count("\n")
        if lines > 500:
            long.append(f"{os.path.relpath(path, PACKAGE)}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno - node.body[0].lineno) > 60:
                long.append(f"{os.path.relpath(path, PACKAGE)}: {node.name} is too long")
    assert not long


def test_only_interop_imports_torch():
    guilty = []
    for path, tree in public_definitions():
        if os.sep + "interop" + os.sep in path:
            continue
        for node in tree.body:  # at the top level; functions may import it when asked for tensors
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            guilty += [f"{os.path.relpath(path, PACKAGE)}: {n}" for n in names if n.split(".")[0] in ("torch", "numpy")]
    assert not guilty


def run(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE), **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_starts_nothing_and_loads_little():
    said = run(
        "import sys, threading, os\n"
        "before = len(os.listdir('/proc/self/fd'))\n"
        "import shmem\n"
        "assert threading.active_count() == 1\n"
        "assert len(os.listdir('/proc/self/fd')) == before\n"
        "assert not any('libshmem' in line for line in open('/proc/self/maps'))\n"
        "print([m for m in ('torch', 'numpy', 'ctypes', 'typer', 'rich', 'subprocess') if m in sys.modules])\n"
    )
    assert said.strip() == "[]"


def test_import_is_fast():
    times = []
    for _ in range(9):
        said = run("import time; a = time.process_time(); import shmem; print(time.process_time() - a)")
        times.append(float(said))
    assert min(times) < 0.03, times  # of the processor: the machine may be busy or slow; torch takes a hundred times that


def test_another_package_of_our_name_is_told(tmp_path):
    (tmp_path / "shmem").mkdir()
    (tmp_path / "shmem" / "__init__.py").write_text("")
    said = run(
        "import warnings, sys\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        f"    sys.path.append({str(tmp_path)!r})\n"
        "    import shmem\n"
        "print(seen[0].message)\n"
    )
    assert "two packages are named shmem" in said and str(tmp_path) in said and "goshmem from" in said


def test_use_before_init_says_what_to_do():
    with pytest.raises(shmem.NotInitializedError, match=r"shmem\.init\(\)"):
        shmem.my_pe()
    with pytest.raises(shmem.NotInitializedError):
        shmem.barrier()
    assert not shmem.is_initialized()
    shmem.finalize()  # nothing to leave is no error


def test_address_space_limit_is_an_error_and_no_crash():
    said = run(
        "import resource, shmem\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    shmem.unique_id()\n"
        "except shmem.LibraryError as e:\n"
        "    print(e)\n"
    )
    assert "400 MiB" in said and "ulimit -v" in said


def test_missing_library_names_the_cure():
    said = run("import shmem\ntry:\n    shmem.unique_id()\nexcept shmem.LibraryError as e:\n    print(e)\n", SHMEM_LIBRARY="/nonexistent/libshmem.so")
    assert "/nonexistent/libshmem.so" in said and "SHMEM_LIBRARY" in said


def test_library_of_another_version_is_refused(tmp_path):
    source = tmp_path / "old.c"
    from shmem import _abi

    body = "".join(f"unsigned {name}(void) {{ return {99 if name == 'gshmem_abi_version' else 0}; }}\n" for name in _abi.PROTOTYPES)
    source.write_text(body)
    compiler = os.environ.get("CC", "cc").split()
    if subprocess.run([*compiler, "--version"], capture_output=True).returncode != 0:
        pytest.skip("no C compiler on the PATH")
    built = tmp_path / "libshmem.so"
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    said = run("import shmem\ntry:\n    shmem.unique_id()\nexcept shmem.LibraryError as e:\n    print(e)\n", SHMEM_LIBRARY=str(built))
    assert "ABI version 99" in said and "reinstall" in said


@pytest.mark.parametrize(
    "text, bytes_", [("256M", 256 << 20), ("1.5g", 3 << 29), ("64k", 65536), ("2GiB", 2 << 30), (4096, 4096), (None, 0), ("10mb", 10 << 20)]
)
def test_heap_sizes(text, bytes_):
    from shmem._world import heap_bytes

    assert heap_bytes(text) == bytes_


@pytest.mark.parametrize("text", ["", "abc", "-1", 0, -5, "1e99", "nan", "M", "20kk"])
def test_bad_heap_sizes_quote_the_text(text):
    from shmem._world import heap_bytes

    with pytest.raises(shmem.InvalidArgumentError, match=re.escape(repr(text))):
        heap_bytes(text)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"rank": 0}, "rank and size go together"),
        ({"rank": 2, "size": 2}, "0..size-1"),
        ({"rank": 0, "size": 2, "uid": b"short"}, "5 bytes"),
        ({"rank": 0, "size": 2, "uid": b"x" * 128, "path": "/x"}, "uid and path"),
        ({"endpoint": "127.0.0.1:1"}, "needs rank and size"),
    ],
)
def test_bad_init_arguments(arguments, words):
    with pytest.raises(shmem.InvalidArgumentError, match=words):
        shmem.init(**arguments)
