"""The one table of the OpenSHMEM face: which types there are, which families of functions, and over which types each runs.

Everything of that face which repeats per type comes from here: the header, the C11 generics, the list of exported
symbols, the X-macro lists of the C files, and the table of the test that calls every function.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple

Types = Tuple[str, ...]

# Name in function names -> C type.
C_TYPES: Dict[str, str] = {
    "float": "float",
    "double": "double",
    "longdouble": "long double",
    "char": "char",
    "schar": "signed char",
    "short": "short",
    "int": "int",
    "long": "long",
    "longlong": "long long",
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "ulonglong": "unsigned long long",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "size": "size_t",
    "ptrdiff": "ptrdiff_t",
    "complexf": "shmem_complexf_t",
    "complexd": "shmem_complexd_t",
}

# Types that no other type is an alias of: what _Generic may list.
DISTINCT: Types = tuple(C_TYPES)[:14] + ("complexf", "complexd")

# Exact-width types stand in a generic where the family lacks the type they are an alias of.
SIGNED_ALIASES: Dict[str, str] = {"int8": "schar", "int16": "short", "int32": "int", "int64": "long"}

RMA: Types = tuple(name for name in C_TYPES if not name.startswith("complex"))
_FIXED: Types = ("int32", "int64", "uint32", "uint64", "size", "ptrdiff")
AMO: Types = ("int", "long", "longlong", "uint", "ulong", "ulonglong") + _FIXED
AMO_ALL: Types = ("float", "double") + AMO  # fetch, set, swap
AMO_BITS: Types = ("uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64")
WAIT: Types = ("short", "int", "long", "longlong", "ushort", "uint", "ulong", "ulonglong") + _FIXED
WAIT_OLD: Types = ("short", "int", "long", "longlong")

_SETS_BITS: Types = ("short", "int", "long", "longlong")
_SETS_ORDER: Types = _SETS_BITS + ("float", "double", "longdouble")
_SETS_SUM: Types = _SETS_ORDER + ("complexf", "complexd")
_TEAM_BITS: Types = (
    ("uchar", "ushort", "uint", "ulong", "ulonglong")
    + ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "size")
    + _SETS_BITS  # deprecated
)

SIZES: Tuple[int, ...] = (8, 16, 32, 64, 128)


class Family(NamedTuple):
    """Functions that differ by type only. {T} and {N} in the prototype are the C type and its name."""

    suffix: str  # shmem_{N}_suffix
    types: Types
    result: str
    arguments: str
    ctx: bool = False  # also as shmem_ctx_{N}_suffix(ctx, ...)
    by: int = 0  # the argument (without ctx) whose type picks the C11 generic; -1: no generic


class Group(NamedTuple):
    """Families under one heading of the header."""

    title: str
    families: List[Family]


_PUT = "{T} *dest, const {T} *source, size_t nelems, int pe"
_STRIDED = "{T} *dest, const {T} *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe"
_SIGNAL = "{T} *dest, const {T} *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe"

_RMA_GROUP = Group(
    "Remote memory access. put returns when source may be reused; get returns with the data; the nbi forms finish at the next quiet",
    [
        Family("put", RMA, "void", _PUT, True),
        Family("get", RMA, "void", _PUT, True),
        Family("put_nbi", RMA, "void", _PUT, True),
        Family("get_nbi", RMA, "void", _PUT, True),
        Family("p", RMA, "void", "{T} *dest, {T} value, int pe", True),
        Family("g", RMA, "{T}", "const {T} *source, int pe", True),
        Family("iput", RMA, "void", _STRIDED, True),
        Family("iget", RMA, "void", _STRIDED, True),
        Family("put_signal", RMA, "void", _SIGNAL, True),
        Family("put_signal_nbi", RMA, "void", _SIGNAL, True),
    ],
)


def _fetching(op: str, types: Types, value: str) -> List[Family]:
    """An atomic that gives the old value, and its nbi form that stores it at the next quiet."""
    return [
        Family(f"atomic_{op}", types, "{T}", "{T} *dest" + value + ", int pe", True),
        Family(f"atomic_{op}_nbi", types, "void", "{T} *fetch, {T} *dest" + value + ", int pe", True),
    ]


def _atomics() -> List[Family]:
    made = [
        Family("atomic_fetch", AMO_ALL, "{T}", "const {T} *source, int pe", True),
        Family("atomic_fetch_nbi", AMO_ALL, "void", "{T} *fetch, const {T} *source, int pe", True),
        Family("atomic_set", AMO_ALL, "void", "{T} *dest, {T} value, int pe", True),
    ]
    made += _fetching("swap", AMO_ALL, ", {T} value")
    made += _fetching("compare_swap", AMO, ", {T} cond, {T} value")
    made += _fetching("fetch_inc", AMO, "")
    made += [Family("atomic_inc", AMO, "void", "{T} *dest, int pe", True)]
    made += _fetching("fetch_add", AMO, ", {T} value")
    made += [Family("atomic_add", AMO, "void", "{T} *dest, {T} value, int pe", True)]
    for op in ("and", "or", "xor"):
        made += _fetching(f"fetch_{op}", AMO_BITS, ", {T} value")
        made += [Family(f"atomic_{op}", AMO_BITS, "void", "{T} *dest, {T} value, int pe", True)]
    return made


_OLD_ATOMICS = [
    Family("fetch", AMO_ALL, "{T}", "const {T} *source, int pe"),
    Family("set", AMO_ALL, "void", "{T} *dest, {T} value, int pe"),
    Family("swap", AMO_ALL, "{T}", "{T} *dest, {T} value, int pe"),
    Family("cswap", AMO, "{T}", "{T} *dest, {T} cond, {T} value, int pe"),
    Family("finc", AMO, "{T}", "{T} *dest, int pe"),
    Family("inc", AMO, "void", "{T} *dest, int pe"),
    Family("fadd", AMO, "{T}", "{T} *dest, {T} value, int pe"),
    Family("add", AMO, "void", "{T} *dest, {T} value, int pe"),
]


def _waits() -> List[Family]:
    one = "{T} *ivar, int cmp, {T} cmp_value"
    set_, some = "{T} *ivars, size_t nelems", ", size_t *indices"
    tail = ", const int *status, int cmp, {T} cmp_value"
    vector = ", const int *status, int cmp, {T} *cmp_values"
    made = []
    for verb, answer in (("wait_until", "void"), ("test", "int")):
        made += [
            Family(verb, WAIT, answer, one),
            Family(f"{verb}_all", WAIT, answer, set_ + tail),
            Family(f"{verb}_any", WAIT, "size_t", set_ + tail),
            Family(f"{verb}_some", WAIT, "size_t", set_ + some + tail),
            Family(f"{verb}_all_vector", WAIT, answer, set_ + vector),
            Family(f"{verb}_any_vector", WAIT, "size_t", set_ + vector),
            Family(f"{verb}_some_vector", WAIT, "size_t", set_ + some + vector),
        ]
    return made + [Family("wait", WAIT_OLD, "void", "{T} *ivar, {T} cmp_value", by=-1)]


def _collectives() -> List[Family]:
    move = "shmem_team_t team, {T} *dest, const {T} *source, size_t nelems"
    made = [
        Family("broadcast", RMA, "int", move + ", int PE_root", by=1),
        Family("collect", RMA, "int", move, by=1),
        Family("fcollect", RMA, "int", move, by=1),
        Family("alltoall", RMA, "int", move, by=1),
        Family("alltoalls", RMA, "int", "shmem_team_t team, {T} *dest, const {T} *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems", by=1),
    ]
    for op, types in REDUCTIONS:
        made.append(Family(f"{op}_reduce", types, "int", "shmem_team_t team, {T} *dest, const {T} *source, size_t nreduce", by=1))
    return made


REDUCTIONS: List[Tuple[str, Types]] = [
    ("and", _TEAM_BITS),
    ("or", _TEAM_BITS),
    ("xor", _TEAM_BITS),
    ("max", RMA),
    ("min", RMA),
    ("sum", RMA + ("complexf", "complexd")),
    ("prod", RMA + ("complexf", "complexd")),
]

OLD_REDUCTIONS: List[Tuple[str, Types]] = [
    ("and", _SETS_BITS),
    ("or", _SETS_BITS),
    ("xor", _SETS_BITS),
    ("max", _SETS_ORDER),
    ("min", _SETS_ORDER),
    ("sum", _SETS_SUM),
    ("prod", _SETS_SUM),
]

_TO_ALL = "{T} *dest, const {T} *source, int nreduce, int PE_start, int logPE_stride, int PE_size, {T} *pWrk, long *pSync"

GROUPS: List[Group] = [
    _RMA_GROUP,
    Group("Atomic operations, on 4- and 8-byte words", _atomics()),
    Group("Atomic operations under their names before version 1.4 (deprecated)", _OLD_ATOMICS),
    Group(
        "Waiting for and testing words of this PE. A nonzero status[i] takes word i out; the any forms give SIZE_MAX when no word is left",
        _waits(),
    ),
    Group("Collectives over a team; 0 is success", _collectives()),
    Group(
        "Reductions over an active set (deprecated)", [Family(f"{op}_to_all", types, "void", _TO_ALL, by=-1) for op, types in OLD_REDUCTIONS]
    ),
]

# Functions that move bytes: "{S}" in the name is 8..128 or mem; nelems counts elements of that size, or bytes.
_BYTES = "void *dest, const void *source, size_t nelems, int pe"
_BYTES_STRIDED = "void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe"
_BYTES_SIGNAL = "void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe"
SIZED: List[Tuple[str, str, bool]] = [  # name, arguments, with a mem form
    ("put{S}", _BYTES, True),
    ("get{S}", _BYTES, True),
    ("put{S}_nbi", _BYTES, True),
    ("get{S}_nbi", _BYTES, True),
    ("iput{S}", _BYTES_STRIDED, False),
    ("iget{S}", _BYTES_STRIDED, False),
    ("put{S}_signal", _BYTES_SIGNAL, True),
    ("put{S}_signal_nbi", _BYTES_SIGNAL, True),
]

_TEAM_BYTES = "shmem_team_t team, void *dest, const void *source, size_t nelems"
_SET = "int PE_start, int logPE_stride, int PE_size, long *pSync"
PLAIN: List[Tuple[str, List[str]]] = [
    (
        "Life of the program. Collective: init, init_thread, finalize",
        [
            "void shmem_init(void)",
            "int shmem_init_thread(int requested, int *provided)",
            "void shmem_query_thread(int *provided)",
            "void shmem_finalize(void)",
            "void shmem_global_exit(int status)",
            "int shmem_my_pe(void)",
            "int shmem_n_pes(void)",
            "int shmem_pe_accessible(int pe)",
            "int shmem_addr_accessible(const void *addr, int pe)",
            "void *shmem_ptr(const void *dest, int pe)",
            "void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)",
            "void shmem_info_get_version(int *major, int *minor)",
            "void shmem_info_get_name(char *name)",
            "void shmem_pcontrol(const int level, ...)",
            "void shmem_ctx_c11_generic_selection_failed(void)",
        ],
    ),
    (
        "The symmetric heap. Collective over all PEs; NULL for size 0 or when the heap is full",
        [
            "void *shmem_malloc(size_t size)",
            "void *shmem_malloc_with_hints(size_t size, long hints)",
            "void *shmem_calloc(size_t count, size_t size)",
            "void *shmem_align(size_t alignment, size_t size)",
            "void *shmem_realloc(void *ptr, size_t size)",
            "void shmem_free(void *ptr)",
        ],
    ),
    (
        "Teams. Collective over the (parent) team: split, destroy, sync",
        [
            "int shmem_team_my_pe(shmem_team_t team)",
            "int shmem_team_n_pes(shmem_team_t team)",
            "int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)",
            "int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)",
            "int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,\n"
            "                             const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)",
            "int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,\n"
            "                        shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,\n"
            "                        shmem_team_t *yaxis_team)",
            "void shmem_team_destroy(shmem_team_t team)",
            "int shmem_team_sync(shmem_team_t team)",
        ],
    ),
    (
        "Communication contexts. PE numbers given with a context are those of its team",
        [
            "int shmem_ctx_create(long options, shmem_ctx_t *ctx)",
            "int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)",
            "void shmem_ctx_destroy(shmem_ctx_t ctx)",
            "int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)",
        ],
    ),
    (
        "Order and completion",
        [
            "void shmem_fence(void)",
            "void shmem_ctx_fence(shmem_ctx_t ctx)",
            "void shmem_quiet(void)",
            "void shmem_ctx_quiet(shmem_ctx_t ctx)",
            "void shmem_barrier_all(void)",
            "void shmem_sync_all(void)",
        ],
    ),
    (
        "Signals",
        [
            "uint64_t shmem_signal_fetch(const uint64_t *sig_addr)",
            "uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)",
            "void shmem_wait(long *ivar, long cmp_value)",
        ],
    ),
    (
        "Locks: one per symmetric long, which is 0 at first",
        ["void shmem_set_lock(long *lock)", "void shmem_clear_lock(long *lock)", "int shmem_test_lock(long *lock)"],
    ),
    (
        "Collectives over a team, of bytes",
        [
            f"int shmem_broadcastmem({_TEAM_BYTES}, int PE_root)",
            f"int shmem_collectmem({_TEAM_BYTES})",
            f"int shmem_fcollectmem({_TEAM_BYTES})",
            f"int shmem_alltoallmem({_TEAM_BYTES})",
            "int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems)",
        ],
    ),
    (
        "Collectives over an active set (deprecated)",
        [f"void shmem_barrier({_SET})", f"void shmem_sync({_SET})"]
        + [f"void shmem_broadcast{s}(void *dest, const void *source, size_t nelems, int PE_root, {_SET})" for s in (32, 64)]
        + [f"void shmem_{c}{s}(void *dest, const void *source, size_t nelems, {_SET})" for c in ("collect", "fcollect", "alltoall") for s in (32, 64)]
        + [
            f"void shmem_alltoalls{s}(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,\n                       {_SET})"
            for s in (32, 64)
        ],
    ),
    (
        "Caches (deprecated): every platform here keeps them coherent, so there is nothing to do",
        [
            "void shmem_clear_cache_inv(void)",
            "void shmem_set_cache_inv(void)",
            "void shmem_clear_cache_line_inv(void *dest)",
            "void shmem_set_cache_line_inv(void *dest)",
            "void shmem_udcflush(void)",
            "void shmem_udcflush_line(void *dest)",
        ],
    ),
]
