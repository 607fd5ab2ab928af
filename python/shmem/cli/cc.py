"""shmem-cc, shmem-c++: the compiler with the flags for OpenSHMEM and gshmem programs.

    shmem-cc -O2 hello.c -o hello && shmem-run -n 4 ./hello

Everything is passed on to the compiler ($SHMEM_CC, $CC or cc; $SHMEM_CXX, $CXX or c++), with the include folders before and, unless
the command only compiles, the library behind. `--show` prints the command instead of running it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import List, Optional, Tuple

from .. import _lib
from .._errors import LibraryError

_NO_LINK = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only")
_INFORMATION = ("--version", "--help", "-v", "-dumpversion", "-dumpmachine", "--print-search-dirs")


def compiler(cxx: bool) -> List[str]:
    """The command of the compiler, which may carry options of its own; raises LookupError when there is none."""
    own, usual, names = ("SHMEM_CXX", "CXX", ("c++", "g++", "clang++")) if cxx else ("SHMEM_CC", "CC", ("cc", "gcc", "clang"))
    for variable in (own, usual):
        words = shlex.split(os.environ.get(variable, ""))
        if words:
            if shutil.which(words[0]) is None:
                raise LookupError(f"{variable} is {os.environ[variable]!r}, and {words[0]!r} is no command that can be run")
            return words
    for name in names:
        if shutil.which(name):
            return [name]
    raise LookupError(f"no compiler was found ({', '.join(names)}); install one or set {own}")


def flags() -> Tuple[List[str], List[str]]:
    """What goes before the user's arguments, and what behind."""
    include, folder = _lib.include_directory(), os.path.dirname(os.path.abspath(_lib.library_path()))
    before = [f"-I{os.path.join(include, 'openshmem')}", f"-I{include}"]
    return before, [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lshmem"]


def command(arguments: List[str], cxx: bool) -> List[str]:
    """The whole command line."""
    before, behind = flags()
    links = bool(arguments) and not any(a in _NO_LINK for a in arguments)
    if all(a in _INFORMATION for a in arguments):
        links = False
    return [*compiler(cxx), *before, *arguments, *(behind if links else [])]


def main(arguments: Optional[List[str]] = None, cxx: bool = False) -> int:
    """Becomes the compiler; returns only when it cannot."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = "shmem-c++" if cxx else "shmem-cc"
    if not given or given == ["--help"]:
        print(__doc__)
        return 0 if given else 2
    show = "--show" in given
    try:
        words = command([a for a in given if a != "--show"], cxx)
    except (LookupError, LibraryError) as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return 127
    if show:
        print(shlex.join(words))
        return 0
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)
    except OSError as problem:
        print(f"{name}: cannot run {words[0]}: {problem}", file=sys.stderr)
        return 127


def main_cxx() -> int:
    """shmem-c++."""
    return main(cxx=True)


if __name__ == "__main__":
    sys.exit(main())
