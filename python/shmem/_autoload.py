"""What torch's entry points call. Cheap, and never an obstacle to `import torch`.

torch.backends (every torch, at the end of `import torch`): registers the backend's name before 2.14, nothing from then on.
torch.distributed.backends (2.14 and later): called when the backend "shmem" is first asked for.
"""

from __future__ import annotations

import sys
from typing import Any


def _asks_by_name(torch: Any) -> bool:
    """Whether this torch looks backends up by entry point itself (2.14 and later)."""
    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 14)


def autoload() -> None:
    """Registers the name `shmem` with a torch that would not find it otherwise; swallows every failure, as torch would not start else."""
    try:
        torch = sys.modules.get("torch")
        if torch is not None and not _asks_by_name(torch):
            register()
    except Exception as problem:  # an exception here would make `import torch` fail
        import warnings

        warnings.warn(f"shmem: the backend could not be registered with torch.distributed: {problem}", RuntimeWarning, stacklevel=2)


def register() -> None:
    """Registers the backend `shmem` with torch.distributed; its package is imported when a group is made."""
    from .interop.registration import register as register_backend

    register_backend()
