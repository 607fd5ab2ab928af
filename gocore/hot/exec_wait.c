/* exec_wait.c - waiting within a collective, and everything that can end it early: disagreement, death, leaving, abort, poison. */
#include "exec_int.h"

/* ---- poison -------------------------------------------------------------------------------------------------------- */

/* First reason wins, on every member by itself. */
static void poison_block(hot_poison *p, int32_t status, int32_t by, uint32_t seq) {
  int32_t none = 0;
  if (atomic_load_explicit(&p->code, memory_order_relaxed)) return;
  atomic_store_explicit(&p->by, by, memory_order_relaxed);
  __atomic_store_n(&p->seq, seq, __ATOMIC_RELAXED);
  /* release: `by` and `seq`; pairs with the acquire in hot_exec_look and poisoned_meanwhile */
  atomic_compare_exchange_strong_explicit(&p->code, &none, status, memory_order_release, memory_order_relaxed);
}

void hot_team_poison(hot_team *t, int32_t status, int32_t by, uint32_t seq) {
  int32_t none = 0;
  atomic_compare_exchange_strong(&t->poison, &none, status);
  for (int32_t r = 0; r < t->n; r++) {
    if (!t->ctl[r]) continue;
    poison_block((hot_poison *)(t->ctl[r] + HOT_CTL_POISON(t->n)), status, by, seq);
    hot_header *h = (hot_header *)t->world->whole[t->pe[r]];
    if (h && r != t->me) hot_raise(h);
  }
}

int32_t hot_exec_fail(hot_coll *c, int32_t status) {
  /* Death, leaving and disagreement name the other; everything else names who gave up. */
  int named = status == GSHMEM_EPEERDEAD || status == GSHMEM_EPEERLEFT || status == GSHMEM_EMISMATCH;
  int32_t by = named && c->culprit >= 0 ? c->culprit : c->team->me;
  if (status == GSHMEM_EABORTED) /* the whole world ends: its members learn it by themselves */
    atomic_store(&c->team->poison, status);
  else
    hot_team_poison(c->team, status, by, c->number);
  return hot_exec_finish(c, status);
}

void hot_coll_give_up(hot_coll *c, int32_t status) {
  if (c->state != HOT_COLL_FINISHED && c->state != 0) hot_exec_fail(c, status);
}

/* ---- looking for bad news -------------------------------------------------------------------------------------------- */

static int32_t look_poison(hot_coll *c) {
  hot_team *t = c->team;
  hot_poison *p = (hot_poison *)(t->ctl[t->me] + HOT_CTL_POISON(t->n));
  int32_t code = atomic_load_explicit(&p->code, memory_order_acquire); /* pairs with poison_block */
  if (!code) return HOT_OK;
  c->culprit = atomic_load_explicit(&p->by, memory_order_relaxed);
  return code == GSHMEM_EMISMATCH || code == GSHMEM_EPEERDEAD || code == GSHMEM_EPEERLEFT ? code : GSHMEM_EPOISONED;
}

static int32_t look_peer(hot_coll *c, int32_t r, hot_behind behind) {
  hot_team *t = c->team;
  hot_world *w = t->world;
  hot_header *h = (hot_header *)w->whole[t->pe[r]];
  int32_t st = HOT_OK;
  /* Bad news first, then once more whether it had done its part before it went. */
  if (w->dead && atomic_load_explicit(&w->dead[t->pe[r]], memory_order_acquire)) st = GSHMEM_EPEERDEAD;
  else if (h && atomic_load_explicit(&h->closing, memory_order_acquire)) st = GSHMEM_EPEERLEFT;
  if (!st || !behind(c, r)) return HOT_OK;
  c->culprit = r;
  return st;
}

int32_t hot_exec_look(hot_coll *c, hot_behind behind) {
  hot_team *t = c->team;
  hot_header *self = t->world->self;
  int32_t st = look_poison(c);
  if (st) return st;
  /* Before the look at the abort, which takes the handle away as well. Partner: hot_world_refuse. */
  int closed = !atomic_load_explicit(&t->world->handle, memory_order_acquire);
  if (self && atomic_load_explicit(&self->abort_code, memory_order_acquire)) {
    c->culprit = atomic_load_explicit(&self->abort_by, memory_order_relaxed) - 1;
    return GSHMEM_EABORTED;
  }
  if (closed) return GSHMEM_EFINALIZED;
  for (int32_t r = 0; behind && r < t->n && !st; r++)
    if (r != t->me) st = look_peer(c, r, behind);
  return st;
}

int32_t hot_exec_turn(hot_coll *c, int64_t until_ns, hot_behind behind) {
  int32_t turn = hot_wait_spin(c->team->world, &c->wait, until_ns);
  if (HOT_LIKELY(turn == HOT_OK)) return HOT_OK;
  if (turn == HOT_SLOW) {
    int32_t st = hot_exec_look(c, behind);
    return st ? hot_exec_fail(c, st) : HOT_OK;
  }
  if (turn != HOT_PENDING) return hot_exec_fail(c, turn);
  if (c->wait.deadline_ns && c->wait.deadline_ns != INT64_MAX && hot_now() >= c->wait.deadline_ns) {
    for (int32_t r = 0; r < c->team->n; r++) {
      if (r == c->team->me || !behind(c, r)) continue;
      if (c->culprit < 0) c->culprit = r;
      if (r < 64) c->missing |= 1ull << r;
    }
    return hot_exec_fail(c, GSHMEM_ETIMEOUT);
  }
  return HOT_PENDING;
}

/* ---- arrivals ------------------------------------------------------------------------------------------------------------ */

static uint64_t flag_of(const hot_coll *c, int32_t r) {
  /* acquire: pairs with the release in arrive() of rank r */
  return atomic_load_explicit(&hot_line_of(c->team, c->team->me, c->seq, r)->flag, memory_order_acquire);
}

static int not_here(const hot_coll *c, int32_t r) {
  uint64_t f = flag_of(c, r);
  return !f || (uint32_t)(f >> 32) != c->seq;
}

/* What i sends to j must be what j expects from i, both ways. */
static int pair_agrees(const hot_coll *c, int32_t r) {
  int32_t n = c->team->n;
  const uint64_t *v = c->call.counts;
  uint64_t theirs[4];
  memcpy(theirs, hot_line_of(c->team, c->team->me, c->seq, r)->inl, sizeof theirs);
  return theirs[0] == v[2 * n + r] && theirs[2] == v[r];
}

/* 1 here and agreeing, 0 not here, -1 disagreeing. */
static int look_at(const hot_coll *c, int32_t r) {
  uint64_t f = flag_of(c, r);
  if (f != ((uint64_t)c->seq << 32 | c->fp)) return f && (uint32_t)(f >> 32) == c->seq ? -1 : 0;
  return c->call.op != HOT_OP_ALL_TO_ALL_V || pair_agrees(c, r) ? 1 : -1;
}

static int own_pair_agrees(const hot_coll *c) {
  if (c->call.op != HOT_OP_ALL_TO_ALL_V) return 1;
  return c->call.counts[c->team->me] == c->call.counts[2 * c->team->n + c->team->me];
}

static int32_t disagree(hot_coll *c, int32_t r) {
  c->culprit = r;
  return hot_exec_fail(c, GSHMEM_EMISMATCH);
}

/* Who has begun more casts than I have without arriving here is doing something else. */
static int32_t passed_by(hot_coll *c) {
  for (int32_t r = 0; r < c->team->n; r++)
    if (r != c->team->me && not_here(c, r) && hot_exec_cast_ahead(c, r) && not_here(c, r)) return disagree(c, r);
  return HOT_OK;
}

int32_t hot_exec_arrivals(hot_coll *c, int64_t until_ns) {
  hot_team *t = c->team;
  if (!own_pair_agrees(c)) return disagree(c, t->me);
  for (;;) {
    int waiting = 0;
    for (int32_t r = c->next; r < t->n; r++) {
      int is = r == t->me ? 1 : look_at(c, r);
      if (is < 0) return disagree(c, r);
      if (!is) waiting = 1;
      else if (!waiting) c->next = r + 1;
    }
    if (!waiting) break;
    int32_t st = hot_exec_turn(c, until_ns, not_here);
    if (st) return st;
    if (hot_exec_look_around(c) && (st = passed_by(c))) return st;
  }
  t->room = t->casts + HOT_CASTS - 1; /* all have begun as many as I have: it is in the fingerprint */
  hot_wait_progress(&c->wait);
  c->next = 0;
  return HOT_OK;
}

/* ---- forms for Go ------------------------------------------------------------------------------------------------------- */

void hot_coll_pair(const hot_coll *c, int32_t r, uint64_t out[4]) {
  memcpy(out, hot_line_of(c->team, c->team->me, c->seq, r)->inl, 4 * sizeof *out);
}

int hot_team_acquire(hot_team *t) { return !atomic_exchange_explicit(&t->busy, 1, memory_order_acquire); /* pairs with hot_team_leave */ }

void hot_team_set_queued(hot_team *t, uint32_t n) { atomic_store_explicit(&t->queued, n, memory_order_release); /* pairs with hot_team_take */ }

int32_t hot_team_poisoned(const hot_team *t) {
  int32_t own = atomic_load_explicit(&t->poison, memory_order_acquire);
  if (own || !t->ctl[t->me]) return own;
  return atomic_load_explicit(&((hot_poison *)(t->ctl[t->me] + HOT_CTL_POISON(t->n)))->code, memory_order_acquire); /* pairs with poison_block */
}
