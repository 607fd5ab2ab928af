"""What torch calls dtypes and reductions, in the core's numbers."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Optional, Tuple

import torch

from .. import _abi
from .._errors import UnsupportedError
from .._lib import library
from .tensors import DTYPE_CODES

_D = _abi.DTYPE
_R = _abi.REDUCE

# dtype -> the core's code. A dtype that is not here can be moved (as bytes) and not be reduced.
DTYPES: Dict[torch.dtype, int] = DTYPE_CODES
BYTES = _D["U8"]

# Indexed by int(ReduceOp.op) of torch.
_OPERATORS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
_CODES = tuple(_R[name] for name in ("SUM", "AVG", "PROD", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL"))
PREMUL = _R["PREMUL"]

# Reductions of complex numbers that are reductions of their parts.
_PARTWISE = (_R["SUM"], _R["AVG"], _R["PREMUL"])

_known: Dict[Tuple[torch.dtype, int], Tuple[int, int]] = {}


# Looks up (dtype, int(ReduceOp.op)) without learning, as ctypes numbers, which a call takes faster. PREMUL_SUM is never among
# them, as its factor has to be read too.
_plain_known: Dict[Tuple[torch.dtype, int], Tuple[Any, Any]] = {}
known = _plain_known.get


def reduction(dtype: torch.dtype, operator: int) -> Tuple[int, int]:
    """Gives (dtype code, operator code) for a dtype and int(ReduceOp.op); raises UnsupportedError for a pair that has no meaning."""
    found = _known.get((dtype, operator))
    return found if found is not None else _learn(dtype, operator)


def known_codes(dtype: torch.dtype, operator: int) -> Optional[Tuple[int, int]]:
    """reduction() without raising: None for a pair that the core does not reduce."""
    try:
        return reduction(dtype, operator)
    except UnsupportedError:
        return None


def _learn(dtype: torch.dtype, operator: int) -> Tuple[int, int]:
    if not 0 <= operator < len(_CODES):
        raise UnsupportedError(f"reduction number {operator} of torch is not known here; use one of {', '.join(_OPERATORS)}")
    code = DTYPES.get(dtype)
    if code is None or not library().reduce_supported(code, _CODES[operator]):
        raise UnsupportedError(f"{_OPERATORS[operator]} is not defined for {dtype}; {_alternative(dtype, operator)}")
    pair = _known[(dtype, operator)] = (code, _CODES[operator])
    if pair[1] != PREMUL and not (dtype.is_complex and pair[1] in _PARTWISE):
        _plain_known[(dtype, operator)] = (ctypes.c_int32(pair[0]), ctypes.c_int32(pair[1]))
    return pair


def _alternative(dtype: torch.dtype, operator: int) -> str:
    if _OPERATORS[operator] in ("BAND", "BOR", "BXOR"):
        return "reduce an integer or bool view of the tensor"
    if dtype.is_complex:
        return "SUM, AVG and PREMUL_SUM are defined for complex numbers"
    return "convert the tensor to a floating dtype first"


def as_parts(tensor: torch.Tensor, operator: int) -> torch.Tensor:
    """Views a complex tensor as its real and imaginary parts where the reduction is the same on them."""
    if tensor.is_complex() and _CODES[operator] in _PARTWISE:
        return torch.view_as_real(tensor.resolve_conj())
    return tensor


def factor(reduce_op: Any) -> float:
    """The factor of PREMUL_SUM: a number, or a tensor with one element."""
    value = getattr(reduce_op, "factor", None)
    if value is None:
        value = reduce_op.__getstate__()[1]
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise UnsupportedError(f"the factor of PREMUL_SUM is a tensor of {value.numel()} elements; give one number")
        return float(value.item())
    return float(value)


def code_of(dtype: torch.dtype) -> int:
    """The code that tells peers which dtype is being moved; plain bytes for dtypes the core cannot name."""
    return DTYPES.get(dtype, BYTES)


def operator_name(operator: int) -> Optional[str]:
    """torch's name of int(ReduceOp.op)."""
    return _OPERATORS[operator] if 0 <= operator < len(_OPERATORS) else None
