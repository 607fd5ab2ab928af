"""Values for tests: distinct per element and PE, and guarded targets."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator

import torch

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
MOVABLE = INTEGERS + FLOATS + COMPLEX + (torch.bool, torch.float8_e4m3fn, torch.float8_e5m2)


DEVICE = os.environ.get("SHMEM_TEST_DEVICE", "cpu")
_device = [DEVICE]


def here(value: Any) -> Any:
    """A tensor or a module on the device under test."""
    return value.to(_device[-1]) if _device[-1] != "cpu" else value


def blank(shape: Any, dtype: torch.dtype) -> torch.Tensor:
    """Zeros of any dtype: an npu fills not all of them."""
    return here(torch.zeros(shape, dtype=dtype, device="cpu"))


@contextlib.contextmanager
def on_host() -> Iterator[None]:
    """Within it, everything is made on the CPU: what results on the device are compared with."""
    _device.append("cpu")
    try:
        with torch.device("cpu"):
            yield
    finally:
        _device.pop()


def host_memory(body: Any) -> Any:
    """For a body that is about host memory: on a device it runs in a world with a device, and everything it makes is on the host."""
    body.ON_HOST = True
    return body


def blocking(body: Any) -> Any:
    """For a body about calls that block the thread: on a device operations are queued, and those that go through the host (SHMEM_TEST_STAGED) block."""
    return body if os.environ.get("SHMEM_TEST_STAGED") == "1" else host_memory(body)


def pattern(nbytes: int, pe: int, salt: int = 0) -> torch.Tensor:
    """Bytes that differ between elements, PEs and salts."""
    at = torch.arange(nbytes, dtype=torch.int64, device="cpu")
    return here(((at * 31 + (at >> 8) * 7 + pe * 101 + salt * 57 + 13) % 251).to(torch.uint8))


def values(shape: Any, dtype: torch.dtype, pe: int, salt: int = 0) -> torch.Tensor:
    """Small numbers of a dtype, whose sums and products over 8 PEs are exact or well defined."""
    generator = torch.Generator("cpu").manual_seed(1000 * salt + 17 * pe + 5)
    with torch.device("cpu"):
        if dtype == torch.bool:
            made = torch.randint(0, 2, shape, generator=generator).to(torch.bool)
        elif dtype.is_complex:
            whole = torch.randint(-3, 4, (*shape, 2), generator=generator).to(torch.float64)
            made = torch.view_as_complex(whole).to(dtype)
        else:
            made = torch.randint(0 if dtype == torch.uint8 else -3, 4, shape, generator=generator).to(dtype)
    return here(made)


class Guarded:
    """A slice of a symmetric byte tensor with canaries on both sides."""

    def __init__(self, whole: torch.Tensor, offset: int, nbytes: int) -> None:
        """Paints the whole tensor, then shows the middle."""
        whole.fill_(0xA5)
        self.whole, self.offset, self.nbytes = whole, offset, nbytes
        self.inner = whole[offset : offset + nbytes]

    def check(self) -> None:
        """Raises when a byte outside the middle changed."""
        assert bool((self.whole[: self.offset] == 0xA5).all()), "bytes before the target changed"
        assert bool((self.whole[self.offset + self.nbytes :] == 0xA5).all()), "bytes behind the target changed"
