"""shmem-config: where the installation's files are, the flags to compile against it, and whether it works here."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from typing import Any, Dict, List, Optional

from .. import _conflict, _lib
from .._errors import ShmemError
from .._version import __version__

_CHECK_SECONDS = 60
_SELF_TEST = """
import shmem
w = shmem.World(0, 1, heap="16M", timeout=20)
b = shmem.buffer(64, format="q", team=w.team)
shmem.atomic_add(b, 7, 0, index=3, world=w)
assert shmem.g(b, 0, index=3, world=w) == 7
shmem.barrier(team=w.team)
w.finalize(5)
print("ok")
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="shmem-config", description=__doc__)
    made.add_argument("--version", action="store_true", help="the version of the Python package")
    made.add_argument("--includedir", action="store_true", help="the folder of gshmem.h")
    made.add_argument("--libdir", action="store_true", help="the folder of libshmem.so")
    made.add_argument("--library", action="store_true", help="the path of libshmem.so")
    made.add_argument("--cflags", action="store_true", help="flags to compile a C program, quoted for a shell where a path needs it (eval)")
    made.add_argument("--libs", action="store_true", help="flags to link a C program")
    made.add_argument("--diagnose", action="store_true", help="everything about this installation and machine, as JSON")
    made.add_argument("--check", action="store_true", help="starts a world of one and uses it; exit status 0 when all is well")
    return made


def _attempt(function: Any) -> Any:
    try:
        return function()
    except (ShmemError, OSError, ValueError) as problem:
        return f"{type(problem).__name__}: {problem}"


def _first_line(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip()
    except OSError:
        return None


def _torch() -> Dict[str, Any]:
    import importlib.metadata

    try:
        return {"version": importlib.metadata.version("torch")}
    except importlib.metadata.PackageNotFoundError:
        return {"version": None}


def diagnose() -> Dict[str, Any]:
    """What a bug report should carry; loads the library, starts no world."""

    def library_info() -> Any:
        from .. import _world

        return _world._info(0)

    return {
        "package": {"version": __version__, "folder": _lib.package_directory(), "others": _conflict.others()},
        "library": {"path": _attempt(_lib.library_path), "obstacle": _lib.obstacle(), "info": _attempt(library_info)},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "torch": _torch(),
        "machine": {
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "page": os.sysconf("SC_PAGE_SIZE"),
            "memory": _first_line("/proc/meminfo"),
            "cgroup": _first_line("/proc/self/cgroup"),
            "memory_max": _first_line("/sys/fs/cgroup/memory.max"),
            "ptrace_scope": _first_line("/proc/sys/kernel/yama/ptrace_scope"),
            "containerized": os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"),
        },
        "environment": {name: "(set)" if "SECRET" in name or "UNIQUE" in name else value for name, value in os.environ.items() if name.startswith("SHMEM_")},
    }


def check() -> int:
    """Runs a world of one in a process of its own and says how it went."""
    parent = os.path.dirname(_lib.package_directory())
    env = {name: value for name, value in os.environ.items() if name not in ("SHMEM_RANK", "SHMEM_SIZE", "SHMEM_RENDEZVOUS")}
    env["PYTHONPATH"] = os.pathsep.join(p for p in (parent, env.get("PYTHONPATH")) if p)
    try:
        done = subprocess.run([sys.executable, "-c", _SELF_TEST], env=env, capture_output=True, text=True, timeout=_CHECK_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"shmem {__version__} does not work here: a world of one was not done after {_CHECK_SECONDS} s; SHMEM_LOG=debug says more", file=sys.stderr)
        return 1
    if done.returncode == 0:
        print(f"shmem {__version__} works here ({_lib.library_path()})")
        return 0
    print(f"shmem {__version__} does not work here:\n{done.stderr or done.stdout}", file=sys.stderr)
    return 1


def _answers(options: argparse.Namespace) -> List[str]:
    answers = []
    folder = os.path.dirname(_lib.library_path()) if options.libdir or options.library or options.libs else ""
    if options.version:
        answers.append(__version__)
    if options.includedir:
        answers.append(_lib.include_directory())
    if options.libdir:
        answers.append(folder)
    if options.library:
        answers.append(_lib.library_path())
    if options.cflags:
        answers.append(shlex.quote(f"-I{_lib.include_directory()}"))
    if options.libs:
        answers.append(shlex.join([f"-L{folder}", f"-Wl,-rpath,{folder}", "-lshmem"]))
    return answers


def main(arguments: Optional[List[str]] = None) -> int:
    """Prints what is asked for; gives the exit status."""
    options = parser().parse_args(arguments)
    try:
        answers = _answers(options)
    except ShmemError as problem:
        print(f"shmem-config: {problem}", file=sys.stderr)
        return 1
    if answers:
        print(" ".join(answers))
    if options.diagnose:
        print(json.dumps(diagnose(), indent=2))
    if options.check:
        return check()
    if not answers and not options.diagnose:
        parser().print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
