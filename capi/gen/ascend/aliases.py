"""Writes capi/include/ascend/shmem_aliases.h: the short names of the Ascend interface as macros.

Run it after changing the tables: python3 capi/gen/ascend/aliases.py
"""

from __future__ import annotations

import os
from typing import Iterator, Tuple

TYPES = "float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 char".split()

# short prefix, long prefix, the names behind them
SAME_SUFFIX = [
    (
        "shmem_",
        "aclshmem_",
        "malloc calloc align free finalize info_get_version info_get_name global_exit my_pe n_pes ptr putmem getmem putmem_nbi getmem_nbi "
        "team_split_strided team_split_2d team_translate_pe team_destroy team_my_pe team_n_pes team_get_config error_code_t transport_t "
        "init_optional_attr_t decrypt_handler",
    ),
    (
        "shmem_",
        "aclshmemx_",
        "init_status get_uniqueid set_attr_uniqueid_args init_attr set_config_store_tls_key set_conf_store_tls putmem_signal putmem_signal_nbi "
        "signal_op_on_stream signal_wait_until_on_stream handle_wait set_extern_logger set_log_level init_status_t init_attr_t uniqueid_t",
    ),
    ("shmemx_", "aclshmemx_", "finalize barrier_on_stream barrier_all_on_stream getmem_on_stream putmem_on_stream quiet_on_stream bootstrap_t"),
]

# {0} is the type; upstream's table misspells one target of these, which makes shmem_put_double_mem_signal useless there.
PER_TYPE = [
    ("shmem_put_{0}_mem", "aclshmem_{0}_put"),
    ("shmem_put_{0}_mem_nbi", "aclshmem_{0}_put_nbi"),
    ("shmem_get_{0}_mem", "aclshmem_{0}_get"),
    ("shmem_get_{0}_mem_nbi", "aclshmem_{0}_get_nbi"),
    ("shmem_put_{0}_mem_signal", "aclshmem_{0}_put_signal"),
    ("shmem_put_{0}_mem_signal_nbi", "aclshmem_{0}_put_signal_nbi"),
    ("shmem_{0}_p", "aclshmem_{0}_p"),
    ("shmem_{0}_g", "aclshmem_{0}_g"),
]

OTHERS = [
    ("shmem_mte_set_ub_params", "aclshmemx_set_mte_config"),
    ("shmem_rdma_set_ub_params", "aclshmemx_set_rdma_config"),
    ("shmemx_get_ffts_config", "util_get_ffts_config"),
    ("aclshmemi_sync_bit", "aclshmemx_sync_bit"),
]

HEAD = """/*
 * shmem_aliases.h - Ascend's short names. Macros only: the library's own shmem_* symbols are OpenSHMEM's.
 *
 * Written by capi/gen/ascend/aliases.py. Define ACLSHMEM_NO_ALIASES to go without.
 */
#if !defined(ACLSHMEM_NO_ALIASES) && !defined(ACLSHMEM_ALIASES_H)
#define ACLSHMEM_ALIASES_H

"""


def aliases() -> Iterator[Tuple[str, str]]:
    """All (short, long) pairs."""
    for short, long, names in SAME_SUFFIX:
        for name in names.split():
            yield short + name, long + name
    for short, long in PER_TYPE:
        for name in TYPES:
            yield short.format(name), long.format(name)
    yield from OTHERS


def text() -> str:
    """The header."""
    return HEAD + "".join(f"#define {short} {long}\n" for short, long in aliases()) + "\n#endif\n"


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "include", "ascend", "shmem_aliases.h"), "w", encoding="utf-8") as out:
        out.write(text())
