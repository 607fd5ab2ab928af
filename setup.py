"""Builds the wheel: py3-none-<platform>, with libshmem.so and its headers inside."""

from __future__ import annotations

import os
import shutil
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

ROOT = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(ROOT, "toolchain"))

import library  # noqa: E402


class BuildWithLibrary(build_py):
    """Copies the Python files, then builds libshmem.so and copies the headers beside them."""

    def run(self) -> None:
        """Builds into the wheel's tree, or into the source tree for an editable install."""
        super().run()
        home = os.path.join(ROOT, "python") if self.editable_mode else os.path.abspath(self.build_lib)
        package = os.path.join(home, "shmem")
        library.build(os.path.join(package, "lib", "libshmem.so"))
        if not self.editable_mode:
            include = os.path.join(package, "include")
            shutil.copytree(os.path.join(ROOT, "capi", "include"), include, dirs_exist_ok=True)
            # What "shmem.h" includes when it is compiled for the device.
            shutil.copytree(os.path.join(ROOT, "kernels", "include", "device"), os.path.join(include, "ascend", "device"), dirs_exist_ok=True)


class PlatformWheel(bdist_wheel):
    """Tags the wheel by what the library needs, not by this Python: it serves every Python from 3.9 on."""

    def finalize_options(self) -> None:
        """Says that the wheel is not pure."""
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple:
        """py3-none-manylinux_X_Y_machine."""
        built = os.path.join(self.bdist_dir or "", "shmem", "lib", "libshmem.so")
        for place in (built, os.path.join(ROOT, "build", "lib", "shmem", "lib", "libshmem.so")):
            if os.path.isfile(place):
                return "py3", "none", library.platform_tag(place)
        return "py3", "none", super().get_tag()[2]


class BinaryDistribution(Distribution):
    """Makes setuptools put the files where a platform wheel has them."""

    def has_ext_modules(self) -> bool:
        """There is compiled code inside."""
        return True


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=BinaryDistribution)
