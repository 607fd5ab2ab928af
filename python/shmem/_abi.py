"""The C interface as data: status codes, constants and prototypes of gshmem.h.

Nothing here loads or calls anything. A test parses the header and compares every line with these tables.
"""

from __future__ import annotations

from typing import Dict

ABI_VERSION = 1
UID_BYTES = 128

DEFAULT_TIMEOUT = -(2**63)
FOREVER = -1

ASYNC = 1
NOTIFY = 2
ZERO = 1
ON_DEVICE = 4

ANY_SOURCE = -1
ANY_TAG = -(2**63)

STATUS: Dict[str, int] = {
    "OK": 0,
    "PENDING": 1,
    "EINVAL": -101,
    "EPE": -102,
    "ENOTSYM": -103,
    "EALIGN": -104,
    "EUNSUPPORTED": -105,
    "ETIMEOUT": -106,
    "ECANCELED": -107,
    "ETRUNCATED": -108,
    "ESTALE": -201,
    "EPOISONED": -202,
    "EMISMATCH": -203,
    "EHEAPFULL": -204,
    "EASYMMETRIC": -205,
    "EPEERDEAD": -301,
    "EUNREACHABLE": -302,
    "EPEERLEFT": -303,
    "EABORTED": -304,
    "EAUTH": -305,
    "EVERSION": -306,
    "ENOTINIT": -401,
    "EFINALIZED": -402,
    "EFORKED": -403,
    "ESYSTEM": -404,
    "ENOMEM": -405,
    "ERENDEZVOUS": -406,
    "ECONFIG": -407,
    "EINTERNAL": -501,
}

# Enumerations of the header; the key is the enumerator without its GSHMEM_ prefix.
ATOMIC: Dict[str, int] = {
    "A_SET": 1,
    "A_FETCH": 2,
    "A_SWAP": 3,
    "A_CSWAP": 4,
    "A_ADD": 5,
    "A_INC": 6,
    "A_AND": 7,
    "A_OR": 8,
    "A_XOR": 9,
}
SIGNAL: Dict[str, int] = {"SIGNAL_SET": 0, "SIGNAL_ADD": 1}
MEMORY: Dict[str, int] = {"MEMORY_OTHER": 0, "MEMORY_HOST": 1, "MEMORY_DEVICE": 2, "MEMORY_ON_DEVICE": 3}
COMPARE: Dict[str, int] = {"CMP_EQ": 0, "CMP_NE": 1, "CMP_GT": 2, "CMP_GE": 3, "CMP_LT": 4, "CMP_LE": 5}
COLLECTIVE: Dict[str, int] = {
    "BARRIER": 1,
    "SYNC": 2,
    "BROADCAST": 3,
    "ALL_REDUCE": 4,
    "REDUCE": 5,
    "ALL_GATHER": 6,
    "REDUCE_SCATTER": 7,
    "ALL_TO_ALL": 8,
    "GATHER": 9,
    "SCATTER": 10,
    "ALL_GATHER_V": 11,
    "ALL_TO_ALL_V": 12,
}
DTYPE: Dict[str, int] = {
    "U8": 1,
    "I8": 2,
    "U16": 3,
    "I16": 4,
    "U32": 5,
    "I32": 6,
    "U64": 7,
    "I64": 8,
    "F16": 9,
    "BF16": 10,
    "F32": 11,
    "F64": 12,
    "BOOL": 13,
    "C64": 14,
    "C128": 15,
    "C32": 16,
    "F8E4M3FN": 17,
    "F8E5M2": 18,
    "F8E4M3FNUZ": 19,
    "F8E5M2FNUZ": 20,
}
REDUCE: Dict[str, int] = {
    "SUM": 1,
    "PROD": 2,
    "MIN": 3,
    "MAX": 4,
    "BAND": 5,
    "BOR": 6,
    "BXOR": 7,
    "AVG": 8,
    "PREMUL": 9,
}

# name -> "result: argument argument ...". i32 u32 i64 u64 f64 are numbers, ptr is any address, str is char *.
PROTOTYPES: Dict[str, str] = {
    "gshmem_last_error": "str:",
    "gshmem_status_name": "str: i32",
    "gshmem_abi_version": "u32:",
    "gshmem_version": "str:",
    "gshmem_request_wait": "i32: u64 i64",
    "gshmem_request_result": "i32: u64 ptr u32",
    "gshmem_request_release": "i32: u64",
    "gshmem_completions_wait": "i32: u64 i64 ptr u32 ptr",
    "gshmem_uid_create": "i32: str ptr",
    "gshmem_init_start": "i32: ptr i64 ptr",
    "gshmem_init": "i32: ptr ptr ptr",
    "gshmem_finalize_start": "i32: u64 i64 i64 ptr",
    "gshmem_finalize": "i32: u64 i64",
    "gshmem_abort": "i32: u64 i32",
    "gshmem_my_pe": "i32: u64",
    "gshmem_n_pes": "i32: u64",
    "gshmem_info": "i32: u64 ptr u64 ptr",
    "gshmem_alloc_start": "i32: u64 u64 u64 u32 i64 i64 ptr",
    "gshmem_alloc": "i32: u64 u64 u64 u32 i64 ptr ptr",
    "gshmem_alloc_local": "i32: u64 u64 u64 u32 ptr ptr",
    "gshmem_free_start": "i32: u64 i64 i64 ptr",
    "gshmem_free": "i32: u64 i64",
    "gshmem_block_drop": "i32: u64",
    "gshmem_collect_start": "i32: u64 i64 i64 ptr",
    "gshmem_collect": "i32: u64 i64",
    "gshmem_block_of": "i32: u64 ptr ptr ptr ptr",
    "gshmem_ptr": "i32: u64 ptr i32 ptr",
    "gshmem_heap_stats": "i32: u64 ptr",
    "gshmem_team_split_strided_start": "i32: u64 i32 i32 i32 i64 i64 ptr",
    "gshmem_team_split_strided": "i32: u64 i32 i32 i32 i64 ptr",
    "gshmem_team_split_2d_start": "i32: u64 i32 i64 i64 ptr",
    "gshmem_team_split_2d": "i32: u64 i32 i64 ptr ptr",
    "gshmem_team_create_start": "i32: u64 ptr i32 u64 i64 i64 ptr",
    "gshmem_team_create": "i32: u64 ptr i32 u64 i64 ptr",
    "gshmem_team_destroy": "i32: u64",
    "gshmem_team_my_pe": "i32: u64",
    "gshmem_team_n_pes": "i32: u64",
    "gshmem_team_translate": "i32: u64 i32 u64 ptr",
    "gshmem_team_set_timeout": "i32: u64 i64",
    "gshmem_team_health": "i32: u64",
    "gshmem_put": "i32: u64 ptr ptr u64 i32",
    "gshmem_get": "i32: u64 ptr ptr u64 i32",
    "gshmem_put_nbi": "i32: u64 ptr ptr u64 i32",
    "gshmem_get_nbi": "i32: u64 ptr ptr u64 i32",
    "gshmem_iput": "i32: u64 ptr ptr i64 i64 u64 u64 i32",
    "gshmem_iget": "i32: u64 ptr ptr i64 i64 u64 u64 i32",
    "gshmem_put_many": "i32: u64 ptr ptr ptr ptr u64 ptr",
    "gshmem_get_many": "i32: u64 ptr ptr ptr ptr u64 ptr",
    "gshmem_p": "i32: u64 ptr u64 i32 i32",
    "gshmem_g": "i32: u64 ptr i32 i32 ptr",
    "gshmem_fence": "i32: u64",
    "gshmem_quiet": "i32: u64 i64",
    "gshmem_atomic": "i32: u64 i32 i32 ptr u64 u64 i32 ptr",
    "gshmem_put_signal": "i32: u64 ptr ptr u64 ptr u64 i32 i32",
    "gshmem_put_signal_nbi": "i32: u64 ptr ptr u64 ptr u64 i32 i32",
    "gshmem_wait_until_start": "i32: u64 ptr i32 i32 i32 u64 i64 i64 ptr",
    "gshmem_wait_until": "i32: u64 ptr i32 i32 i32 u64 i64 ptr",
    "gshmem_test": "i32: u64 ptr i32 i32 i32 u64 ptr",
    "gshmem_collective": "i32: u64 i32 ptr ptr u64 i32 i32 i32 f64 ptr u32 i64 i64 ptr",
    "gshmem_barrier": "i32: u64",
    "gshmem_sync": "i32: u64",
    "gshmem_broadcast": "i32: u64 ptr ptr u64 i32",
    "gshmem_all_reduce": "i32: u64 ptr ptr u64 i32 i32",
    "gshmem_reduce": "i32: u64 ptr ptr u64 i32 i32 i32",
    "gshmem_all_gather": "i32: u64 ptr ptr u64",
    "gshmem_reduce_scatter": "i32: u64 ptr ptr u64 i32 i32",
    "gshmem_all_to_all": "i32: u64 ptr ptr u64",
    "gshmem_gather": "i32: u64 ptr ptr u64 i32",
    "gshmem_scatter": "i32: u64 ptr ptr u64 i32",
    "gshmem_reduce_supported": "i32: i32 i32",
    "gshmem_device_open_start": "i32: u64 str u64 i64 i64 ptr",
    "gshmem_device_open": "i32: u64 str u64 i64",
    "gshmem_device_health": "i32: u64",
    "gshmem_device_stats": "i32: u64 ptr",
    "gshmem_device_state": "i32: u64 ptr",
    "gshmem_team_index": "i32: u64 ptr",
    "gshmem_kind_of": "i32: u64 ptr ptr",
    "gshmem_stream_create": "i32: u64 ptr",
    "gshmem_stream_destroy": "i32: u64 ptr",
    "gshmem_stream_join": "i32: u64 ptr ptr",
    "gshmem_stream_wait_start": "i32: u64 ptr i64 i64 ptr",
    "gshmem_stream_wait": "i32: u64 ptr i64",
    "gshmem_copy_on_stream": "i32: u64 ptr ptr u64 ptr",
    "gshmem_put_on_stream": "i32: u64 ptr ptr u64 i32 ptr",
    "gshmem_get_on_stream": "i32: u64 ptr ptr u64 i32 ptr",
    "gshmem_put_signal_on_stream": "i32: u64 ptr ptr u64 ptr i32 i32 i32 ptr",
    "gshmem_signal_on_stream": "i32: u64 ptr i32 i32 i32 ptr",
    "gshmem_signal_wait_on_stream": "i32: u64 ptr i32 i32 ptr",
    "gshmem_quiet_on_stream": "i32: u64 ptr",
    "gshmem_barrier_on_stream": "i32: u64 ptr",
    "gshmem_collective_on_stream": "i32: u64 i32 ptr ptr u64 i32 i32 i32 ptr",
    "gshmem_send": "i32: u64 ptr u64 i32 i64 u32 i64 i64 ptr",
    "gshmem_recv": "i32: u64 ptr u64 i32 i64 u32 i64 i64 ptr",
}

# Fields of gshmem_options and gshmem_heap_stat, in order.
OPTIONS: Dict[str, str] = {
    "size": "u64",
    "me": "i32",
    "n": "i32",
    "heap_bytes": "u64",
    "timeout_ns": "i64",
    "method": "str",
    "uid": "ptr",
    "endpoint": "str",
    "secret": "str",
    "transport": "str",
    "interface": "str",
    "label": "str",
    "device": "str",
    "device_bytes": "u64",
}
HEAP_STAT: Dict[str, str] = {
    "size": "u64",
    "low": "u64",
    "bytes": "u64",
    "used": "u64",
    "largest_hole": "u64",
    "blocks": "u64",
    "dropped": "u64",
}
