/*
 * exec.h - collectives over mapped memory.
 *
 * A collective is a state that can be resumed (hot_coll): hot_coll_begin arrives once, hot_coll_run goes on until the operation
 * is done or the slice has ended. What happens after the arrival is either finished on the spot (small payloads: everybody
 * reads everybody's data and nobody waits again) or is a table of steps (hot_plan) that package plan computed.
 *
 * Obligations of the caller: the team's table and its world stay in place while a hot_coll lives; a hot_coll that was begun is
 * run to its end or given up; buffers and count tables stay until then. The struct may be moved between calls.
 */
#ifndef GSHMEM_EXEC_H
#define GSHMEM_EXEC_H

#include <string.h>

#include "hot_inline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- steps: the flat table both executors run (gocore/plan has the same in Go) ------------------------------- */

enum { HOT_STEP_COPY = 1, HOT_STEP_REDUCE, HOT_STEP_NOTIFY, HOT_STEP_AWAIT };
enum { HOT_BUF_NONE = 0, HOT_BUF_IN = 1, HOT_BUF_OUT = 2, HOT_BUF_STAGE = 3 };
#define HOT_ALL (-1)

/* `off` bytes into a buffer of team rank `rank`. IN and OUT move on by the section's base, STAGE does not. */
typedef struct hot_spot {
  int32_t buf; /* HOT_BUF_* */
  int32_t rank; /* HOT_ALL: that buffer of every member (destinations of REDUCE only) */
  uint64_t off;
} hot_spot;

/*
 * COPY    len bytes from src to dst
 * REDUCE  len bytes: the sources in rank order are `src` at every other rank and `own` at this one; the result goes
 *         to dst and, when its buf is not NONE, to dst2
 * NOTIFY  my progress is `phase`, for `peer` or all; what I did before is visible to whoever sees it
 * AWAIT   until the progress of `peer` or all is at least `phase`
 * Phases count from 1 within a plan.
 */
typedef struct hot_step {
  uint32_t kind, phase;
  int32_t peer;
  uint32_t reserved;
  uint64_t len;
  hot_spot src, own, dst, dst2;
} hot_step;

/* What a plan was made for; equal keys mean equal plans within one team. */
typedef struct hot_plan_key {
  uint32_t op, elem;
  int32_t root;
  uint32_t mode;  /* HOT_MODE_* */
  uint64_t len;   /* bytes of each piece this plan covers (one section of it) */
  uint64_t pitch; /* bytes from one piece to the next in IN or OUT */
} hot_plan_key;

struct hot_plan {
  hot_plan_key key;
  uint32_t nsteps, phases;
  hot_step step[];
};

/* DIRECT: peers' buffers are symmetric and are read or written in place. STAGED: through the team's staging.
   SLAB: small, but some members' data must still be put into the slab. */
enum { HOT_MODE_DONE = 0, HOT_MODE_DIRECT, HOT_MODE_STAGED, HOT_MODE_SLAB };

#define HOT_INLINE_BYTES 96u
/* Staged operations run in sections, so that a plan's length does not grow with the operation. */
#define HOT_SECTION_BYTES (16ull << 20)

/* ---- a collective ------------------------------------------------------------------------------------------------ */

typedef struct hot_call {
  uint32_t op, dtype, redop;
  int32_t root;
  const void *in;
  void *out;
  uint64_t count;
  double scale;
  const uint64_t *counts; /* ALL_GATHER_V: n; ALL_TO_ALL_V: 4n; else NULL */
} hot_call;

enum { HOT_COLL_ARRIVING = 1, HOT_COLL_PLANNING, HOT_COLL_STEPPING, HOT_COLL_FINISHED, HOT_COLL_CASTING };

/* Why a call was refused before it arrived (hot_coll.why). */
enum {
  HOT_WHY_NONE = 0, HOT_WHY_OP, HOT_WHY_ROOT, HOT_WHY_DTYPE, HOT_WHY_REDOP, HOT_WHY_SIZE, HOT_WHY_OVERLAP, HOT_WHY_NULL,
  HOT_WHY_COUNTS, HOT_WHY_DEVICE,
  HOT_WHY_TAKEN, /* with HOT_SLOW: in use, has a queue, is poisoned, closed or not wholly mapped ... */
  HOT_WHY_SLAB,  /* ... needs its slab first ... */
  HOT_WHY_STAGE, /* ... needs a stage first ... */
  HOT_WHY_QUIET  /* ... or is a barrier whose quiet is not all in C */
};

typedef struct hot_coll {
  hot_team *team;
  hot_call call;
  hot_desc desc;
  uint64_t piece;             /* bytes one member contributes to one other (or to all) */
  uint64_t in_len, out_len;   /* bytes of my buffers that take part; 0 where I have none */
  uint64_t in_ref, out_ref;
  uint64_t base;              /* bytes of each piece done by earlier sections */
  uint64_t done;              /* bytes of the current step that are done */
  uint64_t cast;              /* which one-way broadcast this is */
  uint32_t seq, fp, state, mode;
  uint32_t number, turns;     /* place among all operations of the team; turns waited since the spinning ended */
  uint32_t pc, phase0;        /* next step; phases used by earlier sections */
  int32_t next;               /* rank looked at next while waiting */
  int32_t status;             /* when finished: HOT_OK or why it failed */
  int32_t culprit;            /* team rank (EABORTED: PE of the world) the failure names; -1 none */
  uint32_t why, arrived;
  int64_t began_ns;
  uint64_t missing;           /* after ETIMEOUT: bit r for each rank r < 64 that was waited for */
  const hot_plan *plan;
  hot_wait wait;              /* deadline_ns is the request's deadline */
} hot_coll;

/*
 * Begins: checks the call, takes the team and arrives. HOT_OK: begun, hot_coll_run goes on. HOT_SLOW: nothing has happened; the team
 * cannot run it in C now (hot_coll.why says why): take the Go path. Negative: refused, nothing has happened. `queued` is 1 for the engine that runs the team's queue.
 * deadline_ns: CLOCK_MONOTONIC, INT64_MAX none.
 */
int32_t hot_coll_begin(hot_coll *c, hot_team *t, const hot_call *call, int64_t deadline_ns, int queued);

/* Goes on until `until_ns`. HOT_OK: done. HOT_PENDING: slice ended. HOT_NEED_PLAN: hot_coll_key says for what; install it and
   run again. Negative: failed; the team is poisoned on all members. After OK or negative the team is free again. */
int32_t hot_coll_run(hot_coll *c, int64_t until_ns);

/* The key of the plan it waits for. */
hot_plan_key hot_coll_key(const hot_coll *c);

/* Installs a plan (malloc'ed, owned by the team from now on) for a collective that said HOT_NEED_PLAN. A plan that must not be
   reused (V forms) has op | HOT_PLAN_ONCE in its key. */
#define HOT_PLAN_ONCE 0x80000000u
void hot_coll_install(hot_coll *c, hot_plan *p);
void hot_team_drop_plans(hot_team *t);

/* Gives an unfinished collective up for `status`: poisons the team everywhere and frees it. */
void hot_coll_give_up(hot_coll *c, int32_t status);

/* Marks the team dead for every member that maps it (first reason wins) and wakes them. */
void hot_team_poison(hot_team *t, int32_t status, int32_t by, uint32_t seq);

/* What an all_to_all_v of rank r says to this member: bytes it sends, its offset, bytes it expects, its offset. */
void hot_coll_pair(const hot_coll *c, int32_t r, uint64_t out[4]);

/* The checks of hot_coll_begin alone, for rank me of n: fills desc, piece, in_len, out_len and why. */
int32_t hot_call_check(hot_coll *c, int32_t n, int32_t me, const hot_call *call);

/* Forms for Go, which has no C atomics. */
int hot_team_acquire(hot_team *t); /* takes `busy`: 1, or 0 while an operation runs */
void hot_team_set_queued(hot_team *t, uint32_t n);
void hot_team_set_casts(hot_team *t, uint64_t casts); /* as if so many had been begun, for tests of the wrap: on all members, while nothing runs */
int32_t hot_team_poisoned(const hot_team *t); /* own copy, else what a peer wrote into my block */

/* Bytes of a piece that one staged section covers. */
static inline uint64_t hot_section(uint32_t op, int32_t n) {
  if (op == HOT_OP_BROADCAST || op == HOT_OP_ALL_REDUCE || op == HOT_OP_REDUCE) return HOT_SECTION_BYTES;
  uint64_t s = (HOT_SECTION_BYTES / (uint64_t)n) & ~1023ull;
  return s < (64u << 10) ? (64u << 10) : s;
}

/*
 * The whole thing for a synchronous caller: fast forms where possible, else begin and run. HOT_OK: done. HOT_SLOW: nothing has
 * happened. HOT_PENDING, HOT_NEED_PLAN: *c is a begun collective, whose deadline is timeout_ns from now (GSHMEM_DEFAULT_TIMEOUT:
 * the team's; -1 none). Negative: failed, c->arrived tells whether it had begun; the words come from package coll.
 * handle: the team's, looked at after `busy`; 0 when the caller owns the table. slice_ns -1: until done.
 */
int32_t hot_collective(hot_coll *c, hot_team *t, uint64_t handle, const hot_call *call, int64_t timeout_ns, int64_t slice_ns);

/* ---- fast forms ----------------------------------------------------------------------------------------------------- */

static inline uint32_t hot_fingerprint(const hot_desc *d) {
  uint64_t h = d->op | (uint64_t)d->dtype << 8 | (uint64_t)d->redop << 16 | (uint64_t)(uint32_t)d->root << 32;
  h = (h + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 29) ^ d->count) * 0x94d049bb133111ebull;
  h = (h ^ (h >> 32) ^ d->extra) * 0xd6e8feb86659fd93ull;
  uint32_t f = (uint32_t)(h >> 32) ^ (uint32_t)h;
  return f ? f : 1; /* 0 is a line nobody ever wrote */
}

/* The same with the team's history: equal when the casts before were equal as well. */
static inline uint32_t hot_fingerprint_of(const hot_team *t, const hot_desc *d) {
  uint32_t f = hot_fingerprint(d) ^ t->history;
  return f ? f : 1;
}

/* Says in a line of my own block what I am doing; read to word an error. */
static inline void hot_say(hot_said *s, const hot_desc *d, uint32_t number) {
  memcpy(&s->desc, d, sizeof *d);
  atomic_store_explicit(&s->number, number, memory_order_relaxed);
}

static inline hot_arrival *hot_line_of(const hot_team *t, int32_t block, uint32_t seq, int32_t src) {
  return (hot_arrival *)(t->ctl[block] + HOT_CTL_ARRIVAL(t->n, seq & 1, src));
}

/* Takes the team for a synchronous operation: 1 taken, 0 not for the fast path. A handle of 0 is not compared (the caller owns
   the table); else it is looked at after `busy`, as the table's life asks. */
static inline int hot_team_take(hot_team *t, uint64_t handle) {
  /* acquire: pairs with the release in hot_team_leave of the thread that was here before */
  if (HOT_UNLIKELY(atomic_exchange_explicit(&t->busy, 1, memory_order_acquire))) return 0;
  if (HOT_LIKELY((!handle || atomic_load_explicit(&t->handle, memory_order_acquire) == handle) && t->mapped &&
                 !atomic_load_explicit(&t->queued, memory_order_acquire) &&
                 !atomic_load_explicit(&t->poison, memory_order_relaxed)))
    return 1;
  atomic_store_explicit(&t->busy, 0, memory_order_release);
  return 0;
}

static inline void hot_team_leave(hot_team *t) { atomic_store_explicit(&t->busy, 0, memory_order_release); }

/* A sleeper of that PE is woken; one relaxed look when nobody sleeps. */
static inline void hot_wake(const hot_team *t, int32_t rank) {
  hot_header *h = (hot_header *)t->world->whole[t->pe[rank]];
  if (__builtin_expect(atomic_load_explicit(&h->waiters, memory_order_relaxed) != 0, 0)) hot_ring(h);
}

/* Makes *c the begun collective that a fast form could not finish at once, with the team's own timeout, and runs it for the slice. */
int32_t hot_coll_adopt(hot_coll *c, hot_team *t, const hot_call *call, const hot_desc *d, uint32_t fp, uint64_t len, int64_t slice_ns);

/* Is one of these in a device's memory? */
static inline int hot_any_device(const hot_world *w, const void *a, const void *b) {
  for (uint32_t i = 1; i < w->nseg; i++) { /* the first is the heap */
    const hot_seg *s = &w->seg[i];
    if (s->kind == HOT_KIND_DEVICE && ((uintptr_t)a - s->low < s->length || (uintptr_t)b - s->low < s->length)) return 1;
  }
  return 0;
}

#define HOT_FAST_SPINS 400

/* As w->spin, for waits that are not yet a hot_wait: at least one look. */
static inline int hot_fast_spins(hot_world *w) {
  uint32_t spins = hot_spin(w);
  return spins < HOT_FAST_SPINS ? (int)spins + 1 : HOT_FAST_SPINS;
}
#define HOT_FAST_MEMBERS 16

/* The arrival and the short wait: 1 when everybody has come, 0 when not (yet). */
static inline int hot_fast_meet(hot_team *t, const hot_desc *d, uint32_t seq, uint32_t fp, const void *payload, uint64_t len) {
  const int32_t n = t->n, me = t->me;
  const uint64_t want = (uint64_t)seq << 32 | fp;
  hot_say((hot_said *)(t->ctl[me] + HOT_CTL_DESC(n, seq & 1)), d, seq + (uint32_t)t->casts);
  for (int32_t i = 1, r = me; i < n; i++) {
    if (++r == n) r = 0;
    hot_arrival *a = hot_line_of(t, r, seq, me);
    if (len) memcpy(a->inl, payload, len);
    /* release: payload, desc and every earlier store of this PE; pairs with the acquire in the wait of rank r */
    atomic_store_explicit(&a->flag, want, memory_order_release);
    hot_wake(t, r);
  }
  int spins = hot_fast_spins(t->world);
  for (int32_t r = 0; r < n; r++) {
    if (r == me) continue;
    hot_arrival *a = hot_line_of(t, me, seq, r);
    while (atomic_load_explicit(&a->flag, memory_order_acquire) != want) {
      if (--spins < 0) return 0;
      hot_pause();
    }
  }
  t->room = t->casts + HOT_CASTS - 1; /* all have begun as many as I have: it is in the fingerprint */
  return 1;
}

/* BARRIER and SYNC. Mapped puts are done when their stores are, so the release in the arrival is the quiet (the caller
   has already drained what is not mapped). redop and count say what the meeting ends, where it ends a collective made of puts. */
static inline int32_t hot_fast_barrier(hot_coll *c, hot_team *t, uint64_t handle, const hot_call *call, int64_t slice_ns) {
  const uint32_t op = call->op;
  if (HOT_UNLIKELY(!hot_team_take(t, handle))) return HOT_SLOW;
  /* The wrap, and a quiet with something outstanding elsewhere, are for hot_coll_begin. */
  if (HOT_UNLIKELY(t->seq == UINT32_MAX || (op == HOT_OP_BARRIER && !__atomic_load_n(&t->world->direct, __ATOMIC_RELAXED)))) {
    hot_team_leave(t);
    return HOT_SLOW;
  }
  const hot_desc d = {.op = op, .redop = call->redop, .root = -1, .count = call->count};
  const uint32_t seq = ++t->seq, fp = hot_fingerprint_of(t, &d);
  if (HOT_LIKELY(hot_fast_meet(t, &d, seq, fp, NULL, 0))) {
    hot_team_leave(t);
    return HOT_OK;
  }
  return hot_coll_adopt(c, t, call, &d, fp, 0, slice_ns);
}

/* ALL_REDUCE of up to HOT_INLINE_BYTES: `esz` is the element's size, checked by the caller together with the operator. */
static inline int32_t hot_fast_all_reduce(hot_coll *c, hot_team *t, uint64_t handle, const hot_call *call, uint64_t esz, int64_t slice_ns) {
  if (HOT_UNLIKELY(t->n > HOT_FAST_MEMBERS || !hot_team_take(t, handle))) return HOT_SLOW;
  if (HOT_UNLIKELY(t->seq == UINT32_MAX || hot_any_device(t->world, call->in, call->out))) {
    hot_team_leave(t);
    return HOT_SLOW;
  }
  const hot_desc d = {.op = HOT_OP_ALL_REDUCE, .dtype = call->dtype, .redop = call->redop, .root = -1, .count = call->count};
  const uint32_t seq = ++t->seq, fp = hot_fingerprint_of(t, &d);
  if (HOT_UNLIKELY(!hot_fast_meet(t, &d, seq, fp, call->in, call->count * esz)))
    return hot_coll_adopt(c, t, call, &d, fp, call->count * esz, slice_ns);
  const void *src[HOT_FAST_MEMBERS];
  for (int32_t r = 0; r < t->n; r++) src[r] = r == t->me ? call->in : hot_line_of(t, t->me, seq, r)->inl;
  void *dst = call->out;
  int32_t st = hot_reduce((int)call->dtype, (int)call->redop, &dst, 1, src, t->n, call->count, 1.0, t->n);
  hot_team_leave(t);
  return st;
}

/* A CAST whose letter is there, or for which there is room. HOT_SLOW: nothing has happened, hot_coll_begin does it. */
int32_t hot_fast_cast(hot_team *t, uint64_t handle, const hot_call *call);

#ifdef __cplusplus
}
#endif
#endif
