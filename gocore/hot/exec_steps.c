/* exec_steps.c - runs a plan's steps, section by section. */
#include "exec_int.h"

#include <stdlib.h>

/* Work done between two looks at the slice and the alarms. */
#define TURN_BYTES (8ull << 20)

/* ---- plans ------------------------------------------------------------------------------------------------------------- */

hot_plan_key hot_coll_key(const hot_coll *c) {
  int v = c->call.op == HOT_OP_ALL_GATHER_V || c->call.op == HOT_OP_ALL_TO_ALL_V;
  hot_plan_key k = {.op = c->call.op, .elem = 1, .root = c->desc.root, .mode = c->mode, .len = c->piece, .pitch = c->piece};
  if (c->desc.dtype) k.elem = hot_dtype_size((int)c->desc.dtype);
  if (v) {
    k.op |= HOT_PLAN_ONCE;
  } else if (c->mode == HOT_MODE_STAGED) {
    uint64_t left = c->piece - c->base, section = hot_section(k.op, c->team->n);
    k.len = left < section ? left : section;
  }
  return k;
}

static uint32_t slot_of(const hot_plan_key *k) {
  uint64_t h = k->op | (uint64_t)k->elem << 8 | (uint64_t)(uint32_t)k->root << 16 | (uint64_t)k->mode << 40;
  h = (h ^ k->len * 0x9e3779b97f4a7c15ull ^ k->pitch * 0xd6e8feb86659fd93ull) * 0xbf58476d1ce4e5b9ull;
  return (uint32_t)(h >> 58) & (HOT_PLAN_SLOTS - 1);
}

static int same_key(const hot_plan_key *a, const hot_plan_key *b) {
  return a->op == b->op && a->elem == b->elem && a->root == b->root && a->mode == b->mode && a->len == b->len && a->pitch == b->pitch;
}

void hot_coll_install(hot_coll *c, hot_plan *p) {
  hot_plan **slot = &c->team->plans[slot_of(&p->key)];
  free(*slot);
  *slot = p;
  c->plan = p;
}

void hot_team_drop_plans(hot_team *t) {
  for (int i = 0; i < HOT_PLAN_SLOTS; i++) {
    free(t->plans[i]);
    t->plans[i] = NULL;
  }
}

int32_t hot_exec_plan(hot_coll *c) {
  if (!c->plan) {
    hot_plan_key k = hot_coll_key(c);
    const hot_plan *p = k.op & HOT_PLAN_ONCE ? NULL : c->team->plans[slot_of(&k)];
    if (!p || !same_key(&p->key, &k)) return HOT_NEED_PLAN;
    c->plan = p;
  }
  c->pc = 0;
  c->state = HOT_COLL_STEPPING;
  return HOT_OK;
}

/* The plan is at its end: the next section, or done. */
static int32_t section_done(hot_coll *c) {
  c->base += c->plan->key.len;
  c->phase0 += c->plan->phases;
  int more = c->mode == HOT_MODE_STAGED && !(c->plan->key.op & HOT_PLAN_ONCE) && c->base < c->piece;
  c->plan = NULL;
  if (!more) return hot_exec_finish(c, HOT_OK);
  c->state = HOT_COLL_PLANNING;
  return HOT_OK;
}

/* ---- places -------------------------------------------------------------------------------------------------------------- */

static uint8_t *at(const hot_coll *c, const hot_spot *p, int32_t rank) {
  const hot_team *t = c->team;
  if (rank == t->me) {
    switch (p->buf) {
      case HOT_BUF_IN: return (uint8_t *)(uintptr_t)c->call.in + c->base + p->off;
      case HOT_BUF_OUT: return (uint8_t *)c->call.out + c->base + p->off;
      default: return (c->mode == HOT_MODE_SLAB ? hot_exec_slab(c) : t->stage) + p->off;
    }
  }
  const hot_arrival *a = hot_line_of(t, t->me, c->seq, rank);
  switch (p->buf) {
    case HOT_BUF_IN: return hot_exec_at(c, rank, a->in_ref) + c->base + p->off;
    case HOT_BUF_OUT: return hot_exec_at(c, rank, a->out_ref) + c->base + p->off;
    default: return hot_exec_at(c, rank, a->stage_ref) + p->off;
  }
}

/* ---- steps ---------------------------------------------------------------------------------------------------------------- */

static uint64_t turn_of(const hot_coll *c, const hot_step *s) {
  uint64_t left = s->len - c->done;
  return left < TURN_BYTES ? left : TURN_BYTES;
}

/* Will what is stored to the caller's buffer be gone from the caches before anybody reads it? Not where it was read just before. */
static int passes_by(const hot_coll *c, const hot_step *s) {
  return s->dst.buf == HOT_BUF_OUT && (c->in_len + c->out_len) * (uint64_t)c->team->n > c->team->world->cache && c->call.in != c->call.out;
}

static void step_copy(const hot_coll *c, const hot_step *s, uint64_t len) {
  const uint8_t *src = at(c, &s->src, s->src.rank) + c->done;
  uint8_t *dst = at(c, &s->dst, s->dst.rank) + c->done;
  if (src == dst) return;
  if (dst < src + len && src < dst + len)
    memmove(dst, src, len); /* own buffers in place */
  else if (passes_by(c, s))
    hot_copy_past(dst, src, len);
  else
    hot_copy(dst, src, len);
}

static int32_t step_reduce(const hot_coll *c, const hot_step *s, uint64_t len) {
  int32_t n = c->team->n, nd = 0;
  const void *few_src[64], **src = few_src;
  void *few_dst[65], **dst = few_dst;
  if (n > 64) {
    src = __builtin_alloca((size_t)n * sizeof *src);
    dst = __builtin_alloca(((size_t)n + 1) * sizeof *dst);
  }
  for (int32_t r = 0; r < n; r++) src[r] = at(c, r == c->team->me ? &s->own : &s->src, r) + c->done;
  if (s->dst.rank != HOT_ALL) dst[nd++] = at(c, &s->dst, s->dst.rank) + c->done;
  for (int32_t r = 0; s->dst.rank == HOT_ALL && r < n; r++) dst[nd++] = at(c, &s->dst, r) + c->done;
  if (s->dst2.buf != HOT_BUF_NONE) dst[nd++] = at(c, &s->dst2, s->dst2.rank) + c->done;
  uint64_t count = len / hot_dtype_size((int)c->call.dtype);
  return hot_reduce((int)c->call.dtype, (int)c->call.redop, dst, nd, src, n, count, c->call.scale, n);
}

static void step_notify(const hot_coll *c, const hot_step *s) {
  hot_team *t = c->team;
  uint64_t word = (uint64_t)c->seq << 32 | (c->phase0 + s->phase);
  for (int32_t i = 1, r = t->me; i < t->n; i++) {
    if (++r == t->n) r = 0;
    if (s->peer != HOT_ALL && s->peer != r) continue;
    hot_progress *p = (hot_progress *)(t->ctl[r] + HOT_CTL_PROGRESS(t->n, t->me));
    /* release: everything this PE did in the steps before; pairs with the acquire in reached() of rank r */
    atomic_store_explicit(&p->word, word, memory_order_release);
    hot_wake(t, r);
  }
}

static int reached(const hot_coll *c, int32_t r, uint32_t phase) {
  const hot_progress *p = (const hot_progress *)(c->team->ctl[c->team->me] + HOT_CTL_PROGRESS(c->team->n, r));
  uint64_t w = atomic_load_explicit(&p->word, memory_order_acquire); /* pairs with step_notify of rank r */
  return (uint32_t)(w >> 32) == c->seq && (uint32_t)w >= c->phase0 + phase;
}

static int lags(const hot_coll *c, int32_t r) {
  const hot_step *s = &c->plan->step[c->pc];
  return s->kind == HOT_STEP_AWAIT && (s->peer == HOT_ALL || s->peer == r) && !reached(c, r, s->phase);
}

static int32_t step_await(hot_coll *c, const hot_step *s, int64_t until_ns) {
  int32_t first = s->peer == HOT_ALL ? 0 : s->peer, last = s->peer == HOT_ALL ? c->team->n - 1 : s->peer;
  if (c->next < first) c->next = first;
  int waited = 0;
  while (c->next <= last) {
    if (c->next == c->team->me || reached(c, c->next, s->phase)) {
      c->next++;
      continue;
    }
    waited = 1;
    int32_t st = hot_exec_turn(c, until_ns, lags);
    if (st) return st;
  }
  if (waited) hot_wait_progress(&c->wait);
  c->next = 0;
  return HOT_OK;
}

/* The rest of the step, or as much as one turn allows. */
static int32_t step(hot_coll *c, const hot_step *s, int64_t until_ns) {
  uint64_t len;
  int32_t st = HOT_OK;
  switch (s->kind) {
    case HOT_STEP_NOTIFY: step_notify(c, s); break;
    case HOT_STEP_AWAIT: st = step_await(c, s, until_ns); break;
    case HOT_STEP_COPY:
    case HOT_STEP_REDUCE:
      len = turn_of(c, s);
      if (s->kind == HOT_STEP_COPY) step_copy(c, s, len);
      else st = step_reduce(c, s, len);
      c->done += len;
      if (st) return hot_exec_fail(c, st);
      if (c->done < s->len) return HOT_OK;
      c->done = 0;
      break;
    default: return hot_exec_fail(c, GSHMEM_EINTERNAL);
  }
  if (st == HOT_OK) c->pc++;
  return st;
}

int32_t hot_exec_steps(hot_coll *c, int64_t until_ns) {
  uint64_t moved = 0;
  while (c->pc < c->plan->nsteps) {
    const hot_step *s = &c->plan->step[c->pc];
    int32_t st = step(c, s, until_ns);
    if (st) return st;
    if (s->kind > HOT_STEP_REDUCE) continue;
    moved += s->len < TURN_BYTES ? s->len : TURN_BYTES;
    if (moved < TURN_BYTES) continue;
    moved = 0;
    if (until_ns == 0) return HOT_PENDING;
    if (until_ns != INT64_MAX && hot_now() >= until_ns) return HOT_PENDING;
  }
  return section_done(c);
}
