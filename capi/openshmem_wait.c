/*
 * openshmem_wait.c - waits and tests on one word and on sets of words.
 *
 * A set is an array of words of one width; status[i] != 0 takes word i out. The set forms share one scan; a wait is that
 * scan, again after each turn of waiting (which spins, yields, then sleeps until somebody rings this PE's bell). Both happen inside the
 * world, so that a finalize of another thread does not take the words away meanwhile.
 */
#include "openshmem.h"

typedef struct word_set {
  const char *op;
  const uint8_t *words;
  size_t n;
  const int *status;
  const uint8_t *values; /* one value, or n of them */
  int width, is_signed, cmp, vector;
} word_set;

static uint64_t load(const uint8_t *p, int width, int is_signed) {
  uint64_t v = 0;
  hot_load(p, width, &v);
  int shift = 64 - 8 * width;
  return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v;
}

static int holds(const word_set *s, size_t i) {
  uint64_t have = load(s->words + i * (size_t)s->width, s->width, s->is_signed);
  uint64_t want = load(s->values + (s->vector ? i * (size_t)s->width : 0), s->width, s->is_signed);
  return hot_compare(s->cmp | (s->is_signed ? HOT_CMP_SIGNED : 0), have, want);
}

static inline int out(const word_set *s, size_t i) { return s->status && s->status[i]; }

/* How many words take part, and how many of them hold: those in `indices`, when given. */
static size_t scan(const word_set *s, size_t *indices, size_t *holding) {
  size_t taking_part = 0, n = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (out(s, i)) continue;
    taking_part++;
    if (!holds(s, i)) continue;
    if (indices) indices[n] = i;
    n++;
  }
  *holding = n;
  return taking_part;
}

static void check(word_set *s) {
  int32_t unused = 0;
  s->words = osh_twin(s->words);
  if (!s->n) return;
  if (s->cmp < SHMEM_CMP_EQ || s->cmp > SHMEM_CMP_LE) osh_die(s->op, "cmp is %d; use SHMEM_CMP_EQ, NE, GT, GE, LT or LE", s->cmp);
  /* the first and the last word are symmetric and aligned, or words say why not */
  osh_check(s->op, gshmem_test(osh.world, s->words, s->width, s->is_signed, s->cmp, 0, &unused));
  osh_check(s->op, gshmem_test(osh.world, s->words + (s->n - 1) * (size_t)s->width, s->width, s->is_signed, s->cmp, 0, &unused));
}

enum { ALL, ANY, SOME };

static _Atomic size_t answered; /* of the last any form: the next begins behind it, so that no word starves another */

static size_t any(const word_set *s, int *done) {
  size_t taking_part = 0, begin = s->n ? (atomic_load_explicit(&answered, memory_order_relaxed) + 1) % s->n : 0;
  for (size_t k = 0; k < s->n; k++) {
    size_t i = begin + k < s->n ? begin + k : begin + k - s->n;
    if (out(s, i)) continue;
    taking_part++;
    if (!holds(s, i)) continue;
    atomic_store_explicit(&answered, i, memory_order_relaxed);
    *done = 1;
    return i;
  }
  *done = taking_part == 0;
  return SIZE_MAX;
}

/* The answer of the any and some forms; for all, whether all hold. */
static size_t look(const word_set *s, int which, size_t *indices, int *done) {
  if (which == ANY) return any(s, done);
  size_t holding, taking_part = scan(s, indices, &holding);
  *done = which == ALL ? holding == taking_part : holding > 0 || taking_part == 0;
  return which == ALL ? (size_t)*done : holding;
}

/* An alarm (somebody died, aborted, left). A poll in Go says whether it ends this call too; then the job ends. */
static void ask(const word_set *s) {
  uint64_t seen;
  int32_t rc = gshmem_wait_until(osh.world, s->words, s->width, 0, GSHMEM_CMP_LT, 0, 0, &seen); /* never true, so Go looks around */
  if (rc != GSHMEM_OK && rc != GSHMEM_ETIMEOUT) osh_fail(s->op, rc);
}

/* Looks, and unless it is done rests until the words may have changed; w NULL: does not rest. */
static size_t look_and_rest(const word_set *s, int which, size_t *indices, int *done, hot_wait *w) {
  hot_world *world;
  hot_thread *self;
  size_t answer = 0;
  *done = 0;
  int32_t rc = hot_enter(osh.world, &world, &self);
  if (rc == HOT_OK) {
    answer = look(s, which, indices, done);
    if (w && !*done) rc = hot_wait_spin(world, w, INT64_MAX);
    hot_leave(self);
  }
  if (rc != HOT_OK) ask(s);
  return answer;
}

static size_t wait_set(const word_set *s, int which, size_t *indices) {
  hot_wait w = {0};
  int done = 0;
  size_t answer;
  do answer = look_and_rest(s, which, indices, &done, &w);
  while (!done);
  return answer;
}

/* all may take the words one after another: each has held once when it returns. */
static void wait_all(const word_set *s) {
  for (size_t i = 0; i < s->n; i++) {
    if (out(s, i)) continue;
    word_set one = *s;
    one.words += i * (size_t)s->width;
    one.values += s->vector ? i * (size_t)s->width : 0;
    one.n = 1;
    one.status = NULL;
    wait_set(&one, ALL, NULL);
  }
}

/* Every set form ends here. */
OSH_SHARED static size_t run(word_set *s, int which, int waits, size_t *indices) {
  int done;
  check(s);
  if (!waits) return s->n ? look_and_rest(s, which, indices, &done, NULL) : look(s, which, indices, &done);
  if (which != ALL) return wait_set(s, which, indices);
  wait_all(s);
  return 1;
}

static inline uint64_t wait_one(const char *op, const void *word, int width, int is_signed, int cmp, uint64_t value) {
  uint64_t seen = 0;
  osh_check(op, gshmem_wait_until(osh.world, osh_twin(word), width, is_signed, cmp, value, -1, &seen));
  return seen;
}

static inline int test_one(const void *word, int width, int is_signed, int cmp, uint64_t value) {
  int32_t yes = 0;
  osh_check("test", gshmem_test(osh.world, osh_twin(word), width, is_signed, cmp, value, &yes));
  return yes;
}

#define SET(T, OP, VALUES, VECTOR) \
  &(word_set) { OP, (const void *)ivars, nelems, status, VALUES, sizeof(T), OSH_SIGNED(T), cmp, VECTOR }
#define FORMS(N, T, TAIL, PARAM, VALUES, VECTOR)                                                                                   \
  void shmem_##N##_wait_until_all##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                            \
    run(SET(T, "wait_until_all", VALUES, VECTOR), ALL, 1, NULL);                                                                   \
  }                                                                                                                                \
  size_t shmem_##N##_wait_until_any##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                          \
    return run(SET(T, "wait_until_any", VALUES, VECTOR), ANY, 1, NULL);                                                            \
  }                                                                                                                                \
  size_t shmem_##N##_wait_until_some##TAIL(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T PARAM) {        \
    return run(SET(T, "wait_until_some", VALUES, VECTOR), SOME, 1, indices);                                                       \
  }                                                                                                                                \
  int shmem_##N##_test_all##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                                   \
    return (int)run(SET(T, "test_all", VALUES, VECTOR), ALL, 0, NULL);                                                             \
  }                                                                                                                                \
  size_t shmem_##N##_test_any##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                                \
    return run(SET(T, "test_any", VALUES, VECTOR), ANY, 0, NULL);                                                                  \
  }                                                                                                                                \
  size_t shmem_##N##_test_some##TAIL(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T PARAM) {              \
    return run(SET(T, "test_some", VALUES, VECTOR), SOME, 0, indices);                                                             \
  }
#define WAITS(N, T)                                                                                                                \
  void shmem_##N##_wait_until(T *ivar, int cmp, T cmp_value) { wait_one("wait_until", ivar, sizeof(T), OSH_SIGNED(T), cmp, (uint64_t)cmp_value); } \
  int shmem_##N##_test(T *ivar, int cmp, T cmp_value) { return test_one(ivar, sizeof(T), OSH_SIGNED(T), cmp, (uint64_t)cmp_value); } \
  FORMS(N, T, , cmp_value, (const void *)&cmp_value, 0)                                                                            \
  FORMS(N, T, _vector, *cmp_values, (const void *)cmp_values, 1)
OPENSHMEM_WAIT(WAITS)

#define WAITS_OLD(N, T) \
  void shmem_##N##_wait(T *ivar, T cmp_value) { wait_one("wait", ivar, sizeof(T), 1, SHMEM_CMP_NE, (uint64_t)cmp_value); }
OPENSHMEM_WAIT_OLD(WAITS_OLD)
void shmem_wait(long *ivar, long cmp_value) { shmem_long_wait(ivar, cmp_value); }

uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value) {
  return wait_one("signal_wait_until", sig_addr, 8, 0, cmp, cmp_value);
}
