/* closing_test.c - a world that closes under running operations, handles that go stale, threads that come and go. */
#include "rig.h"

enum { WORLDS = 150, PUTTERS = 3 };

typedef struct race {
  rig r;
  _Atomic int stop;
  _Atomic long moved;
} race;

/* Puts, waits and atomics until the world is refused: an error, never a fault. */
static void *put_until_closed(void *arg) {
  race *x = arg;
  uint64_t v = 1, old;
  for (;;) {
    int32_t rc = hot_h_put(x->r.h, rig_word(&x->r, 2), &v, 8, 1);
    if (rc == HOT_OK) rc = hot_h_atomic(x->r.h, HOT_A_ADD, 8, rig_word(&x->r, 3), 1, 0, 1, &old);
    if (rc == HOT_OK) {
      hot_wait s = {0};
      rc = hot_h_wait_until(x->r.h, rig_word(&x->r, 4), 8, HOT_CMP_EQ, 1, &s, hot_now() + 30000);
      if (rc == HOT_PENDING || rc == HOT_SLOW) rc = HOT_OK;
    }
    if (rc == GSHMEM_ESTALE) return NULL;
    CHECK_EQ(rc, HOT_OK);
    atomic_fetch_add(&x->moved, 1);
  }
}

static void close_races(void) {
  long moved = 0;
  for (int i = 0; i < WORLDS; i++) {
    race x = {.stop = 0};
    pthread_t t[PUTTERS];
    rig_memory(&x.r, 2);
    rig_table(&x.r, 0);
    for (int k = 0; k < PUTTERS; k++) CHECK(!pthread_create(&t[k], NULL, put_until_closed, &x));
    while (atomic_load(&x.moved) < i % 20) sched_yield();
    hot_world_close(x.r.w);
    CHECK_EQ(hot_world_drain(x.r.w, 100000000000ll), HOT_OK);
    for (int p = 0; p < 2; p++) munmap(x.r.seg[p], RIG_BYTES); /* who is still inside faults now */
    hot_world_free(x.r.w);
    for (int k = 0; k < PUTTERS; k++) pthread_join(t[k], NULL);
    moved += atomic_load(&x.moved);
  }
  CHECK(moved > 0);
}

static void put_against_close(void) { close_races(); }

static void put_against_close_without_membarrier(void) {
  hot_fence_needed = 1;
  close_races();
}

static void *wait_long(void *arg) {
  rig *r = arg;
  hot_wait s = {0};
  return (void *)(intptr_t)hot_h_wait_until(r->h, rig_word(r, 0), 8, HOT_CMP_EQ, 1, &s, INT64_MAX);
}

/* Drain says PENDING while somebody is inside; the alarm that close raises gets a waiter out. */
static void close_ends_waits(void) {
  rig r;
  pthread_t t;
  void *result;
  rig_memory(&r, 1);
  rig_table(&r, 0);
  CHECK(!pthread_create(&t, NULL, wait_long, &r));
  usleep(20000);
  CHECK_EQ(hot_world_drain(r.w, 1000000), HOT_PENDING);
  rig_end(&r);
  pthread_join(t, &result);
  CHECK((intptr_t)result == HOT_SLOW || (intptr_t)result == GSHMEM_ESTALE);
}

/* A refused world takes no operation and ends waits, can be looked at, and its memory is waited for by close as ever. */
static void refused_is_not_closed(void) {
  rig r;
  pthread_t t;
  void *result;
  hot_world *w;
  hot_thread *self;
  uint64_t v = 7, old;
  int32_t yes;
  rig_memory(&r, 2);
  rig_table(&r, 0);
  CHECK(!pthread_create(&t, NULL, wait_long, &r));
  usleep(20000);
  hot_world_refuse(r.w);
  pthread_join(t, &result);
  CHECK_EQ((intptr_t)result, HOT_SLOW);
  CHECK_EQ(hot_h_put(r.h, rig_word(&r, 0), &v, 8, 1), GSHMEM_ESTALE);
  CHECK_EQ(hot_h_g(r.h, rig_word(&r, 0), 8, 0, &old), GSHMEM_ESTALE);
  CHECK_EQ(hot_h_test(r.h, rig_word(&r, 0), 8, HOT_CMP_EQ, 0, &yes), GSHMEM_ESTALE);
  CHECK_EQ(hot_h_fence(r.h), GSHMEM_ESTALE);
  CHECK_EQ(hot_enter(r.h, &w, &self), GSHMEM_ESTALE);
  CHECK(self->in == NULL);
  CHECK_EQ(hot_enter_known(r.h, &w, &self), HOT_OK);
  CHECK(w == r.w && self->in == r.w);
  hot_leave(self);
  CHECK_EQ(hot_enter_known(r.h + (1ull << 32), &w, &self), GSHMEM_ESTALE);
  uint64_t h = r.h;
  rig_end(&r);
  CHECK_EQ(hot_enter_known(h, &w, &self), GSHMEM_ESTALE);
}

static void handles_go_stale(void) {
  rig r;
  uint64_t seen[300], v = 1;
  for (int i = 0; i < 300; i++) { /* more than there are slots, one after the other */
    rig_memory(&r, 1);
    rig_table(&r, 0);
    seen[i] = r.h;
    for (int k = 0; k < i; k++) CHECK(seen[k] != r.h);
    CHECK_EQ(hot_h_put(r.h, rig_word(&r, 0), &v, 8, 0), HOT_OK);
    if (i) CHECK_EQ(hot_h_put(seen[i - 1], rig_word(&r, 0), &v, 8, 0), GSHMEM_ESTALE);
    rig_end(&r);
    munmap(r.seg[0], RIG_BYTES);
  }
  hot_world *all[HOT_MAX_WORLDS];
  int n = 0;
  while (n < HOT_MAX_WORLDS && (all[n] = hot_world_new(0, 1, 1))) n++;
  CHECK_EQ(n, HOT_MAX_WORLDS - 1);
  while (n) hot_world_free(all[--n]);
}

static void teams(void) {
  rig r;
  hot_thread *t;
  hot_team *found;
  rig_memory(&r, 3);
  rig_table(&r, 1);
  hot_team *team = hot_team_new(r.w, 1, 3);
  CHECK(team && team->pe && team->ctl && team->ctl_off);
  CHECK_EQ(team->busy, 1);
  uint64_t h = hot_team_publish(team);
  CHECK_EQ(team->busy, 0);
  CHECK_EQ(hot_enter_team(h, &found, &t), HOT_OK);
  CHECK(found == team && t->in == r.w);
  hot_leave(t);
  uint64_t v = 0;
  CHECK_EQ(hot_h_put(h, rig_word(&r, 0), &v, 8, 0), GSHMEM_ESTALE); /* a team's handle is no world's */
  CHECK_EQ(hot_enter_team(r.h, &found, &t), GSHMEM_ESTALE);
  hot_team_close(team);
  CHECK_EQ(hot_enter_team(h, &found, &t), GSHMEM_ESTALE);
  CHECK_EQ(atomic_exchange(&team->busy, 1), 0);
  hot_team_free(team);
  CHECK_EQ(team->busy, 1); /* a late caller finds it busy */
  hot_team *again = hot_team_new(r.w, 0, 1);
  CHECK(again == team);
  uint64_t h2 = hot_team_publish(again);
  CHECK(h2 != h);
  CHECK_EQ(hot_enter_team(h, &found, &t), GSHMEM_ESTALE);
  hot_world_close(r.w);
  CHECK_EQ(hot_enter_team(h2, &found, &t), GSHMEM_ESTALE); /* its world is closed */
  CHECK_EQ(hot_world_drain(r.w, 0), HOT_OK);
  hot_team_close(again);
  atomic_exchange(&again->busy, 1);
  hot_team_free(again);
  hot_world_free(r.w);
}

static void *own_word(void *arg) {
  (void)arg;
  return hot_thread_self();
}

/* A thread's word serves the next thread: nothing grows. */
static void threads_reuse_words(void) {
  void *first = NULL;
  CHECK(hot_thread_self() == hot_thread_self());
  for (int i = 0; i < 200; i++) {
    pthread_t t;
    void *word;
    CHECK(!pthread_create(&t, NULL, own_word, NULL));
    pthread_join(t, &word);
    CHECK(word && word != (void *)hot_thread_self());
    if (!first) first = word;
    CHECK(word == first);
  }
}

static void headers(void) {
  rig r;
  rig_memory(&r, 1);
  hot_header *h = (hot_header *)(void *)r.seg[0];
  uint8_t nonce[16] = {1, 2, 3}, other[16] = {1, 2, 4};
  CHECK_EQ(hot_header_check(h, nonce), 1);
  hot_header_init(h, 0, 1, nonce, RIG_BYTES, 4096, 512, 1024, 2048, 4096);
  CHECK_EQ(hot_header_check(h, nonce), 0);
  CHECK_EQ(hot_header_check(h, other), 3);
  h->version++;
  CHECK_EQ(hot_header_check(h, nonce), 2);
}

const test_case closing_tests[] = {
  {"put against close", put_against_close},
  {"put against close without membarrier", put_against_close_without_membarrier},
  {"close ends waits", close_ends_waits},
  {"refused is not closed", refused_is_not_closed},
  {"handles go stale", handles_go_stale},
  {"teams", teams},
  {"threads reuse words", threads_reuse_words},
  {"headers", headers},
  {NULL, NULL},
};
