"""Functions of the Ascend binding that only pass their arguments on, as data."""

from __future__ import annotations

import functools
from typing import Dict, Iterator, Tuple

TYPES = "float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 char".split()
WAIT_TYPES = [name for name in TYPES if name != "double"]
BITS = (8, 16, 32, 64, 128)

# C name, parameters as name:kind, result, whether it waits for other PEs
Row = Tuple[str, str, str, bool]

_MEM = "dst:ptr src:ptr {0}:{1} pe:i32"
_STRIDED = "dest:ptr source:ptr dst:diff sst:diff nelems:size pe:i32"
_SIGNAL = "dst:ptr src:ptr {0}:size sig:ptr signal:i32 sig_op:i32 pe:i32"

_PLAIN = {
    "aclshmemx_putmem_on_stream": "dst:ptr src:ptr elem_size:size pe:i32 stream:ptr",
    "aclshmemx_getmem_on_stream": "dst:ptr src:ptr elem_size:size pe:i32 stream:ptr",
    "aclshmemx_signal_op_on_stream": "sig_addr:ptr signal:i32 sig_op:i32 pe:i32 stream:ptr",
    "aclshmemx_signal_wait_until_on_stream": "sig_addr:ptr cmp:i32 cmp_val:i32 stream:ptr",
    "aclshmemx_quiet_on_stream": "stream:ptr",
    "aclshmemx_putmem_signal": _SIGNAL.format("elem_size"),
    "aclshmemx_putmem_signal_nbi": _SIGNAL.format("elem_size"),
    "aclshmem_putmem": _MEM.format("elem_size", "size"),
    "aclshmem_getmem": _MEM.format("elem_size", "size"),
    "aclshmem_putmem_nbi": _MEM.format("elem_size", "size"),
    "aclshmem_getmem_nbi": _MEM.format("elem_size", "size"),
}

# Suffix of aclshmem_<type>_: parameters; T is the type. The waits block.
_WAITS = {
    "wait_until": "ivar:ptr cmp:i32 cmp_value:T",
    "wait": "ivar:ptr cmp_value:T",
    "wait_until_all": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_value:T",
    "wait_until_any": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_value:T res_out:ptr",
    "wait_until_some": "ivars:ptr nelems:size indices:ptr status:ptr cmp:i32 cmp_value:T res_out:ptr",
    "wait_until_all_vector": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_values:ptr",
    "wait_until_any_vector": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_values:ptr res_out:ptr",
    "wait_until_some_vector": "ivars:ptr nelems:size indices:ptr status:ptr cmp:i32 cmp_values:ptr res_out:ptr",
    "test": "ivar:ptr cmp:i32 cmp_value:T res_out:ptr",
    "test_any": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_value:T res_out:ptr",
    "test_some": "ivars:ptr nelems:size indices:ptr status:ptr cmp:i32 cmp_value:T res_out:ptr",
    "test_all_vector": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_values:ptr res_out:ptr",
    "test_any_vector": "ivars:ptr nelems:size status:ptr cmp:i32 cmp_values:ptr res_out:ptr",
    "test_some_vector": "ivars:ptr nelems:size indices:ptr status:ptr cmp:i32 cmp_values:ptr res_out:ptr",
}


def _rows() -> Iterator[Tuple[str, Row]]:
    for name, parameters in _PLAIN.items():
        yield name, (name, parameters, "none", False)
    yield "aclshmem_signal_wait_until", ("aclshmem_signal_wait_until", "sig_addr:ptr cmp:i32 cmp_val:i32", "none", True)
    for bits in BITS:
        for form in ("put{0}", "get{0}", "put{0}_nbi", "get{0}_nbi"):
            name = "aclshmem_" + form.format(bits)
            yield name, (name, _MEM.format("elem_size", "u32"), "none", False)
        for form in ("iput{0}", "iget{0}"):
            name = "aclshmem_" + form.format(bits)
            yield name, (name, _STRIDED, "none", False)
        for form in ("put{0}_signal", "put{0}_signal_nbi"):
            yield "aclshmemx_" + form.format(bits), ("aclshmem_" + form.format(bits), _SIGNAL.format("nelems"), "none", False)
    for kind in TYPES:
        stem = f"aclshmem_{kind}_"
        yield stem + "iput", (stem + "iput", _STRIDED, "none", False)
        yield stem + "iget", (stem + "iget", _STRIDED, "none", False)
        yield stem + "p", (stem + "p", f"dst:ptr value:{kind} pe:i32", "none", False)
        yield stem + "g", (stem + "g", "src:ptr pe:i32", kind, False)
    for kind in WAIT_TYPES:
        for form, parameters in _WAITS.items():
            name = f"aclshmem_{kind}_{form}"
            yield name, (name, parameters.replace(":T", f":{kind}"), "none", form.startswith("wait"))


@functools.cache
def signatures() -> Dict[str, Row]:
    """Python name -> C name, parameters, result, whether it waits."""
    return dict(_rows())
