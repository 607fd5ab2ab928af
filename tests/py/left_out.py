"""What is left out on a device, with the reason. Only what could not be otherwise on hardware stands here; the rest of tests/py runs there.

Keys are files of this folder, test functions, or tests with their parameters.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))

NPU: Dict[str, str] = {
    "torch/test_functional.py::test_compiled[inductor]": "torch_npu 2.14.0 replaces functions of inductor by its own of another signature (make_reduction), on any device",
}


def reason(nodeid: str) -> Optional[str]:
    """Why a test is left out on an npu; None for one that runs. The longest key wins."""
    name = nodeid.split("tests/py/", 1)[-1]
    keys = (name, name.split("[")[0], name.split("::")[0])
    return next((NPU[key] for key in keys if key in NPU), None)


def stale() -> List[str]:
    """Keys that name no file or no test."""
    bad = []
    for key in NPU:
        file, _, test = key.partition("::")
        path = os.path.join(HERE, file)
        if not os.path.exists(path):
            bad.append(key)
        elif test:
            with open(path, encoding="utf-8") as source:
                if f"def {test.split('[')[0]}(" not in source.read():
                    bad.append(key)
    return bad


def table(items: List[Any]) -> List[str]:
    """Lines that tell what was left out of a session, and why."""
    by: Dict[str, List[str]] = defaultdict(list)
    for item in items:
        by[str(reason(item.nodeid))].append(item.nodeid.split("tests/py/", 1)[-1])
    lines = []
    for why, names in by.items():
        short = sorted({name.split("[")[0] for name in names})
        lines.append(f"{len(names):>4}  {why}: {', '.join(short) if len(short) < 7 else ', '.join(sorted({n.split('::')[0] for n in short}))}")
    return lines
