/*
 * exec.c - the state machine of a collective over mapped memory: check, take the team, arrive, wait, plan, steps, leave.
 *
 * Why the parity of the sequence is enough to protect a set of arrival lines: a member writes line set k again at k+2, which
 * it begins after it saw everybody at k+1, and who is at k+1 has read everything it wanted of set k.
 */
#include "exec_int.h"

#include <stdlib.h>

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static int reduces(uint32_t op) { return op == HOT_OP_ALL_REDUCE || op == HOT_OP_REDUCE || op == HOT_OP_REDUCE_SCATTER; }
static int rooted(uint32_t op) { return op == HOT_OP_BROADCAST || op == HOT_OP_CAST || op == HOT_OP_REDUCE || op == HOT_OP_GATHER || op == HOT_OP_SCATTER; }

static int32_t refuse(hot_coll *c, uint32_t why, int32_t status) {
  c->why = why;
  return status;
}

/* Sum of v[0..n-1]; 0 and *over when it leaves 56 bits, which is what a hot_ref can say. */
static uint64_t sum(const uint64_t *v, int32_t n, int *over) {
  uint64_t s = 0;
  for (int32_t i = 0; i < n; i++) {
    if (__builtin_add_overflow(s, v[i], &s) || s >> 56) {
      *over = 1;
      return 0;
    }
  }
  return s;
}

/* Largest end of pieces (bytes at offset). */
static uint64_t extent(const uint64_t *bytes, const uint64_t *off, int32_t n, int *over) {
  uint64_t m = 0, e;
  for (int32_t i = 0; i < n; i++) {
    if (!bytes[i]) continue;
    if (__builtin_add_overflow(bytes[i], off[i], &e) || e >> 56) {
      *over = 1;
      return 0;
    }
    if (e > m) m = e;
  }
  return m;
}

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9fb21c651e98df25ull;
  return h ^ (h >> 32);
}

uint64_t hot_counts_hash(const uint64_t *counts, int32_t n) {
  uint64_t h = (uint64_t)n;
  for (int32_t i = 0; i < n; i++) h = mix(h, counts[i]);
  return h;
}

static void measure_v(hot_coll *c, int *over) {
  const hot_call *a = &c->call;
  int32_t n = c->team->n, me = c->team->me;
  const uint64_t *v = a->counts;
  if (a->op == HOT_OP_ALL_GATHER_V) {
    c->in_len = v[me];
    c->out_len = sum(v, n, over);
    for (int32_t i = 0; i < n; i++)
      if (v[i] > c->piece) c->piece = v[i];
    c->desc.extra = hot_counts_hash(v, n);
    return;
  }
  c->in_len = extent(v, v + n, n, over);
  c->out_len = extent(v + 2 * n, v + 3 * n, n, over);
}

/* in_len, out_len and piece. */
static void measure(hot_coll *c, uint64_t esz, int *over) {
  const hot_call *a = &c->call;
  uint64_t n = (uint64_t)c->team->n, one = 0, all = 0;
  int at_root = c->team->me == a->root;
  *over |= __builtin_mul_overflow(a->count, esz, &one) || __builtin_mul_overflow(one, n, &all) || all >> 56;
  c->piece = one;
  switch (a->op) {
    case HOT_OP_CAST: *over |= one > HOT_INLINE_BYTES; /* fall through */
    case HOT_OP_BROADCAST: c->in_len = at_root ? one : 0, c->out_len = one; break;
    case HOT_OP_ALL_REDUCE: c->in_len = one, c->out_len = one; break;
    case HOT_OP_REDUCE: c->in_len = one, c->out_len = at_root ? one : 0; break;
    case HOT_OP_EXCHANGE:
    case HOT_OP_ALL_GATHER: c->in_len = one, c->out_len = all; break;
    case HOT_OP_REDUCE_SCATTER: c->in_len = all, c->out_len = one; break;
    case HOT_OP_ALL_TO_ALL: c->in_len = all, c->out_len = all; break;
    case HOT_OP_GATHER: c->in_len = one, c->out_len = at_root ? all : 0; break;
    case HOT_OP_SCATTER: c->in_len = at_root ? all : 0, c->out_len = one; break;
    default: break;
  }
}

/* Equal, disjoint, or in the rank's own place of the larger buffer. */
static int overlap_allowed(const hot_coll *c) {
  uintptr_t in = (uintptr_t)c->call.in, out = (uintptr_t)c->call.out;
  if (!c->in_len || !c->out_len || in + c->in_len <= out || out + c->out_len <= in) return 1;
  if (c->call.op == HOT_OP_ALL_TO_ALL_V || c->call.op == HOT_OP_ALL_GATHER_V) return 0;
  uint64_t mine = c->piece * (uint64_t)c->team->me;
  return in == out || (c->out_len > c->in_len && in == out + mine) || (c->in_len > c->out_len && out == in + mine);
}

int32_t hot_coll_check(hot_coll *c) {
  const hot_call *a = &c->call;
  const hot_team *t = c->team;
  int over = 0;
  uint64_t esz = 1;
  if (a->op < HOT_OP_BARRIER || a->op >= HOT_OP_LIMIT) return refuse(c, HOT_WHY_OP, GSHMEM_EINVAL);
  c->desc = (hot_desc){.op = a->op, .root = -1};
  if (a->op == HOT_OP_BARRIER || a->op == HOT_OP_SYNC) {
    c->desc.redop = a->redop, c->desc.count = a->count;
    return HOT_OK;
  }
  if (a->op == HOT_OP_EXCHANGE) c->desc.redop = a->redop; /* what it is about */
  if (rooted(a->op)) {
    if (a->root < 0 || a->root >= t->n) return refuse(c, HOT_WHY_ROOT, GSHMEM_EPE);
    c->desc.root = a->root;
  }
  if (reduces(a->op)) {
    esz = hot_dtype_size((int)a->dtype);
    if (!esz) return refuse(c, HOT_WHY_DTYPE, GSHMEM_EINVAL);
    if (!hot_reduce_supported((int)a->dtype, (int)a->redop)) return refuse(c, HOT_WHY_REDOP, GSHMEM_EUNSUPPORTED);
    c->desc.dtype = a->dtype, c->desc.redop = a->redop;
    if (a->redop == HOT_R_PREMUL) memcpy(&c->desc.extra, &a->scale, sizeof a->scale);
  }
  if (a->op == HOT_OP_ALL_GATHER_V || a->op == HOT_OP_ALL_TO_ALL_V) {
    if (!a->counts) return refuse(c, HOT_WHY_COUNTS, GSHMEM_EINVAL);
    measure_v(c, &over);
  } else {
    c->desc.count = a->count;
    measure(c, esz, &over);
  }
  if (over) return refuse(c, HOT_WHY_SIZE, GSHMEM_EINVAL);
  if ((c->in_len && !a->in) || (c->out_len && !a->out)) return refuse(c, HOT_WHY_NULL, GSHMEM_EINVAL);
  if (!overlap_allowed(c)) return refuse(c, HOT_WHY_OVERLAP, GSHMEM_EINVAL);
  return HOT_OK;
}

int32_t hot_call_check(hot_coll *c, int32_t n, int32_t me, const hot_call *call) {
  hot_team t = {.n = n, .me = me};
  memset(c, 0, sizeof *c);
  c->team = &t;
  c->call = *call;
  int32_t st = hot_coll_check(c);
  c->team = NULL;
  return st;
}

/* ---- where the buffers are ----------------------------------------------------------------------------------------- */

/* The reference of [p, p+len) when all of it is in one segment, else HOT_PRIVATE. */
static uint64_t ref_of(const hot_world *w, const void *p, uint64_t len) {
  for (uint32_t i = 0, n = hot_segments(w); i < n; i++) {
    const hot_seg *s = &w->seg[i];
    uint64_t off = (uint64_t)((uintptr_t)p - s->low);
    if (s->kind != HOT_KIND_DEVICE && off <= s->length && len <= s->length - off) return HOT_REF(s->id, s->off + off);
  }
  return HOT_PRIVATE;
}

static int on_device(const hot_world *w, const void *p, uint64_t len) {
  for (uint32_t i = 0, n = hot_segments(w); i < n; i++) {
    const hot_seg *s = &w->seg[i];
    if (len && s->kind == HOT_KIND_DEVICE && (uintptr_t)p - s->low < s->length) return 1;
  }
  return 0;
}

static void find_buffers(hot_coll *c) {
  const hot_world *w = c->team->world;
  const hot_call *a = &c->call;
  c->in_ref = c->in_len ? ref_of(w, a->in, c->in_len) : HOT_PRIVATE;
  c->out_ref = c->out_len ? ref_of(w, a->out, c->out_len) : HOT_PRIVATE;
  /* In place, a member of these would overwrite what others still read: its buffers go through staging. */
  int in_place = a->in == a->out && c->in_len && c->out_len && c->team->n > 1;
  if (in_place && a->op != HOT_OP_ALL_REDUCE && a->op != HOT_OP_REDUCE && a->op != HOT_OP_BROADCAST) c->in_ref = c->out_ref = HOT_PRIVATE;
}

/* Does this operation read IN of that rank, and does it write OUT of that rank from elsewhere? */
static int gives(const hot_coll *c, int32_t r) {
  uint32_t op = c->call.op;
  return (op == HOT_OP_BROADCAST || op == HOT_OP_SCATTER) ? r == c->call.root : 1;
}

static int needs_in(const hot_coll *c, int32_t r) { return c->call.op != HOT_OP_GATHER && gives(c, r); }

static int needs_out(const hot_coll *c, int32_t r) {
  switch (c->call.op) {
    case HOT_OP_ALL_REDUCE: case HOT_OP_BROADCAST: return 1;
    case HOT_OP_REDUCE: case HOT_OP_GATHER: return r == c->call.root;
    default: return 0;
  }
}

/* Bytes of my data that go into the slab when it is used, and where the piece for one rank lies in it. */
static int per_peer(uint32_t op) { return op == HOT_OP_REDUCE_SCATTER || op == HOT_OP_ALL_TO_ALL || op == HOT_OP_SCATTER; }

static uint64_t slab_need(const hot_coll *c) {
  if (c->call.op == HOT_OP_ALL_TO_ALL_V) return UINT64_MAX;
  return per_peer(c->call.op) ? c->piece * (uint64_t)c->team->n : c->piece;
}

static int is_inline(const hot_coll *c) { return c->piece <= HOT_INLINE_BYTES && c->call.op != HOT_OP_ALL_TO_ALL_V; }
static int is_slab(const hot_coll *c) { return !is_inline(c) && slab_need(c) <= c->team->slab_half; }

static const uint8_t *piece_for(const hot_coll *c, int32_t r) {
  return (const uint8_t *)c->call.in + (per_peer(c->call.op) ? c->piece * (uint64_t)r : 0);
}

/* What I would send to rank r, for which length. */
static uint64_t inline_len(const hot_coll *c) {
  if (!is_inline(c) || !gives(c, c->team->me)) return 0;
  return c->call.op == HOT_OP_ALL_GATHER_V ? c->in_len : c->piece;
}

uint8_t *hot_exec_slab(const hot_coll *c) { return c->team->slab + (c->seq & 1) * c->team->slab_half; }

/* ---- arriving --------------------------------------------------------------------------------------------------------- */

static void fill_pairwise(const hot_coll *c, hot_arrival *a, int32_t r) {
  int32_t n = c->team->n;
  const uint64_t *v = c->call.counts;
  uint64_t pair[4] = {v[r], v[n + r], v[2 * n + r], v[3 * n + r]};
  memcpy(a->inl, pair, sizeof pair);
}

static uint64_t stage_ref(const hot_coll *c) {
  const hot_team *t = c->team;
  if (is_inline(c) || t->n == 1) return HOT_PRIVATE;
  if (is_slab(c)) return HOT_REF(0, t->slab_off + (c->seq & 1) * t->slab_half);
  return HOT_REF(0, t->stage_off);
}

static void arrive(hot_coll *c) {
  hot_team *t = c->team;
  const uint64_t want = (uint64_t)c->seq << 32 | c->fp, stage = stage_ref(c), len = inline_len(c);
  hot_say((hot_said *)(t->ctl[t->me] + HOT_CTL_DESC(t->n, c->seq & 1)), &c->desc, c->number);
  if (is_slab(c) && t->n > 1 && c->in_ref == HOT_PRIVATE && gives(c, t->me)) hot_copy(hot_exec_slab(c), c->call.in, c->in_len);
  for (int32_t i = 1, r = t->me; i < t->n; i++) {
    if (++r == t->n) r = 0;
    hot_arrival *a = hot_line_of(t, r, c->seq, t->me);
    a->in_ref = c->in_ref;
    a->out_ref = c->out_ref;
    a->stage_ref = stage;
    if (c->call.op == HOT_OP_ALL_TO_ALL_V)
      fill_pairwise(c, a, r);
    else if (len)
      memcpy(a->inl, piece_for(c, r), len);
    /* release: the line, desc, slab and every earlier store of this PE; pairs with the acquire in arrived() of rank r */
    atomic_store_explicit(&a->flag, want, memory_order_release);
    hot_wake(t, r);
  }
  c->arrived = 1;
}

/* At the wrap words of 2^32 operations ago would look like words of now. Nobody has arrived at sequence 0 before I have, and
   everybody's progress of the operation before was seen at its end, so nobody writes these words meanwhile. */
static void forget_progress(hot_team *t) {
  for (int32_t r = 0; r < t->n; r++) {
    hot_progress *p = (hot_progress *)(t->ctl[t->me] + HOT_CTL_PROGRESS(t->n, r));
    atomic_store_explicit(&p->word, 0, memory_order_relaxed);
  }
}

static int take(hot_team *t, uint64_t handle, int queued) {
  if (!queued) return hot_team_take(t, handle);
  if (atomic_exchange_explicit(&t->busy, 1, memory_order_acquire)) return 0; /* pairs with hot_team_leave */
  if (t->mapped && !atomic_load_explicit(&t->poison, memory_order_relaxed)) return 1;
  hot_team_leave(t);
  return 0;
}

/* Room that must be there before arriving, as my own part of the operation may need it whatever the others have. */
static uint32_t lacks(const hot_coll *c, int queued) {
  const hot_team *t = c->team;
  if (c->call.op == HOT_OP_BARRIER && !queued && !__atomic_load_n(&t->world->direct, __ATOMIC_RELAXED)) return HOT_WHY_QUIET;
  if (t->n == 1 || !(c->in_len | c->out_len | c->piece) || is_inline(c)) return HOT_WHY_NONE;
  if (is_slab(c)) return t->slab ? HOT_WHY_NONE : HOT_WHY_SLAB;
  return t->stage ? HOT_WHY_NONE : HOT_WHY_STAGE;
}

static int32_t begin(hot_coll *c, hot_team *t, uint64_t handle, const hot_call *call, int64_t deadline_ns, int queued) {
  memset(c, 0, sizeof *c);
  c->team = t;
  c->call = *call;
  c->culprit = -1;
  if (!take(t, handle, queued)) return refuse(c, HOT_WHY_TAKEN, HOT_SLOW);
  c->wait.deadline_ns = deadline_ns;
  int32_t st = hot_coll_check(c);
  if (!st && (on_device(t->world, call->in, c->in_len) || on_device(t->world, call->out, c->out_len)))
    st = refuse(c, HOT_WHY_DEVICE, GSHMEM_EUNSUPPORTED);
  if (!st && lacks(c, queued)) st = refuse(c, lacks(c, queued), HOT_SLOW);
  if (st) {
    hot_team_leave(t);
    return st;
  }
  if (call->op == HOT_OP_CAST && t->n > 1) {
    hot_exec_cast_begin(c);
    return HOT_OK;
  }
  find_buffers(c);
  c->seq = ++t->seq;
  c->number = c->seq + (uint32_t)t->casts;
  c->fp = hot_fingerprint_of(t, &c->desc);
  if (!c->seq) forget_progress(t);
  arrive(c);
  c->state = HOT_COLL_ARRIVING;
  return HOT_OK;
}

int32_t hot_coll_begin(hot_coll *c, hot_team *t, const hot_call *call, int64_t deadline_ns, int queued) {
  int32_t st = begin(c, t, 0, call, deadline_ns, queued);
  c->began_ns = hot_now();
  return st;
}

/* ---- after the arrivals ----------------------------------------------------------------------------------------------- */

int32_t hot_exec_finish(hot_coll *c, int32_t status) {
  c->state = HOT_COLL_FINISHED;
  c->status = status;
  hot_team_leave(c->team);
  return status;
}

static int32_t choose_mode(const hot_coll *c) {
  const hot_team *t = c->team;
  int direct = 1, missing = 0;
  if (is_inline(c) || t->n == 1) return HOT_MODE_DONE;
  for (int32_t r = 0; r < t->n; r++) {
    const hot_arrival *a = hot_line_of(t, t->me, c->seq, r);
    uint64_t in = r == t->me ? c->in_ref : a->in_ref, out = r == t->me ? c->out_ref : a->out_ref;
    if (gives(c, r) && in != HOT_PRIVATE) missing = 1; /* symmetric data was not put into the slab */
    if (needs_in(c, r) && in == HOT_PRIVATE) direct = 0;
    if (needs_out(c, r) && out == HOT_PRIVATE) direct = 0;
  }
  if (direct && c->call.op != HOT_OP_ALL_TO_ALL_V && c->call.op != HOT_OP_ALL_GATHER_V) return HOT_MODE_DIRECT;
  if (is_slab(c)) return missing ? HOT_MODE_SLAB : HOT_MODE_DONE;
  return HOT_MODE_STAGED;
}

/* Somebody may have given this operation up after arriving: then its memory is not ours to touch any more. */
static int32_t poisoned_meanwhile(hot_coll *c) {
  hot_team *t = c->team;
  hot_poison *p = (hot_poison *)(t->ctl[t->me] + HOT_CTL_POISON(t->n));
  return atomic_load_explicit(&p->code, memory_order_acquire) ? hot_exec_look(c, NULL) : HOT_OK; /* pairs with hot_team_poison */
}

static int32_t met(hot_coll *c) {
  if (c->call.op == HOT_OP_BARRIER || c->call.op == HOT_OP_SYNC || !(c->in_len | c->out_len | c->piece)) return hot_exec_finish(c, HOT_OK);
  c->mode = (uint32_t)choose_mode(c);
  if (c->mode == HOT_MODE_DONE) return hot_exec_finish(c, hot_exec_small(c));
  int32_t st = poisoned_meanwhile(c);
  if (st) return hot_exec_fail(c, st);
  c->state = HOT_COLL_PLANNING;
  return HOT_OK;
}

int32_t hot_coll_run(hot_coll *c, int64_t until_ns) {
  int32_t st = HOT_OK;
  if (c->state == HOT_COLL_CASTING) return hot_exec_cast(c, until_ns);
  while (st == HOT_OK) {
    switch (c->state) {
      case HOT_COLL_ARRIVING:
        st = hot_exec_arrivals(c, until_ns);
        if (st == HOT_OK) st = met(c);
        break;
      case HOT_COLL_PLANNING: st = hot_exec_plan(c); break;
      case HOT_COLL_STEPPING: st = hot_exec_steps(c, until_ns); break;
      default: return c->status;
    }
  }
  return st;
}

/* ---- the synchronous call ------------------------------------------------------------------------------------------------ */

static int64_t after(int64_t now, int64_t ns) { return ns < 0 || ns > INT64_MAX - now ? INT64_MAX : now + ns; }

static int32_t run_slice(hot_coll *c, int64_t timeout_ns, int64_t slice_ns) {
  int64_t now = hot_now();
  if (timeout_ns == GSHMEM_DEFAULT_TIMEOUT) timeout_ns = c->team->timeout_ns;
  c->began_ns = now;
  c->wait.deadline_ns = after(now, timeout_ns);
  return hot_coll_run(c, slice_ns == 0 ? 0 : after(now, slice_ns));
}

int32_t hot_coll_adopt(hot_coll *c, hot_team *t, const hot_call *call, const hot_desc *d, uint32_t fp, uint64_t len, int64_t slice_ns) {
  memset(c, 0, sizeof *c);
  c->team = t;
  c->call = *call;
  c->desc = *d;
  c->piece = c->in_len = c->out_len = len;
  c->in_ref = c->out_ref = HOT_PRIVATE;
  c->seq = t->seq;
  c->number = t->seq + (uint32_t)t->casts;
  c->fp = fp;
  c->culprit = -1;
  c->arrived = 1;
  c->state = HOT_COLL_ARRIVING;
  return run_slice(c, GSHMEM_DEFAULT_TIMEOUT, slice_ns);
}

static int32_t fast(hot_coll *c, hot_team *t, uint64_t handle, const hot_call *a, int64_t slice_ns) {
  if (a->op == HOT_OP_BARRIER || a->op == HOT_OP_SYNC) return hot_fast_barrier(c, t, handle, a, slice_ns);
  if (a->op == HOT_OP_CAST) return hot_fast_cast(t, handle, a);
  if (a->op != HOT_OP_ALL_REDUCE || a->redop == HOT_R_PREMUL || a->count > HOT_INLINE_BYTES) return HOT_SLOW;
  uint64_t esz = hot_dtype_size((int)a->dtype), len = esz * a->count;
  if (!len || len > HOT_INLINE_BYTES || !a->in || !a->out || !hot_reduce_supported((int)a->dtype, (int)a->redop)) return HOT_SLOW;
  uintptr_t gap = (uintptr_t)a->in > (uintptr_t)a->out ? (uintptr_t)a->in - (uintptr_t)a->out : (uintptr_t)a->out - (uintptr_t)a->in;
  if (gap && gap < len) return HOT_SLOW;
  return hot_fast_all_reduce(c, t, handle, a, esz, slice_ns);
}

int32_t hot_collective(hot_coll *c, hot_team *t, uint64_t handle, const hot_call *call, int64_t timeout_ns, int64_t slice_ns) {
  if (timeout_ns == GSHMEM_DEFAULT_TIMEOUT) {
    int32_t st = fast(c, t, handle, call, slice_ns);
    if (st != HOT_SLOW) return st;
  }
  int32_t st = begin(c, t, handle, call, INT64_MAX, 0);
  return st ? st : run_slice(c, timeout_ns, slice_ns);
}
