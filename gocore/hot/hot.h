/*
 * hot.h - what the C hot path and the Go core share.
 *
 * Two kinds of memory are described here:
 *   - the segment of a PE, shared between processes: only offsets, never pointers; package layout holds
 *     the same numbers for Go, and a test compares the two;
 *   - the tables of this process (hot_world, hot_team): pointers, published by package world.
 *
 * Every word another process writes is _Atomic and is read with acquire, written with release. A comment at
 * each such access names its partner.
 */
#ifndef GSHMEM_HOT_H
#define GSHMEM_HOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HOT_MAGIC 0x314d454d48534f47ull /* "GOSHMEM1" */
#define HOT_LAYOUT_VERSION 2u
#define HOT_LINE 128u /* two 64-byte lines: x86 prefetches pairs, Kunpeng's last level has 128-byte lines */

/* Status values of the hot path; the rest of the vocabulary is in gshmem.h. */
#define HOT_OK 0
#define HOT_PENDING 1   /* not finished when the slice ended; call again */
#define HOT_SLOW 2      /* not for the hot path (unmapped peer, queued work, odd case): take the Go path */
#define HOT_NEED_PLAN 3 /* a collective has arrived everywhere and has no schedule yet: Go installs one */

/* ---- the segment of a PE: [header][scratch][heap], all offsets from its first byte ------------------------ */

typedef struct hot_header {
  uint64_t magic; /* written last, with release, by the owner: a mapper sees a complete header or none */
  uint32_t version;
  int32_t me, n;
  uint32_t line;
  uint8_t nonce[16]; /* proves that a mapped segment is the one the peer spoke of */
  uint64_t size, page;
  uint64_t scratch_off, scratch_len; /* team control blocks and staging, handed out by the owner */
  uint64_t heap_off, heap_len;

  /* The doorbell: every waiter of this PE sleeps on `bell`, whatever word it waits for. A writer that changed a
     word of this PE looks at `waiters` once (relaxed, no full fence): a lost look costs the sleeper its bound.
     `waiters` is a flag, not a count: a waiter sets it to 1 before it sleeps, the writer that finds it set clears it,
     bumps `bell` and wakes everybody. A flag left behind costs the next writer one wake for nobody, once. */
  _Alignas(128) _Atomic uint32_t waiters;
  _Atomic uint32_t bell;

  /* Raised by peers: this PE should look at its alarms (abort, poison). Waiters read it in their slow loop. */
  _Alignas(128) _Atomic uint32_t alarm;
  _Atomic int32_t abort_code; /* nonzero: the job was aborted with this code ... */
  _Atomic int32_t abort_by;   /* ... by this PE, plus 1 (0: nobody); stored before abort_code */
  _Atomic uint32_t closing;   /* 1: the owner has left the world (finalize), so it will arrive nowhere any more */
  _Alignas(128) uint8_t reserved[128]; /* pads the header to HOT_HEADER_SIZE */
} hot_header;

/* ---- control block of a team, one per member, in that member's scratch ------------------------------------- */

/* What a collective is, in full. Written by each member into its own block before it arrives; others read it only
   to word an error. The fingerprint is a hash of all of it. */
typedef struct hot_desc {
  uint32_t op;    /* HOT_OP_* */
  uint32_t dtype; /* HOT_T_* or 0 where bytes are moved */
  uint32_t redop; /* HOT_R_* or 0 */
  int32_t root;   /* team rank, -1 without */
  uint64_t count; /* elements (bytes where dtype is 0), as the operation defines it */
  uint64_t extra; /* whatever else must agree (a hash of a split table, a scale's bits ...) */
} hot_desc;

/* A description with its place among all operations of the team (meetings and casts together), in a line of its own. */
typedef struct hot_said {
  hot_desc desc;
  _Atomic uint32_t number;
} hot_said;

/* The line a member writes into every other member's block to say "I am at operation `seq`". */
typedef struct hot_arrival {
  _Atomic uint64_t flag; /* sequence << 32 | fingerprint; release by the arriver, acquire by the waiter */
  uint64_t in_ref;       /* where the arriver's buffers are: hot_ref, or HOT_PRIVATE */
  uint64_t out_ref;
  uint64_t stage_ref; /* the arriver's staging for this operation, HOT_PRIVATE when none */
  uint8_t inl[96];    /* small payload travels with the flag */
} hot_arrival;

typedef struct hot_progress {
  _Alignas(128) _Atomic uint64_t word; /* sequence << 32 | phase; reached when the sequence is equal and the phase at least */
} hot_progress;

typedef struct hot_poison {
  _Alignas(128) _Atomic int32_t code; /* nonzero: the team is dead for this reason (a gshmem status) ... */
  _Atomic int32_t by;                 /* ... because of this team rank */
  uint32_t seq;
} hot_poison;

/* One-way broadcasts (HOT_OP_CAST). A root writes letter k % HOT_CASTS of its own block and goes on; members read it there. */
typedef struct hot_caster {
  _Alignas(128) _Atomic uint64_t begun; /* casts the owner has begun: as root after its letter is written, as member at any time; release */
  hot_said said;                        /* the last of them */
} hot_caster;

typedef struct hot_letter {
  _Atomic uint64_t flag; /* low half of the cast's number << 32 | fingerprint; release by the root, acquire by the members */
  uint8_t reserved[24];
  uint8_t inl[96];
} hot_letter;

#define HOT_CASTS 64u

/* Block of a team of n members: arrival[2][n], progress[n], poison, said[2], caster, letter[HOT_CASTS]. Parity of the sequence
   picks the set: a member that is at k+2 has seen everybody at k+1, so nobody still reads set k. */
#define HOT_CTL_ARRIVAL(n, parity, src) ((((uint64_t)(parity)) * (uint64_t)(n) + (uint64_t)(src)) * HOT_LINE)
#define HOT_CTL_PROGRESS(n, src) ((2ull * (uint64_t)(n) + (uint64_t)(src)) * HOT_LINE)
#define HOT_CTL_POISON(n) (3ull * (uint64_t)(n) * HOT_LINE)
#define HOT_CTL_DESC(n, parity) ((3ull * (uint64_t)(n) + 1ull + (uint64_t)(parity)) * HOT_LINE)
#define HOT_CTL_CASTER(n) ((3ull * (uint64_t)(n) + 3ull) * HOT_LINE)
#define HOT_CTL_LETTER(n, k) ((3ull * (uint64_t)(n) + 4ull + (uint64_t)(k) % HOT_CASTS) * HOT_LINE)
#define HOT_CTL_SIZE(n) ((3ull * (uint64_t)(n) + 4ull + HOT_CASTS) * HOT_LINE)

/* A place in some PE's segments: segment id in the top byte, offset below. Segment 0 is [header][scratch][heap]. */
typedef uint64_t hot_ref;
#define HOT_PRIVATE (~0ull)
#define HOT_REF(seg, off) (((uint64_t)(seg) << 56) | (uint64_t)(off))
#define HOT_REF_SEG(r) ((uint32_t)((r) >> 56))
#define HOT_REF_OFF(r) ((r) & 0x00ffffffffffffffull)

/* ---- tables of this process --------------------------------------------------------------------------------- */

enum { HOT_KIND_HOST = 1, HOT_KIND_DEVICE = 2, HOT_KIND_DATA = 3 };

/* A range of addresses of this PE whose twin exists at every PE. base[pe] is where the twin's first byte is mapped
   here, NULL when it is not. For HOT_KIND_DEVICE base is never dereferenced. */
typedef struct hot_seg {
  uintptr_t low;
  uint64_t length;
  uint64_t off; /* of `low` within the segment (hot_ref offset) */
  uint32_t id, kind;
  uint8_t **base;
} hot_seg;

#define HOT_MAX_SEG 6
#define HOT_DEVICE_SEG 2u /* id of the range on a device, in a hot_ref */
#define HOT_SPIN_TURNS 800u /* about 20 us of pauses: far longer than any answer of a running peer */

#define HOT_CACHE_BYTES (32ull << 20) /* a last-level cache, where the system does not tell, or no world is at hand that asked */

/* Worlds and teams are type-stable: the struct of a slot is never freed, only reused, so a late caller may always read
   `handle`. Everything else in it may be read only after the handle was found equal. */
typedef struct hot_world {
  _Atomic uint64_t handle; /* 0 once closed or refused; checked by every operation after it announced itself */
  int32_t me, n;
  uint32_t nseg;
  int32_t crowded;            /* more PEs on this host than cores: yield at once instead of spinning */
  int32_t direct;             /* nothing is outstanding outside this table: fence and quiet are finished here */
  uintptr_t device_low;       /* addresses in [device_low, + device_span) may be a device's: never followed, Go looks closer. */
  uint64_t device_span;       /* 0: this process uses no device */
  _Atomic uint32_t spin;      /* turns of a wait that only spin: 0 when crowded, few while another PE runs on our core; wait.c learns it */
  uint64_t cache;             /* bytes of the last-level cache: collectives that touch more store past it */
  hot_seg seg[HOT_MAX_SEG];   /* seg[0] is the heap, never HOT_KIND_DEVICE */
  uint8_t **whole;            /* whole[pe]: first byte of that PE's mapped segment 0, NULL when unmapped */
  hot_header *self;           /* == whole[me] */
  _Atomic uint32_t alarm;     /* this process' own: a death was found, abort() was called. Waiters look in their slow loop */
  _Atomic uint32_t *dead;     /* dead[pe] != 0: that PE died (n words); its base[pe] are NULL from then on */
  uint64_t id;                /* for diagnostics */
  uint32_t slot, generation;  /* where its handle comes from */
  _Atomic uint64_t known;     /* as handle, but only closing ends it: who may look at a refused world (hot_enter_known) */
} hot_world;

typedef struct hot_plan hot_plan;
#define HOT_PLAN_SLOTS 64

typedef struct hot_team {
  _Atomic uint64_t handle; /* 0 once destroyed */
  hot_world *world;
  int32_t me, n;        /* my rank and the size */
  int32_t *pe;          /* world PE of each rank */
  uint8_t **ctl;        /* control block of each rank as mapped here; NULL when that member is not mapped */
  uint64_t *ctl_off;    /* offset of that block in its owner's segment 0 (for the fabric) */
  int32_t mapped;       /* all members mapped: the C executor may run */
  _Atomic uint32_t busy;   /* 1 while a thread is inside a collective of this team */
  _Atomic uint32_t queued; /* asynchronous requests not finished: synchronous calls must queue behind them */
  _Atomic int32_t poison;  /* nonzero: gshmem status the team died of (own copy; hot_poison in the block is the peers' way in) */
  uint32_t seq;            /* of the last operation begun that meets; guarded by busy, as are the next four */
  uint32_t history;        /* hash of all casts, part of every fingerprint: who took another part in them is found out */
  uint64_t casts;          /* one-way operations begun */
  uint64_t room;           /* casts below this have a free letter in my block */
  uint32_t alarms;         /* as last looked at by a cast */
  int64_t timeout_ns;      /* default for its operations; -1 none */
  uint8_t *slab;           /* this PE's small staging, two halves by parity of seq; NULL until first used */
  uint64_t slab_off, slab_half; /* its offset in segment 0; bytes of one half (the same on every member) */
  uint8_t *stage;               /* this PE's leased staging for large private buffers; NULL until leased */
  uint64_t stage_off, stage_cap; /* its offset in segment 0; bytes (the same on every member) */
  hot_plan *plans[HOT_PLAN_SLOTS]; /* direct-mapped by key hash; owned by package coll */
  uint32_t slot, generation;       /* where its handle comes from */
} hot_team;

/* ---- dtypes, operators, collectives (numbers are ABI: gshmem.h has the same) -------------------------------- */

enum {
  HOT_T_U8 = 1, HOT_T_I8, HOT_T_U16, HOT_T_I16, HOT_T_U32, HOT_T_I32, HOT_T_U64, HOT_T_I64,
  HOT_T_F16, HOT_T_BF16, HOT_T_F32, HOT_T_F64, HOT_T_BOOL, HOT_T_C64, HOT_T_C128, HOT_T_C32,
  HOT_T_F8E4M3FN, HOT_T_F8E5M2, HOT_T_F8E4M3FNUZ, HOT_T_F8E5M2FNUZ, HOT_T_LIMIT
};
enum {
  HOT_R_SUM = 1, HOT_R_PROD, HOT_R_MIN, HOT_R_MAX, HOT_R_BAND, HOT_R_BOR, HOT_R_BXOR,
  HOT_R_AVG,    /* sum, then divide by the number of members as torch's div does (integers are refused) */
  HOT_R_PREMUL, /* each input times a factor (desc.extra holds its double bits), then sum */
  HOT_R_LIMIT
};
enum {
  HOT_OP_BARRIER = 1, HOT_OP_SYNC, HOT_OP_BROADCAST, HOT_OP_ALL_REDUCE, HOT_OP_REDUCE, HOT_OP_ALL_GATHER,
  HOT_OP_REDUCE_SCATTER, HOT_OP_ALL_TO_ALL, HOT_OP_GATHER, HOT_OP_SCATTER, HOT_OP_ALL_GATHER_V,
  HOT_OP_ALL_TO_ALL_V, HOT_OP_EXCHANGE,
  HOT_OP_CAST, /* BROADCAST of at most HOT_INLINE_BYTES whose root does not wait: a disagreement may show in the next operation only */
  HOT_OP_LIMIT
};
enum { HOT_CMP_EQ = 0, HOT_CMP_NE, HOT_CMP_GT, HOT_CMP_GE, HOT_CMP_LT, HOT_CMP_LE, HOT_CMP_SIGNED = 8 /* or-ed in */ };
enum {
  HOT_A_SET = 1, HOT_A_FETCH, HOT_A_SWAP, HOT_A_CSWAP, HOT_A_ADD, HOT_A_INC, HOT_A_AND, HOT_A_OR, HOT_A_XOR
}; /* every one returns the old value */

/* ---- entering and leaving (hot_inline.h has the fast forms) -------------------------------------------------- */

/*
 * A thread announces itself in its own word before it looks at a world's table and clears it when done. closing a
 * world: handle = 0, membarrier, then wait until no word names it (hot_world_drain). The announcing store needs no
 * fence of its own because membarrier supplies it (or, where membarrier is refused, hot_fence_needed is set and
 * every entry fences).
 */
typedef struct hot_thread {
  _Alignas(HOT_LINE) _Atomic(hot_world *) in; /* world this thread is inside of; NULL outside */
  struct hot_thread *next; /* list of all threads ever seen; entries are reused, never freed */
  _Atomic uint32_t used;
} hot_thread;

hot_thread *hot_thread_self(void); /* this thread's word; allocates at first use, NULL without memory */
extern int hot_fence_needed;

/* Tables by handle. Handles are generation << 32 | slot; slot 0 is never used, so 0 is never valid. The top four bits
   of the generation tell the kind, so that a team's handle is never taken for a world's. */
#define HOT_MAX_WORLDS 256
#define HOT_MAX_TEAMS 4096
#define HOT_GEN_WORLD 0x10000000u
#define HOT_GEN_TEAM 0x20000000u
extern _Atomic(hot_world *) hot_worlds[HOT_MAX_WORLDS];
extern _Atomic(hot_team *) hot_teams[HOT_MAX_TEAMS];
extern _Atomic int hot_forked; /* 1 in a forked child: every call is refused before anything else is touched */

/* ---- making and ending tables (hot.c). One thread at a time per table; slots are taken under a lock of their own. ---- */

hot_world *hot_world_new(int32_t me, int32_t n, uint64_t id); /* unpublished; NULL: no slot or no memory */
/* Adds a range; returns its index or -1 when all HOT_MAX_SEG are taken. Before publishing only. */
int32_t hot_world_segment(hot_world *w, void *low, uint64_t length, uint64_t off, uint32_t id, uint32_t kind);
/* A device came up, at any time: its heap as one more range, and where its memory may lie. -1: no place for the range. */
int32_t hot_world_device(hot_world *w, uintptr_t low, uint64_t length, uintptr_t window_low, uint64_t window_span);
void hot_world_direct(hot_world *w, int32_t direct); /* any time */
void hot_world_base(hot_world *w, uint32_t index, int32_t pe, void *base); /* NULL: not mapped. Any time. */
void hot_world_whole(hot_world *w, int32_t pe, void *first);               /* whole[pe], and self when pe is me */
uint64_t hot_world_publish(hot_world *w);                                  /* the handle; operations may start */
/* An abort: handle = 0, so that every operation from now on takes the Go path, where it is refused in words. The memory stays, close comes later. */
void hot_world_refuse(hot_world *w);
void hot_world_close(hot_world *w); /* handle = 0, alarm: no operation starts, waits return HOT_SLOW */
int32_t hot_world_drain(hot_world *w, int64_t timeout_ns); /* after close: HOT_OK when nobody is inside, else HOT_PENDING */
void hot_world_free(hot_world *w);                         /* after drain (or never published): the slot may be reused */
void hot_world_mark_dead(hot_world *w, int32_t pe);        /* dead[pe], base[pe] = NULL everywhere, alarm, own bell */
void hot_world_raise(hot_world *w);                        /* alarm and own bell: waiters here look what happened */
void hot_raise(hot_header *h);                             /* a peer's alarm and bell */
void hot_world_raise_pe(hot_world *w, int32_t pe);         /* hot_raise of a mapped peer, nothing for another */
void hot_world_ring_pe(hot_world *w, int32_t pe);          /* hot_ring of a mapped PE if it may sleep */
int hot_world_is_dead(hot_world *w, int32_t pe);
void hot_set_forked(int forked);

/*
 * Teams. hot_team_new gives the arrays and busy = 1; publish releases busy. Who takes `busy` looks at `handle` after it, never
 * before. Destroying: close (handle = 0), take busy (as any operation does), free; free keeps busy at 1 until the
 * slot's next publish, so a late caller with an old handle finds it busy or finds another handle: nothing else to wait for.
 */
hot_team *hot_team_new(hot_world *w, int32_t me, int32_t n);
uint64_t hot_team_publish(hot_team *t);
void hot_team_close(hot_team *t);
void hot_team_free(hot_team *t);

/* Fills a header that is all zero; `magic` last, with release (partner: hot_header_check's acquire). */
void hot_header_init(hot_header *h, int32_t me, int32_t n, const uint8_t nonce[16], uint64_t size, uint64_t page,
                     uint64_t scratch_off, uint64_t scratch_len, uint64_t heap_off, uint64_t heap_len);
/* 0 when it is complete, of this layout and carries this nonce; 1 not yet written, 2 other version, 3 other nonce. */
int hot_header_check(const hot_header *h, const uint8_t nonce[16]);

/* ---- one-sided operations (hot.c). Addresses are of this PE's symmetric memory. ------------------------------ */

/*
 * hot_inline.h has the inline forms by handle (hot_h_put ...), which also announce. These take a table the caller
 * keeps alive. All: HOT_OK, HOT_SLOW (target not mapped, dead, device memory), GSHMEM_EPE, ENOTSYM, EALIGN, EINVAL. Nothing is
 * moved unless HOT_OK (the _many forms: unless counted in *done_out).
 */
int32_t hot_put(hot_world *w, void *dst, const void *src, uint64_t nbytes, int32_t pe);
int32_t hot_get(hot_world *w, void *dst, const void *src, uint64_t nbytes, int32_t pe);
int32_t hot_p(hot_world *w, void *dst, uint64_t value, int width, int32_t pe);
int32_t hot_g(hot_world *w, const void *src, int width, int32_t pe, uint64_t *value_out);
int32_t hot_iput(hot_world *w, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe);
int32_t hot_iget(hot_world *w, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe);
int32_t hot_put_many(hot_world *w, void *const *dst, const void *const *src, const uint64_t *nbytes, const int32_t *pe, uint64_t n, uint64_t *done_out);
int32_t hot_get_many(hot_world *w, void *const *dst, const void *const *src, const uint64_t *nbytes, const int32_t *pe, uint64_t n, uint64_t *done_out);
int32_t hot_atomic(hot_world *w, int op, int width, void *target, uint64_t operand, uint64_t compare, int32_t pe, uint64_t *old_out);
/* sigop: 0 set, 1 add (GSHMEM_SIGNAL_*). Both addresses are checked before anything moves. */
int32_t hot_put_signal(hot_world *w, void *dst, const void *src, uint64_t nbytes, uint64_t *sig, uint64_t value, int sigop, int32_t pe);
int32_t hot_fence(hot_world *w); /* HOT_SLOW unless the world is direct; the mapped part is done in either case */
int32_t hot_quiet(hot_world *w);
/* Where pe's copy of nbytes at addr is mapped here; NULL with *status_out = why (HOT_OK for zero bytes outside of any segment). */
uint8_t *hot_address(hot_world *w, const void *addr, uint64_t nbytes, int32_t pe, int32_t *status_out);

/* ---- waiting (wait.c) ------------------------------------------------------------------------------------------ */

/* State of one wait that may be cut into slices. Zero it, set deadline_ns (CLOCK_MONOTONIC, INT64_MAX or 0 none). */
typedef struct hot_wait {
  int64_t started_ns, deadline_ns;
  uint32_t rounds;
  uint32_t alarm_seen; /* both alarms as last looked at */
  uint32_t armed, bell; /* armed: the waiters flag was set and `bell` read before the word was last looked at */
  int64_t attentive_ns; /* yield until then: after a ring that was not for this word, so that a busy writer is not made to ring again at once */
  uint64_t seen;        /* hot_wait_until: the value that ended the wait, or the last one looked at */
} hot_wait;

int64_t hot_now(void); /* CLOCK_MONOTONIC, ns */

/*
 * One turn of waiting: spins, yields or sleeps on the doorbell according to how long this wait has gone on (spin up to about 20 us,
 * not when crowded and briefly while a PE shares our core, yield to 1 ms, sleep with a bound of 100 us rising to 1 ms). Returns HOT_OK to look at the word again,
 * HOT_PENDING when `until_ns` or the deadline has passed (until_ns 0: at once, for polls), HOT_SLOW when an alarm was raised that
 * this wait has not seen (somebody died, aborted, poisoned, closed): the caller finds out what, and may go on with the same state.
 * hot_wait_spin in hot_inline.h is the same with the spinning part inline.
 */
int32_t hot_wait_turn(hot_world *w, hot_wait *s, int64_t until_ns);

/* Waits until *word cmp value (width 1, 2, 4 or 8; HOT_CMP_SIGNED or-ed into cmp compares signed). GSHMEM_EALIGN, EINVAL at once. */
int32_t hot_wait_until(hot_world *w, const void *word, int width, int cmp, uint64_t value, hot_wait *s, int64_t until_ns);

/* *true_out: whether *word compares now. */
int32_t hot_test(const void *word, int width, int cmp, uint64_t value, int32_t *true_out);

/* Wakes sleepers of a PE after a store to its memory. Cheap when nobody sleeps. */
void hot_ring(hot_header *h);

/* Sleeps on the doorbell up to timeout_ns unless `bell` is no longer `seen` (read it before you look at your word). */
int32_t hot_bell_sleep(hot_header *h, uint32_t seen, int64_t timeout_ns);

/* ---- bytes and numbers (copy.c, reduce.c) ----------------------------------------------------------------------- */

void hot_copy(void *dst, const void *src, uint64_t nbytes);

/* The same with stores that do not fetch dst's lines into the caches first: a quarter to a third faster where dst is too large to
   stay there, slower where it would have stayed. */
void hot_copy_past(void *dst, const void *src, uint64_t nbytes);

/*
 * dst[k][i] = op over r in 0..nsrc-1 of src[r][i], in that order, for i < count; low precision (f16, bf16, f8) is
 * accumulated in float32 and rounded once. dst pointers may equal any src pointer, not partly overlap. `scale` is for HOT_R_PREMUL.
 * `divisor` for HOT_R_AVG. Returns HOT_OK, or a negative status when the dtype has no such operator.
 */
int32_t hot_reduce(int dtype, int redop, void *const *dst, int ndst, const void *const *src, int nsrc, uint64_t count, double scale, int divisor);
uint32_t hot_dtype_size(int dtype);                 /* bytes of an element, 0 for an unknown one */
int hot_reduce_supported(int dtype, int redop);     /* 1 or 0 */
/* For tests: use at most this instruction set (0 baseline, 1 x86-64-v3, 2 x86-64-v4, -1 the best); returns the one in use. Bits do not depend on it. */
int hot_reduce_level(int level);

#endif
