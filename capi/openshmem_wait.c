/*
 * openshmem_wait.c - waits and tests on one word and on sets of words.
 *
 * A set is an array of words of one width; status[i] != 0 takes word i out. The set forms share one scan; a wait is that
 * scan, again after each turn of waiting (which spins, yields, then sleeps until somebody rings this PE's bell).
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

/* The scan: how many words take part, how many hold; the first of them in *first, all of them in `indices` when given. */
static size_t scan(const word_set *s, size_t *indices, size_t *first, size_t *holding) {
  size_t taking_part = 0, n = 0;
  *first = SIZE_MAX;
  for (size_t i = 0; i < s->n; i++) {
    if (out(s, i)) continue;
    taking_part++;
    if (!holds(s, i)) continue;
    if (n == 0) *first = i;
    if (indices) indices[n] = i;
    n++;
  }
  *holding = n;
  return taking_part;
}

static word_set checked(const char *op, const void *words, size_t n, const int *status, const void *values, int width, int is_signed, int cmp, int vector) {
  word_set s = {op, osh_twin(words), n, status, values, width, is_signed, cmp, vector};
  if (n && (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE)) osh_die(op, "cmp is %d; use SHMEM_CMP_EQ, NE, GT, GE, LT or LE", cmp);
  if (n) {
    int32_t unused = 0;
    osh_check(op, gshmem_test(osh.world, s.words, width, is_signed, cmp, 0, &unused)); /* symmetric and aligned, or words */
    osh_check(op, gshmem_test(osh.world, s.words + (n - 1) * (size_t)width, width, is_signed, cmp, 0, &unused));
  }
  return s;
}

/* Rests until the words may have changed; ends the job when it was aborted or the world is gone. */
static void rest(const word_set *s, hot_wait *w) {
  hot_world *world;
  hot_thread *self;
  int32_t rc = hot_enter(osh.world, &world, &self);
  if (rc == HOT_OK) {
    rc = hot_wait_spin(world, w, INT64_MAX);
    hot_leave(self);
  }
  if (rc == HOT_OK) return;
  /* An alarm (somebody died, aborted, left). A poll in Go says whether it ends this wait too. */
  uint64_t seen;
  uint64_t never = load(s->words, s->width, s->is_signed) + 1;
  rc = gshmem_wait_until(osh.world, s->words, s->width, s->is_signed, GSHMEM_CMP_EQ, never, 0, &seen);
  if (rc != GSHMEM_OK && rc != GSHMEM_ETIMEOUT) osh_fail(s->op, rc);
}

enum { ALL, ANY, SOME };

/* The answer of the any and some forms; for all, whether all hold. */
static size_t look(const word_set *s, int which, size_t *indices, int *done) {
  size_t first, holding, taking_part = scan(s, indices, &first, &holding);
  *done = which == ALL ? holding == taking_part : holding > 0 || taking_part == 0;
  return which == ALL ? (size_t)*done : which == ANY ? first : holding;
}

static size_t test_set(const word_set *s, int which, size_t *indices) {
  int done;
  size_t answer = look(s, which, indices, &done);
  if (!done || which == SOME) hot_pause();
  return answer;
}

static size_t wait_set(const word_set *s, int which, size_t *indices) {
  hot_wait w = {0};
  int done;
  size_t answer = look(s, which, indices, &done);
  while (!done) {
    rest(s, &w);
    answer = look(s, which, indices, &done);
  }
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

#define SET(OP, values, vector) checked(OP, ivars, nelems, status, values, sizeof *ivars, OSH_SIGNED(__typeof__(*ivars)), cmp, vector)
#define FORMS(N, T, TAIL, PARAM, VALUES, VECTOR)                                                                                   \
  void shmem_##N##_wait_until_all##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                            \
    word_set s = SET("wait_until_all", VALUES, VECTOR);                                                                            \
    wait_all(&s);                                                                                                                  \
  }                                                                                                                                \
  size_t shmem_##N##_wait_until_any##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                          \
    word_set s = SET("wait_until_any", VALUES, VECTOR);                                                                            \
    return wait_set(&s, ANY, NULL);                                                                                                \
  }                                                                                                                                \
  size_t shmem_##N##_wait_until_some##TAIL(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T PARAM) {        \
    word_set s = SET("wait_until_some", VALUES, VECTOR);                                                                           \
    return wait_set(&s, SOME, indices);                                                                                            \
  }                                                                                                                                \
  int shmem_##N##_test_all##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                                   \
    word_set s = SET("test_all", VALUES, VECTOR);                                                                                  \
    return (int)test_set(&s, ALL, NULL);                                                                                           \
  }                                                                                                                                \
  size_t shmem_##N##_test_any##TAIL(T *ivars, size_t nelems, const int *status, int cmp, T PARAM) {                                \
    word_set s = SET("test_any", VALUES, VECTOR);                                                                                  \
    return test_set(&s, ANY, NULL);                                                                                                \
  }                                                                                                                                \
  size_t shmem_##N##_test_some##TAIL(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T PARAM) {              \
    word_set s = SET("test_some", VALUES, VECTOR);                                                                                 \
    return test_set(&s, SOME, indices);                                                                                            \
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
