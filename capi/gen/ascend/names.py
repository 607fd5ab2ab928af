"""The functions that the Ascend headers declare, and the Ascend part of capi/shmem.map.

    python3 capi/gen/ascend/names.py          # prints the declared names, one a line
    python3 capi/gen/ascend/names.py --map    # puts them into the version script
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Dict, List

HERE = os.path.dirname(os.path.abspath(__file__))
CAPI = os.path.dirname(os.path.dirname(HERE))
INCLUDE = os.path.join(CAPI, "include", "ascend")
MAP = os.path.join(CAPI, "shmem.map")

# A declaration after preprocessing: visibility("default"), result, name, parameters.
_DECLARATION = re.compile(r'__attribute__\(\(visibility\("default"\)\)\)\s*([^;(]*?[\s*])(\w+)\s*(\((?:[^()]|\([^()]*\))*\))\s*;')


def preprocessed(language: str = "c++") -> str:
    """What shmem.h is after the preprocessor."""
    command = [*os.environ.get("CC", "cc").split(), "-x", language, "-E", "-P", "-I", INCLUDE, os.path.join(INCLUDE, "shmem.h")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declarations(language: str = "c++") -> Dict[str, str]:
    """name -> "result(parameters)" with single spaces."""
    found = {}
    for result, name, parameters in _DECLARATION.findall(preprocessed(language)):
        found[name] = " ".join((result + parameters).split())
    return found


def names() -> List[str]:
    """Every exported name of the Ascend face, sorted."""
    return sorted(declarations())


def write_map() -> None:
    """Replaces the Ascend names in the version script; the others stay as they are."""
    with open(MAP, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first, last = lines.index("  global:") + 1, lines.index("  local:")
    rest = [line for line in lines[first:last] if not re.match(r"\s+(aclshmem|util_get_ffts)", line)]
    body = sorted(set(rest) | {f"    {name};" for name in names()}, key=lambda line: line.strip().rstrip(";"))
    with open(MAP, "w", encoding="utf-8") as file:
        file.write("\n".join(lines[:first] + body + lines[last:]))


if __name__ == "__main__":
    if "--map" in sys.argv[1:]:
        write_map()
    else:
        print("\n".join(names()))
