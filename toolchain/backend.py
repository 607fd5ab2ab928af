"""The build backend: setuptools, which first asks the package index for a Go and a C compiler where the machine has none.

pip installs what get_requires_for_build_wheel names into the build environment, so `pip install .` needs nothing but Python.
"""

from __future__ import annotations

import os
import sys
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from setuptools import build_meta  # noqa: E402

import library  # noqa: E402

build_sdist = build_meta.build_sdist
build_wheel = build_meta.build_wheel
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist


def get_requires_for_build_wheel(config_settings: Any = None) -> List[str]:
    """What setuptools wants, plus the toolchains that are missing here."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *library.missing_tools()]


if hasattr(build_meta, "build_editable"):
    build_editable = build_meta.build_editable
    prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable

    def get_requires_for_build_editable(config_settings: Any = None) -> List[str]:
        """The same for editable installs."""
        return [*build_meta.get_requires_for_build_editable(config_settings), *library.missing_tools()]
