/*
 * exec_cast.c - one-way broadcasts of few bytes: the root does not wait for anybody.
 *
 * The root of cast k writes payload and flag into letter k % HOT_CASTS of its own block and goes on; a member reads it there. Every member
 * counts the casts it has begun in its block. Who has begun k has read k-1, so a root may write cast k when everybody has begun
 * k - HOT_CASTS + 2; after a meeting everybody has begun as many as I have (else their fingerprints differ), so that roots hardly ever look.
 *
 * Disagreement. Every cast goes into a hash, the team's history, which is part of the fingerprint of all later operations. Who waits
 * looks now and then at where the others are: the root of my cast has begun it without writing the letter, or has arrived at a meeting
 * after it; a member that keeps my letters full has arrived at a meeting; a member that I meet has begun more casts than I have. Each says
 * that they do something else, and each is looked at before the word waited for is looked at once more.
 */
#include "exec_int.h"

static hot_caster *caster_of(const hot_team *t, int32_t r) { return (hot_caster *)(t->ctl[r] + HOT_CTL_CASTER(t->n)); }

static hot_letter *letter_of(const hot_team *t, int32_t root, uint64_t k) { return (hot_letter *)(t->ctl[root] + HOT_CTL_LETTER(t->n, k)); }

static uint64_t begun_by(const hot_team *t, int32_t r) {
  /* acquire: pairs with the release in announce() of rank r: what it did before, reading older letters among it, is done */
  return atomic_load_explicit(&caster_of(t, r)->begun, memory_order_acquire);
}

/* ---- what both forms share -------------------------------------------------------------------------------------------- */

static uint64_t flag_for(uint64_t k, uint32_t fp) { return (uint64_t)(uint32_t)k << 32 | fp; }

static void say(hot_team *t, const hot_desc *d, uint64_t k) { hot_say(&caster_of(t, t->me)->said, d, t->seq + (uint32_t)k + 1); }

static void announce(hot_team *t, uint64_t k) {
  atomic_store_explicit(&caster_of(t, t->me)->begun, k + 1, memory_order_release); /* partner: begun_by */
}

/* Counts the cast as begun here. Its fingerprint holds the history already: what it adds is the rest, or the two would cancel and
   only the last cast be remembered. For one and the same cast, other histories give other ones. */
static void take_part(hot_team *t, uint32_t fp) {
  const uint32_t h = t->history, is = fp ^ h;
  t->casts++;
  t->history = ((h << 7 | h >> 25) ^ is) * 0x9e3779b1u;
  t->history ^= t->history >> 15;
}

static void send(hot_team *t, uint64_t k, uint32_t fp, const void *in, uint64_t len) {
  hot_letter *l = letter_of(t, t->me, k);
  if (len) memcpy(l->inl, in, len);
  /* release: the payload and every earlier store of this PE; pairs with the acquire in look_at and hot_fast_cast of the members */
  atomic_store_explicit(&l->flag, flag_for(k, fp), memory_order_release);
  announce(t, k);
  for (int32_t r = 0; r < t->n; r++)
    if (r != t->me) hot_wake(t, r);
}

static void deliver(void *out, const void *in, uint64_t len) {
  if (len && out != in) memmove(out, in, len);
}

void hot_team_set_casts(hot_team *t, uint64_t casts) {
  t->casts = casts;
  t->room = 0;
  if (casts) announce(t, casts - 1);
}

/* ---- the synchronous call --------------------------------------------------------------------------------------------- */

static int fits(const hot_team *t, const hot_call *a) {
  uintptr_t in = (uintptr_t)a->in, out = (uintptr_t)a->out;
  if (t->n == 1 || a->root < 0 || a->root >= t->n || a->count > HOT_INLINE_BYTES) return 0;
  if (a->count && (!a->out || (t->me == a->root && (!a->in || (in != out && in < out + a->count && out < in + a->count))))) return 0;
  return !hot_any_device(t->world, a->in, a->out);
}

/* 1 when the letter is there; a team that is not well, or others that are elsewhere, are for the form that can wait. */
static int wait_briefly(const hot_team *t, const hot_letter *l, uint64_t want) {
  for (int spins = hot_fast_spins(t->world); spins >= 0; spins--) {
    if (atomic_load_explicit(&l->flag, memory_order_acquire) == want) return 1; /* pairs with send of the root */
    hot_pause();
  }
  return 0;
}

/* Nothing has happened when the answer is HOT_SLOW. */
int32_t hot_fast_cast(hot_team *t, uint64_t handle, const hot_call *a) {
  if (HOT_UNLIKELY(!hot_team_take(t, handle))) return HOT_SLOW;
  const hot_desc d = {.op = HOT_OP_CAST, .root = a->root, .count = a->count};
  const uint32_t fp = hot_fingerprint_of(t, &d);
  const uint64_t k = t->casts;
  int32_t st = HOT_SLOW;
  if (HOT_UNLIKELY(!fits(t, a))) {
  } else if (t->me == a->root) {
    if (HOT_LIKELY(k < t->room && hot_alarms(t->world) == t->alarms)) {
      say(t, &d, k);
      send(t, k, fp, a->in, a->count);
      deliver(a->out, a->in, a->count);
      st = HOT_OK;
    }
  } else if (HOT_LIKELY(wait_briefly(t, letter_of(t, a->root, k), flag_for(k, fp)))) {
    say(t, &d, k);
    announce(t, k);
    deliver(a->out, letter_of(t, a->root, k)->inl, a->count);
    st = HOT_OK;
  }
  if (st == HOT_OK) take_part(t, fp);
  hot_team_leave(t);
  return st;
}

/* ---- the form that can wait -------------------------------------------------------------------------------------------- */

void hot_exec_cast_begin(hot_coll *c) {
  hot_team *t = c->team;
  c->cast = t->casts;
  c->fp = hot_fingerprint_of(t, &c->desc);
  c->number = t->seq + (uint32_t)c->cast + 1;
  say(t, &c->desc, c->cast);
  if (t->me != c->call.root) announce(t, c->cast);
  take_part(t, c->fp);
  c->arrived = 1;
  c->state = HOT_COLL_CASTING;
}

static uint64_t flag_of(const hot_coll *c) {
  return atomic_load_explicit(&letter_of(c->team, c->call.root, c->cast)->flag, memory_order_acquire); /* pairs with send */
}

/* 1 there and agreeing, 0 not there, -1 disagreeing. A letter with my number that the root has not begun is one of 2^32 casts ago. */
static int look_at(const hot_coll *c) {
  const uint64_t want = flag_for(c->cast, c->fp);
  uint64_t f = flag_of(c);
  if (f == want) return 1;
  if (!f || f >> 32 != want >> 32 || begun_by(c->team, c->call.root) <= c->cast) return 0;
  return flag_of(c) == want ? 1 : -1;
}

/* hot_behind of a member, of a root without a free letter, and of one that looks who is still there. */
static int no_letter(const hot_coll *c, int32_t r) { return r == c->call.root && look_at(c) == 0; }
static int slow_reader(const hot_coll *c, int32_t r) { return begun_by(c->team, r) + HOT_CASTS < c->cast + 2; }
static int not_begun(const hot_coll *c, int32_t r) { return begun_by(c->team, r) <= c->cast; }
static int anyone(const hot_coll *c, int32_t r) { return c->team->me != r; }

static int at_next_meeting(const hot_coll *c, int32_t r) {
  /* acquire: pairs with the release of rank r's arrival: the casts it began before are seen */
  uint64_t f = atomic_load_explicit(&hot_line_of(c->team, c->team->me, c->team->seq + 1, r)->flag, memory_order_acquire);
  return f && (uint32_t)(f >> 32) == c->team->seq + 1;
}

static int32_t elsewhere(hot_coll *c, int32_t r) {
  c->culprit = r;
  return hot_exec_fail(c, GSHMEM_EMISMATCH);
}

static uint64_t least_begun(const hot_team *t) {
  uint64_t least = UINT64_MAX;
  for (int32_t r = 0; r < t->n; r++) {
    uint64_t b = r == t->me ? UINT64_MAX : begun_by(t, r);
    least = b < least ? b : least;
  }
  return least;
}

int hot_exec_cast_ahead(const hot_coll *c, int32_t r) { return begun_by(c->team, r) > c->team->casts; }

static int32_t to_members(hot_coll *c, int64_t until_ns) {
  hot_team *t = c->team;
  const uint32_t alarms = hot_alarms(t->world);
  if (alarms != t->alarms) {
    int32_t st = hot_exec_look(c, not_begun);
    if (st) return hot_exec_fail(c, st);
    if (hot_exec_look(c, anyone) == HOT_OK) t->alarms = alarms; /* else somebody is lost who had begun this cast: the next one fails */
    c->culprit = -1;
  }
  for (int32_t r = c->next; r < t->n; c->next = ++r) {
    while (r != t->me && slow_reader(c, r)) {
      int32_t st = hot_exec_turn(c, until_ns, slow_reader);
      if (st) return st;
      if (hot_exec_look_around(c) && at_next_meeting(c, r) && slow_reader(c, r)) return elsewhere(c, r);
    }
  }
  t->room = least_begun(t) + HOT_CASTS - 1;
  send(t, c->cast, c->fp, c->call.in, c->piece);
  deliver(c->call.out, c->call.in, c->piece);
  return hot_exec_finish(c, HOT_OK);
}

static int32_t from_root(hot_coll *c, int64_t until_ns) {
  const hot_team *t = c->team;
  const int32_t root = c->call.root;
  int is;
  while (!(is = look_at(c))) {
    int32_t st = hot_exec_turn(c, until_ns, no_letter);
    if (st) return st;
    if (hot_exec_look_around(c) && (begun_by(t, root) > c->cast || at_next_meeting(c, root)) && look_at(c) != 1) return elsewhere(c, root);
  }
  if (is < 0) return elsewhere(c, root);
  deliver(c->call.out, letter_of(t, root, c->cast)->inl, c->piece);
  return hot_exec_finish(c, HOT_OK);
}

int32_t hot_exec_cast(hot_coll *c, int64_t until_ns) {
  return c->team->me == c->call.root ? to_members(c, until_ns) : from_root(c, until_ns);
}
