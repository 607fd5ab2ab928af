"""torch_npu as this package uses it: only when the program has imported it, and only through its public streams and events.

torch_npu runs operators from a queue of its own (TASK_QUEUE_ENABLE): what was called may not be on the stream yet. Copies and
events of torch go through the same queue and keep the order; whoever takes a raw stream must take it from raw_stream, which
empties the queue first.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

import torch

from .._errors import InvalidArgumentError

KIND = "npu"


def loaded() -> bool:
    """Whether the program has torch_npu, so that npu tensors can exist."""
    return "torch_npu" in sys.modules and hasattr(torch, "npu")


def version() -> Optional[str]:
    """torch_npu's version, None when it is not imported."""
    module = sys.modules.get("torch_npu")
    return getattr(module, "__version__", None) if module is not None else None


def runtime() -> Any:
    """torch.npu: devices, streams and events."""
    return torch.npu  # type: ignore[attr-defined]


def on_npu(value: Any) -> bool:
    """Whether a tensor lives on an npu."""
    return bool(value.device.type == KIND)


def device_of(tensors: Iterable[torch.Tensor]) -> Optional[torch.device]:
    """The npu that tensors of one call live on, None when all are elsewhere; raises when there are several."""
    found: Optional[torch.device] = None
    for tensor in tensors:
        device = tensor.device
        if device.type == KIND:
            if found is not None and device != found:
                raise InvalidArgumentError(f"the tensors of one call are on {found} and {device}; move them to one device")
            found = device
    return found


def raw_stream(device: Any = None) -> int:
    """The aclrtStream of the current stream, with everything that was called before already on it. Blocks: for torch_npu's queue."""
    return int(runtime().current_stream(device).npu_stream)


# What torch_npu copies in every layout. Other dtypes (complex, 8-bit floats) travel as integers of their size.
_COPIED = frozenset(
    getattr(torch, name) for name in ("float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool") if hasattr(torch, name)
)
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def movable(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as a dtype that every copy of the device takes. The tensor has no pending conjugation or sign."""
    if tensor.dtype in _COPIED:
        return tensor
    if tensor.element_size() not in _INTEGERS:
        tensor = torch.view_as_real(tensor)
    return tensor.view(_INTEGERS[tensor.element_size()])


def bare(tensor: torch.Tensor) -> Tuple[torch.Tensor, bool, bool]:
    """The elements as they lie in memory, and whether the tensor means their conjugates, and their negatives."""
    turned, negative = tensor.is_conj(), tensor.is_neg()
    tensor = tensor.detach()
    if turned:
        tensor = tensor.conj()
    if negative:
        tensor = torch._neg_view(tensor)
    return tensor, turned, negative


_streams: Dict[int, Dict[int, Any]] = {}  # of each device, the streams that operations of this package or its tensors' makers run on


def note_stream(stream: Any) -> None:
    """Remembers a stream that may use symmetric memory. torch_npu has a few dozen; side streams of the program's own are the program's to order."""
    known = _streams.setdefault(stream.device.index, {})
    if stream.stream_id not in known:
        known[stream.stream_id] = stream


def mark_streams(index: int) -> Callable[[bool], bool]:
    """Marks what is queued now on a device's noted and current streams. Gives what says whether all is over; with True, when it is.

    On a device that has failed everything is over. Blocks: no.
    """
    module = runtime()
    events = []
    try:
        with module.device(index):
            note_stream(module.current_stream(index))
            for stream in list(_streams[index].values()):
                event = module.Event()
                event.record(stream)
                events.append(event)
    except RuntimeError:
        events.clear()

    def passed(wait: bool) -> bool:
        try:
            while events:
                if wait:
                    events[-1].synchronize()
                elif not events[-1].query():
                    return False
                events.pop()
        except RuntimeError:
            events.clear()
        return True

    return passed
