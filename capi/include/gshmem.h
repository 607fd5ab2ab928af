/*
 * gshmem.h - the native C interface of shmem. This header is the contract and the manual.
 *
 * Conventions
 *   - Every function returns an int32_t status: GSHMEM_OK (0), GSHMEM_PENDING (1, only where a slice was given), or a
 *     negative code. Codes are grouped by how much is lost. gshmem_last_error() has the words.
 *   - Out-parameters come last, end in _out, and are written only on success.
 *   - Handles are uint64_t (generation << 32 | index); 0 is never valid; a stale handle is refused with GSHMEM_ESTALE.
 *   - An address given for symmetric memory is the caller's own address of it; `pe` says whose copy is meant.
 *   - Sizes and offsets are 64 bits. Size 0 is legal everywhere. PE numbers are of the world unless a team is given; then
 *     they are ranks in that team.
 *   - timeout_ns: how long the operation may take: -1 no limit, 0 poll, GSHMEM_DEFAULT_TIMEOUT the team's own.
 *   - slice_ns: how long this call may block (-1: until done). A call whose slice ended returns GSHMEM_PENDING and
 *     a request; wait for it with gshmem_request_wait (repeat as often as you like), then gshmem_request_release. The deadline belongs to the
 *     request, not to the slice. Where result words are promised, the request is handed out also when the call has finished
 *     (GSHMEM_OK): fetch them with gshmem_request_result, then release it. Elsewhere *request_out is 0 when the call has finished.
 *     A call that fails hands out nothing. Releasing an unfinished request gives the operation up: a collective that had arrived
 *     poisons its team on all members and names this PE; one-sided waits and receives are cancelled cleanly.
 *   - In a forked child every function returns GSHMEM_EFORKED at once.
 *
 * Each declaration ends with a line "Threads: ... Collective: ... Blocks: ...".
 */
#ifndef GSHMEM_H
#define GSHMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GSHMEM_ABI_VERSION 1

#if defined(__GNUC__)
#define GSHMEM_API __attribute__((visibility("default")))
#else
#define GSHMEM_API
#endif

#define GSHMEM_DEFAULT_TIMEOUT INT64_MIN

/* ---- status ---------------------------------------------------------------------------------------------- */
enum {
  GSHMEM_OK = 0,
  GSHMEM_PENDING = 1,
  /* this call */
  GSHMEM_EINVAL = -101,
  GSHMEM_EPE = -102,
  GSHMEM_ENOTSYM = -103,
  GSHMEM_EALIGN = -104,
  GSHMEM_EUNSUPPORTED = -105,
  GSHMEM_ETIMEOUT = -106,
  GSHMEM_ECANCELED = -107,
  GSHMEM_ETRUNCATED = -108,
  /* this object */
  GSHMEM_ESTALE = -201,
  GSHMEM_EPOISONED = -202,
  GSHMEM_EMISMATCH = -203,
  GSHMEM_EHEAPFULL = -204,
  GSHMEM_EASYMMETRIC = -205,
  /* a peer */
  GSHMEM_EPEERDEAD = -301,
  GSHMEM_EUNREACHABLE = -302,
  GSHMEM_EPEERLEFT = -303,
  GSHMEM_EABORTED = -304,
  GSHMEM_EAUTH = -305,
  GSHMEM_EVERSION = -306,
  /* this process */
  GSHMEM_ENOTINIT = -401,
  GSHMEM_EFINALIZED = -402,
  GSHMEM_EFORKED = -403,
  GSHMEM_ESYSTEM = -404,
  GSHMEM_ENOMEM = -405,
  GSHMEM_ERENDEZVOUS = -406,
  GSHMEM_ECONFIG = -407,
  /* a bug of ours */
  GSHMEM_EINTERNAL = -501
};

/* The text of this thread's last failure; empty before the first. Valid until the thread's next failing call.
   Threads: any, own text. Collective: no. Blocks: no. */
GSHMEM_API const char *gshmem_last_error(void);

/* The short name of a status code ("timed out"). Never NULL. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API const char *gshmem_status_name(int32_t status);

/* GSHMEM_ABI_VERSION of the library. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API uint32_t gshmem_abi_version(void);

/* "1.0.0" of the library. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API const char *gshmem_version(void);

/* ---- requests ----------------------------------------------------------------------------------------------- */

/* Waits up to slice_ns for a request. GSHMEM_OK: it is done and succeeded; GSHMEM_PENDING: not yet; negative: it is done and
   failed with this status (asked again, it answers the same). Threads: any, one at a time per request. Collective: no. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_request_wait(uint64_t request, int64_t slice_ns);

/* Copies up to `n` result words of a finished request; what they mean stands at the function that started it.
   Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_request_result(uint64_t request, uint64_t *words_out, uint32_t n);

/* Ends a request; gives the operation up when it is not finished. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_request_release(uint64_t request);

/* Waits up to slice_ns until some of the world's requests started with GSHMEM_ASYNC | GSHMEM_NOTIFY have finished; stores
   up to max of them (each is reported once). GSHMEM_OK with *n_out >= 1, GSHMEM_PENDING when none, GSHMEM_EFINALIZED when the world closed.
   Threads: any. Collective: no. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_completions_wait(uint64_t world, int64_t slice_ns, uint64_t *requests_out, uint32_t max, uint32_t *n_out);

#define GSHMEM_ASYNC 1u  /* do not run here: queue behind the team's earlier requests and let the core's engine run it */
#define GSHMEM_NOTIFY 2u /* report the end through gshmem_completions_wait */

/* ---- life of a world ------------------------------------------------------------------------------------------- */

#define GSHMEM_UID_BYTES 128

/* Makes the unique id of a new job: the caller will be PE 0 and listens from now on (until the job is up, or the process ends).
   Hand the bytes to the other PEs by any broadcast; they hold the job's secret, so keep them private.
   `interface` chooses the interface or address to listen on, or is an exact address:port; NULL: loopback and every other usable one as candidates.
   Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_uid_create(const char *interface, uint8_t uid_out[GSHMEM_UID_BYTES]);

typedef struct gshmem_options {
  uint64_t size;        /* sizeof(gshmem_options) as the caller knows it */
  int32_t me, n;        /* -1, -1: from the environment (see method) */
  uint64_t heap_bytes;  /* 0: SHMEM_SYMMETRIC_SIZE, default 1 GiB of addresses; costs nothing until allocated */
  int64_t timeout_ns;   /* for coming up, and default for the world's collectives; 0: SHMEM_TIMEOUT, default 1800 s */
  const char *method;   /* NULL or "auto" | "uid" | "env" | "endpoint" | "file" | "single" */
  const uint8_t *uid;   /* method uid */
  const char *endpoint; /* method endpoint: "host:port", "[v6]:port" of PE 0; method file: the path */
  const char *secret;   /* the job's secret for endpoint; NULL: SHMEM_SECRET, or a private file where loopback is used */
  const char *transport; /* NULL: SHMEM_TRANSPORT, default "auto" | "shm" | "tcp" */
  const char *interface; /* NULL: SHMEM_INTERFACE, default all usable */
  const char *label;     /* name for messages, NULL: none */
  const char *device;    /* NULL: SHMEM_DEVICE, default "none" | "npu" | "npu:NUMBER" | "auto" | "host"; see device memory below */
  uint64_t device_bytes; /* symmetric heap on each device; 0: SHMEM_DEVICE_SIZE, default 1 GiB */
} gshmem_options;

/* Starts coming up as one PE of a new world; options NULL: all as the environment says. Result words: [0] the world's handle, [1] the handle of its world team.
   Threads: any; several worlds may live at once. Collective: over the new world. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_init_start(const gshmem_options *options, int64_t slice_ns, uint64_t *request_out);

/* The same in one call. Threads: any. Collective: over the new world. Blocks: until up, or the options' timeout. */
GSHMEM_API int32_t gshmem_init(const gshmem_options *options, uint64_t *world_out, uint64_t *world_team_out);

/* Leaves the world. Waits (up to timeout_ns) until every living member leaves too, so no peer loses memory under its feet; after the
   timeout it leaves alone. All teams, requests and handles of the world end; blocks that are still held (gshmem_block_*) keep
   their pages mapped until dropped. Safe to repeat. Threads: any. Collective: over the living members. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_finalize_start(uint64_t world, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_finalize(uint64_t world, int64_t timeout_ns);

/* Ends the job here and tells the peers: every blocked call of every member returns GSHMEM_EABORTED naming this PE.
   The caller should finalize afterwards. Threads: any, also while others are blocked. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_abort(uint64_t world, int32_t code);

GSHMEM_API int32_t gshmem_my_pe(uint64_t world);  /* or a negative status. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_n_pes(uint64_t world);  /* or a negative status. Threads: any. Collective: no. Blocks: no. */

/* Everything about a world (0: the library alone) as JSON: settings and where each came from, per peer the transport and why,
   heap use, the device or why there is none, teams, dead PEs. Writes at most cap bytes with the final 0; *needed_out is the size it wants.
   Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_info(uint64_t world, char *json_out, uint64_t cap, uint64_t *needed_out);

/* ---- symmetric memory -------------------------------------------------------------------------------------------- */

#define GSHMEM_ZERO 1u    /* contents are zero (always so for pages never used; this clears reused ones) */
#define GSHMEM_NOFREE 2u  /* reserved */
#define GSHMEM_ON_DEVICE 4u /* in the symmetric heap on the device; the address is the device's, the CPU must not follow it */

/* Allocates `bytes` at the same heap offset on every member of the team (GSHMEM_ZERO as flag for zeroed). align 0 means 64, else a
   power of two. Result words: [0] the block's handle, [1] its address here. Unequal sizes or alignments are
   GSHMEM_EASYMMETRIC on every member; exhaustion is GSHMEM_EHEAPFULL or GSHMEM_ENOMEM on every member with all rolled back. Blocks that
   every member has dropped are reclaimed first. Threads: any, ordered per team. Collective: over the team. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_alloc_start(uint64_t team, uint64_t bytes, uint64_t align, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_alloc(uint64_t team, uint64_t bytes, uint64_t align, uint32_t flags, int64_t timeout_ns, uint64_t *block_out, void **address_out);

/* A block of this PE alone; peers reach it by its offset. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_alloc_local(uint64_t world, uint64_t bytes, uint64_t align, uint32_t flags, uint64_t *block_out, void **address_out);

/* Frees a block on every member now. Threads: any, ordered per team. Collective: over the block's team. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_free_start(uint64_t block, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_free(uint64_t block, int64_t timeout_ns);

/* Drops this PE's interest: recorded here, reclaimed when all members have dropped it and meet at an allocation or a collect.
   Never fails on a live handle, never talks to a peer; also after finalize. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_block_drop(uint64_t block);

/* For bindings that lend blocks to tensors through DLPack. gshmem_dlpack_delete is the deleter: it puts the DLManagedTensor on a list, linked
   through manager_ctx, and does nothing else; gshmem_dlpack_deleted takes that list (NULL: none), whose structs and blocks are then
   the binding's to give back. Threads: any; the deleter also without an interpreter's lock, after finalize and in a forked child. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_dlpack_delete(void *managed);
GSHMEM_API int32_t gshmem_dlpack_deleted(void **managed_out);

/* Reclaims what every member of the team has dropped. Result word [0]: bytes reclaimed. Threads: any. Collective: over the team. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_collect_start(uint64_t team, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_collect(uint64_t team, int64_t timeout_ns);

/* The block that holds an address, its first byte and its length. GSHMEM_ENOTSYM when there is none. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_block_of(uint64_t world, const void *address, uint64_t *block_out, void **low_out, uint64_t *bytes_out);

/* The address here of a peer's copy (a device address for device memory). GSHMEM_EUNSUPPORTED when that peer's memory is not mapped. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_ptr(uint64_t world, const void *address, int32_t pe, void **address_out);

typedef struct gshmem_heap_stat {
  uint64_t size; /* sizeof as the caller knows it */
  uint64_t low, bytes, used, largest_hole, blocks, dropped;
} gshmem_heap_stat;
GSHMEM_API int32_t gshmem_heap_stats(uint64_t world, gshmem_heap_stat *stat_out); /* Threads: any. Collective: no. Blocks: no. */

/* ---- teams ------------------------------------------------------------------------------------------------------------ */

/* Splits off parent ranks start, start+stride, ... (size of them). Members get a handle in result word [0], others 0. stride may
   be negative or, with size 1, zero. Threads: any, ordered per parent. Collective: over the parent. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_team_split_strided_start(uint64_t parent, int32_t start, int32_t stride, int32_t size, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_team_split_strided(uint64_t parent, int32_t start, int32_t stride, int32_t size, int64_t timeout_ns, uint64_t *team_out);

/* Splits the parent into rows of xrange and columns; result words [0] my row (x axis), [1] my column (y axis).
   Threads: any, ordered per parent. Collective: over the parent. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_team_split_2d_start(uint64_t parent, int32_t xrange, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_team_split_2d(uint64_t parent, int32_t xrange, int64_t timeout_ns, uint64_t *xteam_out, uint64_t *yteam_out);

/* A team of any world PEs in any order, made by its members alone (others do not take part). `key` tells apart teams that
   are being made at the same time with the same members: all members give the same, each use once. Result word [0]: the team.
   Threads: any. Collective: over the listed PEs only. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_team_create_start(uint64_t world, const int32_t *pes, int32_t n, uint64_t key, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_team_create(uint64_t world, const int32_t *pes, int32_t n, uint64_t key, int64_t timeout_ns, uint64_t *team_out);

/* Destroys the caller's handle at once; shared resources are reclaimed when all members have destroyed theirs. Kernels of the team that are queued here
   go on while the other members may do their part; when these have, and a member still waits for more, its kernels end in seconds with
   GSHMEM_EPOISONED. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_team_destroy(uint64_t team);
/* Destroys it and gives up what it has under way, kernels as well: here now, at the members that wait for it in seconds, with GSHMEM_EPOISONED naming this
   PE. What such kernels wrote must not be used. Other teams, and the team's memory as such, are not touched. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_team_abort(uint64_t team);

GSHMEM_API int32_t gshmem_team_my_pe(uint64_t team); /* rank, or a negative status. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_team_n_pes(uint64_t team); /* Threads: any. Collective: no. Blocks: no. */
/* Rank in `to` of rank `pe` in `from`; *pe_out is -1 when that PE is no member. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_team_translate(uint64_t from, int32_t pe, uint64_t to, int32_t *pe_out);
GSHMEM_API int32_t gshmem_team_set_timeout(uint64_t team, int64_t timeout_ns); /* Threads: any. Collective: no. Blocks: no. */
/* What poisoned the team, on the host or on its device: GSHMEM_OK while healthy, else the status with its text. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_team_health(uint64_t team);

/* ---- one-sided access ------------------------------------------------------------------------------------------------- */

/* put returns when src may be reused; the data arrive by the next fence/quiet order rules (docs/ordering.md). get returns with the data.
   Threads: any. Collective: no. Blocks: on another host for flow control, bounded by the world's timeout. */
GSHMEM_API int32_t gshmem_put(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe);
GSHMEM_API int32_t gshmem_get(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe);
/* The nbi forms may use src and dst until the next quiet. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_put_nbi(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe);
GSHMEM_API int32_t gshmem_get_nbi(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe);

/* count elements of `elem` bytes, dst_stride/src_stride elements apart (dst_stride 0 only for one element). Threads: any. Collective: no. Blocks: as put/get. */
GSHMEM_API int32_t gshmem_iput(uint64_t world, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe);
GSHMEM_API int32_t gshmem_iget(uint64_t world, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe);

/* Many pieces in one call: piece i moves bytes[i] from src[i] to dst[i] at pe[i]. Stops at the first failure; *done_out
   counts the pieces moved (written also on failure). Threads: any. Collective: no. Blocks: as put/get. */
GSHMEM_API int32_t gshmem_put_many(uint64_t world, void *const *dst, const void *const *src, const uint64_t *bytes, const int32_t *pe, uint64_t n, uint64_t *done_out);
GSHMEM_API int32_t gshmem_get_many(uint64_t world, void *const *dst, const void *const *src, const uint64_t *bytes, const int32_t *pe, uint64_t n, uint64_t *done_out);

/* Single values of 1, 2, 4 or 8 bytes. p wakes a waiter of the target. Threads: any. Collective: no. Blocks: as put/get. */
GSHMEM_API int32_t gshmem_p(uint64_t world, void *dst, uint64_t value, int32_t width, int32_t pe);
GSHMEM_API int32_t gshmem_g(uint64_t world, const void *src, int32_t width, int32_t pe, uint64_t *value_out);

/* Puts before are visible before puts after, per target (fence); all are visible everywhere (quiet).
   Threads: any; covers all threads of this PE. Collective: no. Blocks: quiet, up to timeout. */
GSHMEM_API int32_t gshmem_fence(uint64_t world);
GSHMEM_API int32_t gshmem_quiet(uint64_t world, int64_t timeout_ns);

/* The calls above as requests, for callers that must be able to leave a wait (Ctrl-C over a network, in a language with signal
   handlers of its own). Where all peers are mapped the plain calls do not wait, and are faster. A field is what the argument of the same name
   is in the plain call; what an operation does not use is ignored. Result word [0] is what g and atomic read. Releasing an unfinished
   request calls the operation off: part of its bytes may have moved, none move later, and no memory of this process is touched any more. */
enum {
  GSHMEM_DO_PUT = 1, GSHMEM_DO_GET, GSHMEM_DO_IPUT, GSHMEM_DO_IGET, GSHMEM_DO_PUT_MANY, GSHMEM_DO_GET_MANY, GSHMEM_DO_P, GSHMEM_DO_G,
  GSHMEM_DO_ATOMIC, GSHMEM_DO_PUT_SIGNAL, GSHMEM_DO_QUIET
};
typedef struct gshmem_one_sided {
  uint64_t size;              /* sizeof(gshmem_one_sided) as the caller knows it */
  int32_t what, pe;           /* what: GSHMEM_DO_* */
  void *dst;                  /* the target of p and atomic; put_many, get_many: the array */
  const void *src;
  uint64_t bytes;             /* iput, iget: of an element */
  uint64_t count;             /* of iput, iget, put_many, get_many */
  int64_t dst_stride, src_stride;
  uint64_t value, compare;    /* of p, the signal, the atomic (its operand) */
  int32_t op, width;          /* signal_op or the atomic's op */
  uint64_t *signal;
  const uint64_t *many_bytes; /* put_many, get_many */
  const int32_t *many_pe;
  uint64_t *done_out;
  int32_t fetch, nbi;         /* atomic: the old value is wanted; put, get: as put_nbi, get_nbi */
} gshmem_one_sided;
/* *what is read before the call returns; what it points to stays until the request has ended or is released. timeout_ns is quiet's; the others
   have the world's. Threads: any. Collective: no. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_one_sided_start(uint64_t world, const gshmem_one_sided *what, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);

enum {
  GSHMEM_A_SET = 1, GSHMEM_A_FETCH, GSHMEM_A_SWAP, GSHMEM_A_CSWAP, GSHMEM_A_ADD, GSHMEM_A_INC, GSHMEM_A_AND, GSHMEM_A_OR, GSHMEM_A_XOR
};
/* An atomic update of a 4- or 8-byte word, atomic against every other one whatever the transport. `old_out` may be NULL
   (then the call need not wait for the answer). The word must be aligned to its width. Threads: any. Collective: no. Blocks: for the answer. */
GSHMEM_API int32_t gshmem_atomic(uint64_t world, int32_t op, int32_t width, void *target, uint64_t operand, uint64_t compare, int32_t pe, uint64_t *old_out);

/* ---- signals ------------------------------------------------------------------------------------------------------------- */

enum { GSHMEM_SIGNAL_SET = 0, GSHMEM_SIGNAL_ADD = 1 };
enum { GSHMEM_CMP_EQ = 0, GSHMEM_CMP_NE, GSHMEM_CMP_GT, GSHMEM_CMP_GE, GSHMEM_CMP_LT, GSHMEM_CMP_LE };

/* Puts, then updates the 8-byte signal word at the same PE: whoever sees the signal sees the data. bytes 0 still signals.
   Threads: any. Collective: no. Blocks: as put. */
GSHMEM_API int32_t gshmem_put_signal(uint64_t world, void *dst, const void *src, uint64_t bytes, uint64_t *signal, uint64_t value, int32_t signal_op, int32_t pe);
GSHMEM_API int32_t gshmem_put_signal_nbi(uint64_t world, void *dst, const void *src, uint64_t bytes, uint64_t *signal, uint64_t value, int32_t signal_op, int32_t pe);

/* Waits until my own word compares. Width 1, 2, 4 or 8; is_signed picks the comparison. Result: the value seen, in *value_out
   (may be NULL) or result word [0]. Threads: any. Collective: no. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_wait_until_start(uint64_t world, const void *word, int32_t width, int32_t is_signed, int32_t cmp, uint64_t value, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_wait_until(uint64_t world, const void *word, int32_t width, int32_t is_signed, int32_t cmp, uint64_t value, int64_t timeout_ns, uint64_t *value_out);
/* *true_out is 1 when it compares now. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_test(uint64_t world, const void *word, int32_t width, int32_t is_signed, int32_t cmp, uint64_t value, int32_t *true_out);

/* ---- collectives ------------------------------------------------------------------------------------------------------------ */

enum {
  GSHMEM_BARRIER = 1, GSHMEM_SYNC, GSHMEM_BROADCAST, GSHMEM_ALL_REDUCE, GSHMEM_REDUCE, GSHMEM_ALL_GATHER,
  GSHMEM_REDUCE_SCATTER, GSHMEM_ALL_TO_ALL, GSHMEM_GATHER, GSHMEM_SCATTER, GSHMEM_ALL_GATHER_V, GSHMEM_ALL_TO_ALL_V
};
enum {
  GSHMEM_U8 = 1, GSHMEM_I8, GSHMEM_U16, GSHMEM_I16, GSHMEM_U32, GSHMEM_I32, GSHMEM_U64, GSHMEM_I64,
  GSHMEM_F16, GSHMEM_BF16, GSHMEM_F32, GSHMEM_F64, GSHMEM_BOOL, GSHMEM_C64, GSHMEM_C128, GSHMEM_C32,
  GSHMEM_F8E4M3FN, GSHMEM_F8E5M2, GSHMEM_F8E4M3FNUZ, GSHMEM_F8E5M2FNUZ
};
enum {
  GSHMEM_SUM = 1, GSHMEM_PROD, GSHMEM_MIN, GSHMEM_MAX, GSHMEM_BAND, GSHMEM_BOR, GSHMEM_BXOR, GSHMEM_AVG, GSHMEM_PREMUL
};

/*
 * One entry for every collective. `in` and `out` are symmetric or ordinary memory, equal or disjoint (anything between is refused).
 *   BARRIER          quiet, then all arrive          SYNC             all arrive
 *   BROADCAST        count bytes, in at root (may equal out), out everywhere
 *   ALL_REDUCE       count elements of dtype, op     REDUCE           the same, out at root only
 *   ALL_GATHER       count bytes of each, out n*count
 *   REDUCE_SCATTER   in n*count elements, out count
 *   ALL_TO_ALL       count bytes for each peer, in and out n*count
 *   GATHER           count bytes of each, out n*count at root        SCATTER   in n*count bytes at root, out count
 *   ALL_GATHER_V     counts[n]: bytes of each rank (same on all), out is their concatenation
 *   ALL_TO_ALL_V     counts[4n]: bytes to each, byte offsets in `in`, bytes from each, byte offsets in `out`
 * `scale` is the factor of PREMUL. With GSHMEM_ASYNC the request runs in the core, in order per team; the buffers must stay until it is done.
 * Reductions: fixed order of ranks, so every member gets the same bits, run after run.
 * *request_out is 0 when the call finished. Threads: any, ordered per team. Collective: over the team. Blocks: up to slice_ns.
 */
GSHMEM_API int32_t gshmem_collective(uint64_t team, int32_t what, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root,
                                     double scale, const uint64_t *counts, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);

/* The plain blocking forms. Threads: any, ordered per team. Collective: over the team. Blocks: until done or the team's timeout. */
GSHMEM_API int32_t gshmem_barrier(uint64_t team);
GSHMEM_API int32_t gshmem_sync(uint64_t team);
GSHMEM_API int32_t gshmem_broadcast(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root);
GSHMEM_API int32_t gshmem_all_reduce(uint64_t team, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op);
GSHMEM_API int32_t gshmem_reduce(uint64_t team, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root);
GSHMEM_API int32_t gshmem_all_gather(uint64_t team, const void *in, void *out, uint64_t bytes);
GSHMEM_API int32_t gshmem_reduce_scatter(uint64_t team, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op);
GSHMEM_API int32_t gshmem_all_to_all(uint64_t team, const void *in, void *out, uint64_t bytes);
GSHMEM_API int32_t gshmem_gather(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root);
GSHMEM_API int32_t gshmem_scatter(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root);

/* 1 when the operator is defined for the dtype, else 0. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_reduce_supported(int32_t dtype, int32_t op);

/* ---- device memory ------------------------------------------------------------------------------------------------------------- */

/*
 * A world may have a device: an Ascend NPU per PE ("npu", through libascendcl.so), or host memory that poses as one ("host", for tests).
 * Each PE then has a second symmetric heap, on its device: gshmem_alloc with GSHMEM_ON_DEVICE. Its addresses are the device's.
 *   - put, get, iput, iget, p, g, put_signal, the waits and tests above take any mix of host and device memory on either side. What the host
 *     starts on device memory runs on the library's own stream; quiet, fence and barriers wait for that stream. It does not wait for other streams:
 *     when another stream wrote the source, wait for it first, or use the forms below.
 *   - atomics from the host on device words: set, fetch, and add and inc without an old value (4 bytes; 8 on a 950), on a 950 all others too; elsewhere
 *     those are GSHMEM_EUNSUPPORTED.
 *   - gshmem_collective refuses device memory; use gshmem_collective_on_stream.
 * `stream` below is the device runtime's own (an aclrtStream), or NULL for the library's. The *_on_stream calls return when their work is queued; a failure
 * of that work is told by the next gshmem_stream_wait. When a peer dies, on a timeout or an abort, kernels that wait end: what they wrote must not be used,
 * gshmem_stream_wait says who died, and later calls that wait are refused. Living PEs go on with a team that they make anew afterwards. A side in
 * host memory makes a call wait for the stream. SHMEM_TIMEOUT holds for kernels that wait, too.
 * Wait for your own streams before finalize.
 */

/* Gives a running world a device, as init's options do. No team may be made meanwhile. With "auto" it succeeds without a device when some PE has
   none; gshmem_info says why. Doing nothing when the world has that device already. Threads: any, ordered with the world team's operations. Collective: over the world. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_device_open_start(uint64_t world, const char *device, uint64_t bytes, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_device_open(uint64_t world, const char *device, uint64_t bytes, int64_t timeout_ns);

/* GSHMEM_OK while operations that wait on the device work; else why they are over (who died, the abort). GSHMEM_EUNSUPPORTED without a device.
   Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_device_health(uint64_t world);

/* The heap on the device. `low` is a device address. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_device_stats(uint64_t world, gshmem_heap_stat *stat_out);

/* The device address of the state that kernels of this library take as their first argument; 0 where there are no kernels.
   Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_device_state(uint64_t world, uint64_t *state_out);

/* The number of a team in that state, for kernels; -1 when it has none. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_team_index(uint64_t team, int32_t *index_out);

/* Lets kernels reach symmetric host memory: this PE's, and that of every PE whose host memory is mapped here. All of the host heap is then there and
   locked (SHMEM_SYMMETRIC_SIZE, or init's heap_bytes), until the world ends. *_on_stream with host memory on the symmetric side and device memory on
   the other does not wait for the stream any more. GSHMEM_EUNSUPPORTED on all members where a chip, its runtime or the kernel cannot; all stays as it
   was. Doing nothing the second time. No kernel may be running. Threads: any, ordered with the world team's operations. Collective: over the world. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_device_reach_host_start(uint64_t world, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_device_reach_host(uint64_t world, int64_t timeout_ns);

/* Where kernels of this PE's device find pe's copy of a symmetric address of this PE, of either heap. Kernels take host addresses as they are where they
   take a symmetric one (dst of a put, src of a get, signals); what they follow themselves must be this. GSHMEM_EUNSUPPORTED, with the reason, where they do
   not reach it. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_device_address(uint64_t world, const void *address, int32_t pe, uint64_t *address_out);

enum { GSHMEM_MEMORY_OTHER = 0, GSHMEM_MEMORY_HOST, GSHMEM_MEMORY_DEVICE, GSHMEM_MEMORY_ON_DEVICE };
/* What an address is: symmetric memory of the host or of the device, other memory of the device, anything else. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_kind_of(uint64_t world, const void *address, int32_t *kind_out);

/* Streams of the device. Destroying lets queued work run. join makes `stream` wait for all that is queued on `other` now.
   Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_stream_create(uint64_t world, void **stream_out);
GSHMEM_API int32_t gshmem_stream_destroy(uint64_t world, void *stream);
GSHMEM_API int32_t gshmem_stream_join(uint64_t world, void *stream, void *other);
/* Waits until a stream is done and says how what was queued there went. Giving up leaves the stream as it is. Threads: any. Collective: no. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_stream_wait_start(uint64_t world, void *stream, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_stream_wait(uint64_t world, void *stream, int64_t timeout_ns);

/* Copies memory of this process, host or device, in the order of the stream. Pinned host memory must stay until the stream was waited for; with other host
   memory the call waits. Threads: any. Collective: no. Blocks: for host memory that is not pinned. */
GSHMEM_API int32_t gshmem_copy_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, void *stream);

/* dst of a put and src of a get are symmetric. Threads: any. Collective: no. Blocks: only with host memory on a side. */
GSHMEM_API int32_t gshmem_put_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe, void *stream);
GSHMEM_API int32_t gshmem_get_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe, void *stream);
/* Signal words of streams are 4 bytes. wait: until the own word compares (signed). Threads: any. Collective: no. Blocks: as put_on_stream. */
GSHMEM_API int32_t gshmem_put_signal_on_stream(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t *signal, int32_t value, int32_t signal_op, int32_t pe, void *stream);
GSHMEM_API int32_t gshmem_signal_on_stream(uint64_t world, int32_t *signal, int32_t value, int32_t signal_op, int32_t pe, void *stream);
GSHMEM_API int32_t gshmem_signal_wait_on_stream(uint64_t world, const int32_t *signal, int32_t cmp, int32_t value, void *stream);
/* Completes, at every target, what was queued on the stream before. Threads: any. Collective: no. Blocks: no. */
GSHMEM_API int32_t gshmem_quiet_on_stream(uint64_t world, void *stream);

/* Makes the stream wait until the streams of all members have come to it. Without kernels a host function does it, as an operation of the team at the moment
   the stream comes to it. Threads: any, ordered per team. Collective: over the team. Blocks: no. */
GSHMEM_API int32_t gshmem_barrier_on_stream(uint64_t team, void *stream);
/*
 * BARRIER, SYNC, BROADCAST, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER and ALL_TO_ALL by kernels; arguments as gshmem_collective's. Buffers are device memory; these
 * must be in one block of the device heap that all members have, at the same offset on each:
 *   out of BROADCAST, ALL_GATHER, ALL_TO_ALL      in of REDUCE_SCATTER
 *   in of ALL_REDUCE, and out as well when it is `in` or larger than 64 KiB
 * Reductions: F32, F16, BF16, I32 with SUM, PROD, MIN, MAX. All kernels of one team run in the order of the calls, on whichever streams.
 * What members queue is compared without waiting: where operation, dtype, size, operator, root or place of the shared buffer differ, kernels end their waits
 * and every PE of the world gets GSHMEM_EMISMATCH with both sides, at its next operation or wait that looks (gshmem_device_health).
 * Threads: any, ordered per team. Collective: over the team. Blocks: no.
 */
GSHMEM_API int32_t gshmem_collective_on_stream(uint64_t team, int32_t what, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root, void *stream);

/* Tells the members of a collective which this PE is about to do otherwise than by one kernel, in several or (by_host not 0) by gshmem_collective on host memory,
   so that members which queue something else are found. Between two that go by the host that collective compares. It is one of the team's collectives on the device, in their order, and queues nothing; every member announces the same.
   Threads: any, ordered per team. Collective: over the team. Blocks: no. */
GSHMEM_API int32_t gshmem_collective_announce(uint64_t team, int32_t what, uint64_t count, int32_t dtype, int32_t op, int32_t root, int32_t by_host);

/* The same for an uneven all-to-all: sent_bytes[i] go to rank i, taken_bytes[i] are expected from it, one number for each member. GSHMEM_EMISMATCH on every PE
   when what one sends is not what the other takes. Threads: any, ordered per team. Collective: over the team. Blocks: no. */
GSHMEM_API int32_t gshmem_exchange_announce(uint64_t team, int32_t dtype, const uint64_t *sent_bytes, const uint64_t *taken_bytes);

/* ---- messages ------------------------------------------------------------------------------------------------------------------ */

#define GSHMEM_ANY_SOURCE (-1)
#define GSHMEM_ANY_TAG INT64_MIN

/* Tagged messages between members of a team, in order per (source, tag). A send of up to SHMEM_EAGER bytes finishes at once; a larger
   one when the receiver has taken it. A receive takes a message of at most `bytes`; result words: [0] source rank, [1] tag, [2] bytes received.
   A longer message is GSHMEM_ETRUNCATED. Threads: any. Collective: no. Blocks: up to slice_ns. */
GSHMEM_API int32_t gshmem_send(uint64_t team, const void *data, uint64_t bytes, int32_t dst, int64_t tag, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);
GSHMEM_API int32_t gshmem_recv(uint64_t team, void *data, uint64_t bytes, int32_t src, int64_t tag, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out);

#ifdef __cplusplus
}
#endif
#endif
