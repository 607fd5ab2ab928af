"""Ascend SHMEM's Python names, as `shmem` itself gives them: `shmem.aclshmem_init(...)` and so on.

They stand over an instance of the Ascend face, which is a world of its own beside those of shmem.init. On a host without an NPU the
tensors are CPU tensors. docs/ascend-differences.md tells what differs from Ascend's package.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Tuple

from . import _ascend, _pyshmem
from ._errors import from_status
from ._pyshmem import (
    InitAttr,
    InitStatus,
    OpEngineType,
    OptionalAttr,
    aclshmem_align,
    aclshmem_calloc,
    aclshmem_finalize,
    aclshmem_free,
    aclshmem_get_unique_id,
    aclshmem_global_exit,
    aclshmem_info_get_name,
    aclshmem_info_get_version,
    aclshmem_init,
    aclshmem_init_using_unique_id,
    aclshmem_malloc,
    aclshmem_ptr,
    aclshmem_team_get_config,
    aclshmemx_get_heap_base,
    aclshmemx_init_status,
    get_ffts_config,
    my_pe,
    pe_count,
    set_conf_store_tls,
    set_conf_store_tls_key,
    set_extern_logger,
    set_log_level,
    team_destroy,
    team_my_pe,
    team_n_pes,
    team_split_2d,
    team_split_strided,
    team_translate_pe,
)

_NATIVE_LOADED = True

aclshmem_finialize = aclshmem_finalize  # upstream's misspelt alias

aclshmem_getmem = _pyshmem.aclshmem_getmem
aclshmem_getmem_nbi = _pyshmem.aclshmem_getmem_nbi
aclshmem_putmem = _pyshmem.aclshmem_putmem
aclshmem_putmem_nbi = _pyshmem.aclshmem_putmem_nbi
aclshmem_signal_wait_until = _pyshmem.aclshmem_signal_wait_until
aclshmemx_putmem_signal = _pyshmem.aclshmemx_putmem_signal
aclshmemx_putmem_signal_nbi = _pyshmem.aclshmemx_putmem_signal_nbi

__all__ = [
    "InitAttr",
    "InitStatus",
    "OpEngineType",
    "OptionalAttr",
    "aclshmem_align",
    "aclshmem_calloc",
    "aclshmem_create_tensor",
    "aclshmem_finalize",
    "aclshmem_free",
    "aclshmem_free_tensor",
    "aclshmem_get_unique_id",
    "aclshmem_getmem",
    "aclshmem_getmem_nbi",
    "aclshmem_global_exit",
    "aclshmem_info_get_name",
    "aclshmem_info_get_version",
    "aclshmem_init",
    "aclshmem_init_using_unique_id",
    "aclshmem_malloc",
    "aclshmem_ptr",
    "aclshmem_putmem",
    "aclshmem_putmem_nbi",
    "aclshmem_signal_wait_until",
    "aclshmem_team_get_config",
    "aclshmemx_get_heap_base",
    "aclshmemx_init_status",
    "aclshmemx_putmem_signal",
    "aclshmemx_putmem_signal_nbi",
    "calc_nbytes",
    "construct_tensor_from_ptr",
    "get_ffts_config",
    "my_pe",
    "pe_count",
    "set_conf_store_tls",
    "set_conf_store_tls_key",
    "set_extern_logger",
    "set_log_level",
    "stream_create",
    "stream_destroy",
    "stream_synchronize",
    "team_destroy",
    "team_my_pe",
    "team_n_pes",
    "team_split_2d",
    "team_split_strided",
    "team_translate_pe",
]


def calc_nbytes(shape: Optional[Sequence[int]], dtype: Any) -> int:
    """Bytes of a tensor; 0 when shape is None. Does not block."""
    if shape is None:
        return 0
    count = 1
    for extent in shape:
        count *= int(extent)
    return count * int(dtype.itemsize)


def _strides(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        if extent < 0:
            raise ValueError(f"shape {tuple(shape)} has a negative extent")
        strides.append(step)
        step *= max(int(extent), 1)
    return tuple(reversed(strides))


def construct_tensor_from_ptr(
    data_ptr: int, shape: Sequence[int], dtype: Any, device: Any, stride: Optional[Sequence[int]] = None, storage_offset: Optional[int] = None
) -> Any:
    """A tensor over memory at an address, which it does not own. Does not block.

    Raises TypeError when data_ptr is no int or dtype no dtype, and ValueError for an address that cannot be one.
    """
    import torch

    if not isinstance(data_ptr, int) or isinstance(data_ptr, bool):
        raise TypeError(f"data_ptr is {data_ptr!r}; give an int")
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype is {dtype!r}; give a torch.dtype")
    if data_ptr <= 0:
        raise ValueError(f"data_ptr is {data_ptr}; it must be an address")
    shape = tuple(int(extent) for extent in shape)
    strides = _strides(shape) if stride is None else tuple(stride)
    offset = storage_offset or 0
    reach = offset + 1 + sum((extent - 1) * step for extent, step in zip(shape, strides)) if all(shape) else 0
    where = torch.device(device)
    if where.type == "npu":
        return _npu_tensor(data_ptr, max(reach, 1) * dtype.itemsize, shape, strides, offset, dtype, where)
    if reach == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    flat = torch.frombuffer((ctypes.c_uint8 * (reach * dtype.itemsize)).from_address(data_ptr), dtype=dtype)
    return flat.as_strided(shape, strides, offset)


def _npu_tensor(address: int, nbytes: int, shape: Tuple[int, ...], strides: Tuple[int, ...], offset: int, dtype: Any, device: Any) -> Any:
    import torch_npu

    storage = torch_npu._C._construct_storage_from_data_pointer(address, device, nbytes)
    told = {"data_ptr": address, "device": device, "nbytes": nbytes, "dtype": dtype, "size": shape, "stride": strides, "storage_offset": offset}
    return torch_npu._C._construct_NPU_Tensor_From_Storage_And_Metadata(told, storage)


def aclshmem_create_tensor(shape: Sequence[int], dtype: Any = None, device_id: int = 0) -> Any:
    """A tensor (float32 unless said) over new symmetric memory; free it with aclshmem_free_tensor. Collective. Blocks until all PEs call.

    With a device it is an npu tensor, and device_id the number of the device that this process uses. Without one the memory is the host's, the
    tensor is a CPU tensor, and device_id must be a number all the same.
    """
    import torch

    dtype = torch.float32 if dtype is None else dtype
    if device_id < 0:
        raise ValueError(f"device_id is {device_id}; it is at least 0")
    address = aclshmem_malloc(calc_nbytes(shape, dtype))
    there = _ascend.bind("aclshmem_cpu_on_device", "ptr")(address)
    return construct_tensor_from_ptr(address, shape, dtype, f"npu:{device_id}" if there else "cpu")


def aclshmem_free_tensor(tensor: Any) -> None:
    """Frees the memory of a tensor that aclshmem_create_tensor made; the tensor must not be used afterwards. Collective. Blocks until all PEs call."""
    aclshmem_free(tensor.data_ptr())


# ---- streams of a host: what acl.rt and torch_npu give on an NPU ------------------------------------------------------


def stream_create() -> int:
    """A stream of this process: a queue whose work runs in order on a thread of its own. Does not block."""
    stream = ctypes.c_void_p()
    if _ascend.bind("aclshmem_cpu_stream_create", "ptr")(ctypes.addressof(stream)):
        raise RuntimeError(f"stream_create: {_ascend.words()}")
    return int(stream.value or 0)


def stream_destroy(stream: int) -> None:
    """Finishes a stream's work and ends it. Blocks until the work is done."""
    destroy = _ascend.bind("aclshmem_cpu_stream_destroy", "ptr")
    if _ascend.interruptible(lambda: destroy(stream)):
        raise ValueError(f"stream_destroy: {stream:#x} is no stream that stream_create made")


def stream_synchronize(stream: int = 0) -> None:
    """Waits until a stream (0: the default one) is idle; raises what its work failed with. Blocks."""
    wait = _ascend.bind("aclshmem_cpu_stream_wait", "ptr")
    status = _ascend.interruptible(lambda: wait(stream))
    if status > 0:
        raise ValueError(f"stream_synchronize: {stream:#x} is no stream of this process")
    if status < 0:
        raise from_status(status, f"a task of stream {stream:#x} failed; the log has the reason", "stream")
