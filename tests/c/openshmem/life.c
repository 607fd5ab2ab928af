/*
 * life.c - what the specification says of init, memory, teams, contexts, locks, threads and asking, each as a check.
 */
#include "check.h"

#include <pthread.h>

static long global = 5;
static long zero_at_start[300];
static long lock_a, lock_b;

static void asking(void) {
  int major = 0, minor = 0, provided = -1;
  char name[SHMEM_MAX_NAME_LEN] = "";
  F(shmem_info_get_version)(&major, &minor);
  F(shmem_info_get_name)(name);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION && major == 1 && minor == 5, "version %d.%d", major, minor);
  CHECK(!strcmp(name, SHMEM_VENDOR_STRING), "name %s", name);
  F(shmem_query_thread)(&provided);
  CHECK(provided == SHMEM_THREAD_MULTIPLE, "thread level %d", provided);
  CHECK(F(shmem_my_pe)() == me && F(shmem_n_pes)() == n && me >= 0 && me < n, "numbers");
  CHECK(F(shmem_pe_accessible)(me) == 1 && shmem_pe_accessible(right()) == 1 && !shmem_pe_accessible(n) && !shmem_pe_accessible(-1), "pe_accessible");
  long on_stack = 0, *on_heap = shmem_malloc(sizeof *on_heap);
  CHECK(F(shmem_addr_accessible)(on_heap, right()) && shmem_addr_accessible(&global, right()), "addr_accessible");
  CHECK(!shmem_addr_accessible(&on_stack, right()) && !shmem_addr_accessible(on_heap, n), "not accessible");
  *on_heap = me + 100;
  shmem_barrier_all();
  long *there = F(shmem_ptr)(on_heap, right());
  if (there) CHECK(*there == right() + 100, "what shmem_ptr points to");
  CHECK(shmem_ptr(&on_stack, right()) == NULL && shmem_ptr(on_heap, n) == NULL, "shmem_ptr of nothing");
  CHECK(shmem_ptr(on_heap, me) != NULL, "shmem_ptr of the PE itself");
  F(shmem_pcontrol)(1);
  shmem_pcontrol(2, "words", 3);
  F(shmem_clear_cache_inv)();
  F(shmem_set_cache_inv)();
  F(shmem_clear_cache_line_inv)(on_heap);
  F(shmem_set_cache_line_inv)(on_heap);
  F(shmem_udcflush)();
  F(shmem_udcflush_line)(on_heap);
  CHECK(*on_heap == me + 100, "caches");
  shmem_barrier_all();
  shmem_free(on_heap);
}

/* Static data keep their values and are symmetric. */
static void statics(void) {
  CHECK(global == 5 && zero_at_start[299] == 0, "values before init");
  shmem_barrier_all();
  shmem_long_p(&global, 1000 + me, right());
  long line[300];
  for (int i = 0; i < 300; i++) line[i] = me * 1000 + i;
  shmem_long_put(zero_at_start, line, 300, right());
  shmem_barrier_all();
  CHECK(global == 1000 + left(), "p to a global");
  for (int i = 0; i < 300; i++) CHECK(zero_at_start[i] == left() * 1000 + i, "put to a static array, element %d", i);
  CHECK(shmem_long_g(&global, right()) == 1000 + me, "g of a global");
  shmem_barrier_all();
  CHECK(shmem_long_atomic_fetch_add(&global, 7, right()) == 1000 + me, "atomic on a global");
  shmem_barrier_all();
  CHECK(global == 1007 + left(), "the global after the atomic");
  shmem_barrier_all();
}

static void memory(void) {
  CHECK(F(shmem_malloc)(0) == NULL, "malloc of nothing");
  CHECK(F(shmem_calloc)(0, 8) == NULL && F(shmem_align)(64, 0) == NULL && F(shmem_malloc_with_hints)(0, 0) == NULL, "nothing again");
  F(shmem_free)(NULL);
  for (size_t alignment = 8; alignment <= 1 << 16; alignment *= 4) {
    void *p = shmem_align(alignment, 100);
    CHECK(p && (uintptr_t)p % alignment == 0, "align %zu", alignment);
    shmem_free(p);
  }
  long *hinted = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  *hinted = 0;
  shmem_barrier_all();
  shmem_long_atomic_inc(hinted, right());
  shmem_barrier_all();
  CHECK(*hinted == 1, "memory with hints");
  shmem_free(hinted);
  for (int round = 0; round < 4; round++) { /* calloc clears memory that was used before */
    unsigned char *dirty = shmem_malloc(5000);
    memset(dirty, 0xff, 5000);
    shmem_free(dirty);
    unsigned char *clean = shmem_calloc(50, 100);
    int bad = 0;
    for (int i = 0; i < 5000; i++) bad |= clean[i];
    CHECK(!bad, "calloc gave dirty memory");
    shmem_free(clean);
  }
  int *grown = F(shmem_realloc)(NULL, 10 * sizeof *grown);
  for (int i = 0; i < 10; i++) grown[i] = number(me, i, 1);
  grown = shmem_realloc(grown, 100000 * sizeof *grown);
  for (int i = 0; i < 10; i++) CHECK(grown[i] == number(me, i, 1), "realloc lost element %d", i);
  grown[99999] = me;
  shmem_barrier_all();
  CHECK(shmem_int_g(&grown[99999], right()) == right(), "grown memory is symmetric");
  shmem_barrier_all();
  grown = shmem_realloc(grown, 10 * sizeof *grown);
  for (int i = 0; i < 10; i++) CHECK(grown[i] == number(me, i, 1), "shrinking lost element %d", i);
  CHECK(shmem_realloc(grown, 0) == NULL, "realloc to nothing frees");
  CHECK(shmem_malloc((size_t)1 << 50) == NULL, "more than there is");
  void *small = shmem_malloc(8);
  CHECK(small != NULL, "the heap works after exhaustion");
  shmem_free(small);
}

static void teams(void) {
  shmem_team_t even, odd, x, y;
  shmem_team_config_t config = {3}, got = {-1};
  CHECK(F(shmem_team_split_strided)(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, &config, SHMEM_TEAM_NUM_CONTEXTS, &even) == 0, "even");
  CHECK((even != SHMEM_TEAM_INVALID) == (me % 2 == 0), "members get a team, others SHMEM_TEAM_INVALID");
  if (even != SHMEM_TEAM_INVALID) {
    CHECK(F(shmem_team_my_pe)(even) == me / 2 && F(shmem_team_n_pes)(even) == (n + 1) / 2, "rank in even");
    CHECK(F(shmem_team_get_config)(even, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 3, "config %d", got.num_contexts);
    CHECK(F(shmem_team_translate_pe)(even, me / 2, SHMEM_TEAM_WORLD) == me, "to the world");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, even) == me / 2, "from the world");
    if (n > 1) CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1, even) == -1, "PE 1 is not in it");
    CHECK(shmem_team_translate_pe(even, 1000, SHMEM_TEAM_WORLD) == -1, "no such rank");
    long *shared = (long *)F(shmem_team_ptr)(even, &global, shmem_team_my_pe(even));
    CHECK(shared && *shared == global, "team_ptr");
    CHECK(shmem_team_ptr(even, &global, 1000) == NULL, "team_ptr of no rank");
    CHECK(F(shmem_team_sync)(even) == 0, "sync of a team");
  }
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &odd) != 0 && odd == SHMEM_TEAM_INVALID, "split of no team");
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1, "no team");
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == n, "the world");
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1 && shmem_team_my_pe(SHMEM_TEAM_SHARED) >= 0, "the shared team");
  int range = n > 2 ? 2 : 1;
  CHECK(F(shmem_team_split_2d)(SHMEM_TEAM_WORLD, range, NULL, 0, &x, NULL, 0, &y) == 0, "2d");
  CHECK(shmem_team_my_pe(x) == me % range && shmem_team_my_pe(y) == me / range, "place %d, %d", shmem_team_my_pe(x), shmem_team_my_pe(y));
  CHECK(shmem_team_n_pes(x) == (n - me / range * range < range ? n - me / range * range : range), "width");
  long one = 1, width = 0;
  CHECK(shmem_long_sum_reduce(x, &width, &one, 1) == 0 && width == shmem_team_n_pes(x), "a reduction over a row gives %ld", width);
  shmem_team_t stale = x;
  F(shmem_team_destroy)(x);
  shmem_team_destroy(y);
  shmem_team_destroy(even);
  shmem_team_destroy(SHMEM_TEAM_INVALID);
  CHECK(shmem_team_my_pe(stale) == -1, "a destroyed team is no team");
}

static void contexts(void) {
  long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
  for (int i = 0; i < 4; i++) {
    shmem_ctx_t ctx;
    shmem_team_t team;
    CHECK(F(shmem_ctx_create)(options[i], &ctx) == 0 && ctx != SHMEM_CTX_INVALID, "context with options %ld", options[i]);
    CHECK(F(shmem_ctx_get_team)(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD, "its team");
    shmem_ctx_long_p(ctx, &global, 50 + i, right());
    F(shmem_ctx_fence)(ctx);
    shmem_ctx_long_p(ctx, &global, 60 + i, right());
    F(shmem_ctx_quiet)(ctx);
    shmem_barrier_all();
    CHECK(global == 60 + i, "through a context");
    shmem_barrier_all();
    F(shmem_ctx_destroy)(ctx);
  }
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_team_t team;
  shmem_ctx_t none;
  CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD, "the default context");
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID, "no context");
  CHECK(F(shmem_team_create_ctx)(SHMEM_TEAM_INVALID, 0, &none) != 0 && none == SHMEM_CTX_INVALID, "context of no team");
}

/* Increments that are no atomics, under a lock: none is lost. */
static void locks(void) {
  static long count;
  enum { TIMES = 60 };
  long *on_heap = shmem_calloc(2, sizeof *on_heap);
  shmem_barrier_all();
  for (int i = 0; i < TIMES; i++) {
    long *lock = i % 2 ? &lock_a : on_heap;
    if (i % 3 == 0) {
      while (F(shmem_test_lock)(lock)) usleep(10);
    } else {
      F(shmem_set_lock)(lock);
    }
    long *what = i % 2 ? &count : &on_heap[1];
    shmem_long_p(what, shmem_long_g(what, n - 1) + 1, n - 1);
    F(shmem_clear_lock)(lock);
  }
  shmem_barrier_all();
  CHECK(shmem_long_g(&count, n - 1) == TIMES / 2 * n && shmem_long_g(&on_heap[1], n - 1) == TIMES / 2 * n, "increments were lost: %ld", shmem_long_g(&count, n - 1));
  if (me == 0) CHECK(shmem_test_lock(&lock_b) == 0, "a free lock is taken");
  shmem_barrier_all();
  if (me == n - 1 && n > 1) CHECK(shmem_test_lock(&lock_b) == 1, "a taken lock is refused");
  shmem_barrier_all();
  if (me == 0) shmem_clear_lock(&lock_b);
  shmem_barrier_all();
  if (me == n - 1) {
    CHECK(shmem_test_lock(&lock_b) == 0, "a cleared lock is free");
    shmem_clear_lock(&lock_b);
  }
  shmem_barrier_all();
  shmem_free(on_heap);
}

/* Data, fence, flag: whoever sees the flag sees the data. */
static void order(void) {
  long *box = shmem_calloc(66, sizeof *box);
  for (long round = 1; round <= 30; round++) {
    long data[64];
    for (int i = 0; i < 64; i++) data[i] = round * 100 + i + me;
    shmem_long_put_nbi(box, data, 64, right());
    if (round % 2) F(shmem_fence)();
    else F(shmem_quiet)();
    shmem_long_p(&box[64], round, right());
    shmem_long_wait_until(&box[64], SHMEM_CMP_GE, round);
    for (int i = 0; i < 64; i++) CHECK(box[i] == round * 100 + i + left(), "round %ld: the flag came before element %d", round, i);
    if (round % 3) F(shmem_barrier_all)();
    else F(shmem_sync_all)();
  }
  shmem_free(box);
}

static long *threads_word;
static void *add(void *arg) {
  for (int i = 0; i < 200; i++) shmem_long_atomic_add(threads_word, 1 + (arg != NULL), right());
  return NULL;
}
static void threads(void) {
  pthread_t t[4];
  threads_word = shmem_calloc(1, sizeof *threads_word);
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, add, i % 2 ? &t : NULL);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  shmem_barrier_all();
  CHECK(*threads_word == 1200, "four threads: %ld", *threads_word);
  shmem_barrier_all();
  shmem_free(threads_word);
}

int main(void) {
  int provided = -1;
  CHECK(F(shmem_init_thread)(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE, "init_thread gave %d", provided);
  me = shmem_my_pe();
  n = shmem_n_pes();
  used("shmem_init"); /* every other program */
  used("shmem_finalize");
  asking();
  statics();
  memory();
  teams();
  contexts();
  locks();
  order();
  threads();
  return finish();
}
