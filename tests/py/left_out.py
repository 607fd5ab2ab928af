"""What is left out on a device, with the reason. Only what could not be otherwise on hardware stands here; the rest of tests/py runs there.

Keys are files of this folder, test functions, or tests with their parameters.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))

NPU: Dict[str, str] = {
    "test_abi.py": "the C header against Python's table: no world",
    "test_build.py": "the build and the files it makes: no world",
    "test_surface.py": "names, docstrings and the import: no world",
    "test_cli.py": "the launcher's pipes, signals and options; worlds with a device under it: test_openshmem.py",
    "torch/test_documents.py": "programs of the documents for hosts; that of docs/npu.md runs in tests/npu/test_documents.py",
    "torch/test_functional.py::test_compiled[inductor]": "torch_npu 2.14.0 replaces functions of inductor by its own of another signature, on any device",
}

# What the short form always runs; of the rest it takes a sample, another one each day.
CORE = (
    "test_rma.py test_signals.py test_memory.py test_team.py test_atomics.py test_collectives.py compat/test_c.py::test_every_function "
    "torch/test_smoke.py torch/test_ops.py torch/test_device.py::test_every_operation_by_kernels torch/test_p2p.py::test_ring "
    "torch/test_async.py::test_many torch/test_symmetric.py::test_first_values torch/test_functional.py::test_functional "
    "torch/test_training.py::test_fsdp2 torch/test_subgroups.py::test_subsets"
).split()


def sampled(nodeid: str, one_in: int, day: int) -> bool:
    """Whether the short form runs a test today."""
    name = nodeid.split("tests/py/", 1)[-1]
    if name.split("::")[0] in CORE or name.split("[")[0] in CORE:
        return True
    return (zlib.crc32(name.encode()) + day) % one_in == 0


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
