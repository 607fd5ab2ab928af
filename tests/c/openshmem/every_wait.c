/* every_wait.c - calls every wait and test of every type: single, all, any, some, with one value and with a vector. */
#include "check.h"

#define WORDS 6

static uint64_t *room;

/* Word i of the right neighbour becomes its final value, in an order that differs by PE; the others wait meanwhile. */
#define FILL(N, T)                                                                                         \
  for (int k = 0; k < WORDS; k++) {                                                                        \
    int i = (k + me) % WORDS;                                                                              \
    shmem_##N##_p(&t[i], (T)(10 + i), right());                                                            \
  }
#define RESET(N, T)                                      \
  shmem_barrier_all();                                   \
  for (int i = 0; i < WORDS; i++) t[i] = (T)0;           \
  shmem_barrier_all()

#define TYPED(N, T)                                                                                        \
  static void single_##N(T *t) {                                                                           \
    RESET(N, T);                                                                                           \
    CHECK(!F(shmem_##N##_test)(&t[2], SHMEM_CMP_EQ, (T)12), "test before");                                \
    CHECK(shmem_##N##_test(&t[2], SHMEM_CMP_EQ, (T)0) && shmem_##N##_test(&t[2], SHMEM_CMP_LE, (T)0), "test of equality"); \
    shmem_barrier_all();                                                                                   \
    FILL(N, T)                                                                                             \
    F(shmem_##N##_wait_until)(&t[2], SHMEM_CMP_EQ, (T)12);                                                 \
    CHECK(t[2] == (T)12 && shmem_##N##_test(&t[2], SHMEM_CMP_GE, (T)12) && !shmem_##N##_test(&t[2], SHMEM_CMP_GT, (T)12) && \
              shmem_##N##_test(&t[2], SHMEM_CMP_NE, (T)11) && !shmem_##N##_test(&t[2], SHMEM_CMP_LT, (T)12), "comparisons"); \
    t[0] = (T)-3;                                                                                          \
    CHECK(shmem_##N##_test(&t[0], SHMEM_CMP_LT, (T)1) == ((T)-3 < (T)1), "sign");                          \
  }                                                                                                        \
  static void sets_##N(T *t) {                                                                             \
    int status[WORDS] = {0, 1, 0, 0, 1, 0};                                                                \
    size_t indices[WORDS], got;                                                                            \
    RESET(N, T);                                                                                           \
    CHECK(!F(shmem_##N##_test_all)(t, WORDS, status, SHMEM_CMP_NE, (T)0), "test_all before");              \
    CHECK(F(shmem_##N##_test_any)(t, WORDS, status, SHMEM_CMP_NE, (T)0) == SIZE_MAX, "test_any before");   \
    CHECK(F(shmem_##N##_test_some)(t, WORDS, indices, status, SHMEM_CMP_NE, (T)0) == 0, "test_some before"); \
    shmem_barrier_all();                                                                                   \
    FILL(N, T)                                                                                             \
    got = F(shmem_##N##_wait_until_any)(t, WORDS, status, SHMEM_CMP_GE, (T)10);                            \
    CHECK(got < WORDS && !status[got] && t[got] == (T)(10 + got), "wait_until_any gave %zu", got);         \
    got = F(shmem_##N##_wait_until_some)(t, WORDS, indices, status, SHMEM_CMP_GT, (T)9);                   \
    CHECK(got >= 1 && got <= 4, "wait_until_some gave %zu", got);                                          \
    for (size_t k = 0; k < got; k++) CHECK(!status[indices[k]] && t[indices[k]] == (T)(10 + indices[k]), "index %zu", indices[k]); \
    F(shmem_##N##_wait_until_all)(t, WORDS, status, SHMEM_CMP_NE, (T)0);                                   \
    for (int i = 0; i < WORDS; i++) CHECK(status[i] || t[i] == (T)(10 + i), "wait_until_all, word %d", i); \
    shmem_##N##_wait_until_all(t, WORDS, NULL, SHMEM_CMP_NE, (T)0);                                        \
    CHECK(shmem_##N##_test_all(t, WORDS, NULL, SHMEM_CMP_GE, (T)10), "test_all after");                    \
    CHECK(shmem_##N##_test_any(t, WORDS, NULL, SHMEM_CMP_EQ, (T)13) == 3, "test_any after");               \
    int seen = 0; /* all hold: in turn, each is answered */                                                \
    for (int i = 0; i < WORDS; i++) seen |= 1 << shmem_##N##_test_any(t, WORDS, NULL, SHMEM_CMP_NE, (T)0);  \
    CHECK(seen == (1 << WORDS) - 1, "test_any starves words: %#x", (unsigned)seen);                        \
    CHECK(shmem_##N##_test_some(t, WORDS, indices, NULL, SHMEM_CMP_GE, (T)14) == 2 && indices[0] + indices[1] == 9, "test_some after"); \
  }                                                                                                        \
  static void vectors_##N(T *t) {                                                                          \
    T want[WORDS] = {10, 11, 12, 13, 14, 15}, wrong[WORDS] = {90, 91, 92, 13, 94, 95};                     \
    int status[WORDS] = {0, 0, 1, 0, 0, 0};                                                                \
    size_t indices[WORDS], got;                                                                            \
    RESET(N, T);                                                                                           \
    CHECK(!F(shmem_##N##_test_all_vector)(t, WORDS, status, SHMEM_CMP_EQ, want), "test_all_vector before"); \
    CHECK(F(shmem_##N##_test_any_vector)(t, WORDS, status, SHMEM_CMP_EQ, want) == SIZE_MAX, "test_any_vector before"); \
    CHECK(F(shmem_##N##_test_some_vector)(t, WORDS, indices, status, SHMEM_CMP_EQ, want) == 0, "test_some_vector before"); \
    shmem_barrier_all();                                                                                   \
    FILL(N, T)                                                                                             \
    CHECK(F(shmem_##N##_wait_until_any_vector)(t, WORDS, status, SHMEM_CMP_EQ, wrong) == 3, "wait_until_any_vector"); \
    got = F(shmem_##N##_wait_until_some_vector)(t, WORDS, indices, NULL, SHMEM_CMP_EQ, wrong);             \
    CHECK(got == 1 && indices[0] == 3, "wait_until_some_vector gave %zu", got);                            \
    F(shmem_##N##_wait_until_all_vector)(t, WORDS, status, SHMEM_CMP_EQ, want);                            \
    shmem_##N##_wait_until_all_vector(t, WORDS, NULL, SHMEM_CMP_EQ, want);                                 \
    CHECK(shmem_##N##_test_all_vector(t, WORDS, NULL, SHMEM_CMP_EQ, want), "test_all_vector after");       \
    CHECK(shmem_##N##_test_any_vector(t, WORDS, NULL, SHMEM_CMP_EQ, wrong) == 3, "test_any_vector after"); \
    CHECK(shmem_##N##_test_some_vector(t, WORDS, indices, NULL, SHMEM_CMP_NE, wrong) == WORDS - 1, "test_some_vector after"); \
  }                                                                                                        \
  static void empty_##N(T *t) {                                                                            \
    int all_out[WORDS] = {1, 1, 1, 1, 1, 1};                                                               \
    size_t indices[WORDS];                                                                                 \
    CHECK(shmem_##N##_wait_until_any(t, WORDS, all_out, SHMEM_CMP_EQ, (T)77) == SIZE_MAX, "an empty set has no index"); \
    CHECK(shmem_##N##_wait_until_some(t, WORDS, indices, all_out, SHMEM_CMP_EQ, (T)77) == 0, "some of nothing"); \
    CHECK(shmem_##N##_test_all(t, WORDS, all_out, SHMEM_CMP_EQ, (T)77) == 1, "all of nothing hold");       \
    CHECK(shmem_##N##_test_all(t, 0, NULL, SHMEM_CMP_EQ, (T)77) == 1, "all of no words hold");             \
    CHECK(shmem_##N##_wait_until_any(t, 0, NULL, SHMEM_CMP_EQ, (T)77) == SIZE_MAX, "any of no words");     \
    shmem_##N##_wait_until_all(t, WORDS, all_out, SHMEM_CMP_EQ, (T)77);                                    \
  }                                                                                                        \
  static void test_##N(void) {                                                                             \
    T *t = (T *)room;                                                                                      \
    single_##N(t);                                                                                         \
    sets_##N(t);                                                                                           \
    vectors_##N(t);                                                                                        \
    empty_##N(t);                                                                                          \
  }
OPENSHMEM_WAIT(TYPED)

#define OLD(N, T)                                   \
  static void old_##N(void) {                       \
    T *t = (T *)room;                               \
    RESET(N, T);                                    \
    shmem_##N##_p(&t[1], (T)5, right());            \
    F(shmem_##N##_wait)(&t[1], (T)0);               \
    CHECK(t[1] == (T)5, "wait");                    \
  }
OPENSHMEM_WAIT_OLD(OLD)

static void signals(void) {
  shmem_barrier_all();
  room[0] = 0;
  room[1] = 0;
  shmem_barrier_all();
  long v = me + 3;
  shmem_putmem_signal(&room[1], &v, 8, &room[0], 40, SHMEM_SIGNAL_SET, right());
  CHECK(F(shmem_signal_wait_until)(&room[0], SHMEM_CMP_GE, 40) == 40, "the value that ended the wait");
  CHECK(room[1] == (uint64_t)left() + 3, "data before the signal");
  shmem_barrier_all();
  room[0] = 0;
  shmem_barrier_all();
  shmem_long_p((long *)&room[0], 9, right());
  F(shmem_wait)((long *)&room[0], 0);
  CHECK(room[0] == 9, "shmem_wait");
}

int main(void) {
  begin();
  room = shmem_calloc(WORDS, sizeof *room);
#define CALL(N, T) test_##N();
  OPENSHMEM_WAIT(CALL)
#define CALL_OLD(N, T) old_##N();
  OPENSHMEM_WAIT_OLD(CALL_OLD)
  signals();
  shmem_free(room);
  return finish();
}
