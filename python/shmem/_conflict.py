"""Other packages with the import name `shmem` (Ascend's cann-shmem has it as well).

Imported by the package itself, so it is cheap: a few file look-ups, nothing read.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import List

# A file that every copy of this distribution has and no other package named shmem.
_OURS = "_abi.py"


def others() -> List[str]:
    """Folders of other packages named shmem that this Python could have imported, in search order."""
    here = os.path.dirname(os.path.abspath(__file__))
    found = []
    for entry in sys.path:
        folder = os.path.join(entry or os.getcwd(), "shmem")
        if os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.abspath(folder) != here:
            if not os.path.isfile(os.path.join(folder, _OURS)) and folder not in found:
                found.append(folder)
    return found


def sentence() -> str:
    """Which package was loaded and why, when there is more than one; empty otherwise."""
    rest = others()
    if not rest:
        return ""
    return (
        f"two packages are named shmem: this is goshmem from {os.path.dirname(os.path.abspath(__file__))}, "
        f"which comes first on sys.path; the other is {', '.join(rest)}. Uninstall one of them (pip uninstall cann-shmem, or goshmem)"
    )


def warn() -> None:
    """Warns once when another package has our name."""
    text = sentence()
    if text:
        import warnings

        warnings.warn(text, RuntimeWarning, stacklevel=3)


def refuse_mixed_install() -> None:
    """Raises LibraryError when another package's files lie inside our folder, so that neither is whole."""
    here = os.path.dirname(os.path.abspath(__file__))
    strange = [name for name in os.listdir(here) if name == "version.info" or name.startswith("_pyshmem") and name.endswith(".so")]
    if strange:
        from ._errors import LibraryError

        raise LibraryError(
            f"{here} holds files of another package ({', '.join(sorted(strange))}): goshmem and cann-shmem were installed over each "
            "other. Uninstall both, then install one"
        )
