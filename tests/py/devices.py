"""The device under test for processes that tests start: SHMEM_TEST_DEVICE=npu puts an emulated NPU under every world."""

from __future__ import annotations

import os
from typing import Dict, List

ON_DEVICE = os.environ.get("SHMEM_TEST_DEVICE", "cpu") != "cpu"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EMULATOR = os.environ.get("ACLEMU_BUILD") or os.path.join(ROOT, "build", "acl_emulator")


def environment(heap: str = "64M") -> Dict[str, str]:
    """What a process needs so that its worlds have a device; nothing for the CPU.

    A launcher gives each its LOCAL_RANK, which chooses the device. torch_npu is loaded where a program asks for it.
    """
    if not ON_DEVICE:
        return {}
    kept = {k: os.environ[k] for k in ("SHMEM_TEST_DEVICE", "SHMEM_KERNELS") if k in os.environ}
    return {**kept, "SHMEM_DEVICE": "npu", "SHMEM_DEVICE_SIZE": heap, "LD_LIBRARY_PATH": EMULATOR, "ACLEMU_DEVICES": "8", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def compiled() -> List[str]:
    """Flags for C programs that follow the Ascend interface: with a device they see CANN's header, here the emulator's, and link its runtime."""
    if not ON_DEVICE:
        return []
    return ["-DON_DEVICE", "-I", os.path.join(ROOT, "tests", "acl_emulator", "include"), "-L", EMULATOR, "-lascendcl"]
