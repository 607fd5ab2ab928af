/* every_wait.c - waits and tests, all forms and types. A peer writes; each form is asked when it is true and when it is not. */
#include "check.h"

enum { WORDS = 9 };

static int32_t *turn;
static int32_t turns;

/* Everybody passes; the words were not touched since. */
static void meet(void) { aclshmem_barrier_all(); }

/* The previous PE is told to go on: it writes only when I already wait, or nearly so. */
static void tell_prev(void) {
  turns++;
  aclshmemx_signal_op_on_stream(turn, turns, ACLSHMEM_SIGNAL_SET, prev_pe, NULL);
}
static void told_by_next(void) { aclshmem_signal_wait_until(turn, ACLSHMEM_CMP_EQ, turns); }

#define SET(v)                                       \
  do {                                               \
    meet();                                          \
    T *all = edit(w, WORDS * sizeof *w);             \
    for (int i = 0; i < WORDS; i++) all[i] = (T)(v); \
    commit(w, all, WORDS * sizeof *w);               \
    meet();                                          \
  } while (0)

#define FORMS(NAME, TYPE)                                                                                                     \
  static void check_##NAME(TYPE *w) {                                                                                        \
    typedef TYPE T;                                                                                                          \
    size_t ix[WORDS], r;                                                                                                     \
    int yes, skip[WORDS] = {0, 1, 0, 0, 1, 0, 0, 0, 0}, all_out[WORDS] = {1, 1, 1, 1, 1, 1, 1, 1, 1};                        \
    T values[WORDS];                                                                                                         \
    for (int i = 0; i < WORDS; i++) values[i] = (T)(10 + i);                                                                 \
    /* one word */                                                                                                           \
    SET(3);                                                                                                                  \
    tell_prev();                                                                                                             \
    told_by_next();                                                                                                          \
    aclshmem_##NAME##_p(w, (T)5, next_pe);                                                                                   \
    CALL(aclshmem_##NAME##_wait_until)(w, ACLSHMEM_CMP_GT, (T)4);                                                            \
    CHECK(AT(w) == (T)5, #NAME " wait_until");                                                                                \
    meet();                                                                                                                  \
    aclshmem_##NAME##_p(w, (T)6, next_pe);                                                                                   \
    CALL(aclshmem_##NAME##_wait)(w, (T)5);                                                                                   \
    CHECK(AT(w) == (T)6, #NAME " wait");                                                                                      \
    meet();                                                                                                                  \
    static const int truth[6] = {0, 1, 1, 1, 0, 0}; /* 6 against 4: eq ne gt ge lt le */                                     \
    for (int c = 0; c < 6; c++) {                                                                                            \
      yes = -1;                                                                                                              \
      CALL(aclshmem_##NAME##_test)(w, c, (T)4, &yes);                                                                        \
      CHECK(yes == truth[c], #NAME " test %d gave %d", c, yes);                                                              \
      aclshmem_##NAME##_test(w, c, (T)6, &yes);                                                                              \
      CHECK(yes == (c == ACLSHMEM_CMP_EQ || c == ACLSHMEM_CMP_GE || c == ACLSHMEM_CMP_LE), #NAME " test of equals %d", c);   \
    }                                                                                                                        \
    /* all */                                                                                                                \
    SET(1);                                                                                                                  \
    for (int i = 0; i < WORDS; i++)                                                                                          \
      if (!skip[i]) aclshmem_##NAME##_p(w + i, (T)7, next_pe);                                                               \
    CALL(aclshmem_##NAME##_wait_until_all)(w, WORDS, skip, ACLSHMEM_CMP_EQ, (T)7);                                           \
    for (int i = 0; i < WORDS; i++) CHECK(AT(w + i) == (T)(skip[i] ? 1 : 7), #NAME " wait_until_all %d", i);                      \
    aclshmem_##NAME##_wait_until_all(w, WORDS, all_out, ACLSHMEM_CMP_EQ, (T)99); /* nothing counts: at once */               \
    SET(1);                                                                                                                  \
    for (int i = WORDS - 1; i >= 0; i--) aclshmem_##NAME##_p(w + i, (T)(10 + i), next_pe);                                   \
    CALL(aclshmem_##NAME##_wait_until_all_vector)(w, WORDS, NULL, ACLSHMEM_CMP_EQ, values);                                  \
    for (int i = 0; i < WORDS; i++) CHECK(AT(w + i) == (T)(10 + i), #NAME " wait_until_all_vector %d", i);                        \
    meet();                                                                                                                  \
    yes = -1;                                                                                                                \
    CALL(aclshmem_##NAME##_test_all_vector)(w, WORDS, NULL, ACLSHMEM_CMP_EQ, values, &yes);                                  \
    CHECK(yes == 1, #NAME " test_all_vector of equals");                                                                     \
    values[8]++;                                                                                                             \
    aclshmem_##NAME##_test_all_vector(w, WORDS, NULL, ACLSHMEM_CMP_EQ, values, &yes);                                        \
    CHECK(yes == 0, #NAME " test_all_vector with one other");                                                                \
    values[8]--;                                                                                                             \
    aclshmem_##NAME##_test_all_vector(w, 0, NULL, ACLSHMEM_CMP_EQ, values, &yes);                                            \
    CHECK(yes == 1, #NAME " test_all_vector of nothing");                                                                    \
    /* any */                                                                                                                \
    SET(1);                                                                                                                  \
    aclshmem_##NAME##_p(w + 4, (T)8, next_pe); /* excluded */                                                                \
    aclshmem_##NAME##_p(w + 6, (T)8, next_pe);                                                                               \
    r = 77;                                                                                                                  \
    CALL(aclshmem_##NAME##_wait_until_any)(w, WORDS, skip, ACLSHMEM_CMP_GE, (T)8, &r);                                       \
    CHECK(r == 6, #NAME " wait_until_any gave %zu", r);                                                                      \
    CALL(aclshmem_##NAME##_test_any)(w, WORDS, skip, ACLSHMEM_CMP_EQ, (T)8, &r);                                             \
    CHECK(r == 6, #NAME " test_any gave %zu", r);                                                                            \
    aclshmem_##NAME##_test_any(w, WORDS, skip, ACLSHMEM_CMP_EQ, (T)55, &r);                                                  \
    CHECK(r == SIZE_MAX, #NAME " test_any without one gave %zu", r);                                                         \
    aclshmem_##NAME##_wait_until_any(w, WORDS, all_out, ACLSHMEM_CMP_EQ, (T)55, &r);                                         \
    CHECK(r == SIZE_MAX, #NAME " wait_until_any of nothing gave %zu", r);                                                    \
    SET(1);                                                                                                                  \
    aclshmem_##NAME##_p(w + 5, (T)15, next_pe);                                                                              \
    CALL(aclshmem_##NAME##_wait_until_any_vector)(w, WORDS, NULL, ACLSHMEM_CMP_EQ, values, &r);                              \
    CHECK(r == 5, #NAME " wait_until_any_vector gave %zu", r);                                                               \
    CALL(aclshmem_##NAME##_test_any_vector)(w, WORDS, NULL, ACLSHMEM_CMP_EQ, values, &r);                                    \
    CHECK(r == 5, #NAME " test_any_vector gave %zu", r);                                                                     \
    /* some */                                                                                                               \
    SET(1);                                                                                                                  \
    aclshmem_##NAME##_p(w + 2, (T)9, next_pe);                                                                               \
    aclshmem_##NAME##_p(w + 7, (T)9, next_pe);                                                                               \
    meet();                                                                                                                  \
    CALL(aclshmem_##NAME##_wait_until_some)(w, WORDS, ix, skip, ACLSHMEM_CMP_EQ, (T)9, &r);                                  \
    CHECK(r == 2 && ix[0] == 2 && ix[1] == 7, #NAME " wait_until_some gave %zu", r);                                         \
    CALL(aclshmem_##NAME##_test_some)(w, WORDS, ix, skip, ACLSHMEM_CMP_NE, (T)1, &r);                                        \
    CHECK(r == 2 && ix[0] == 2 && ix[1] == 7, #NAME " test_some gave %zu", r);                                               \
    aclshmem_##NAME##_test_some(w, WORDS, ix, skip, ACLSHMEM_CMP_EQ, (T)44, &r);                                             \
    CHECK(r == 0, #NAME " test_some without one gave %zu", r);                                                               \
    SET(1);                                                                                                                  \
    aclshmem_##NAME##_p(w + 1, (T)11, next_pe);                                                                              \
    aclshmem_##NAME##_p(w + 8, (T)18, next_pe);                                                                              \
    meet();                                                                                                                  \
    CALL(aclshmem_##NAME##_wait_until_some_vector)(w, WORDS, ix, NULL, ACLSHMEM_CMP_EQ, values, &r);                         \
    CHECK(r == 2 && ix[0] == 1 && ix[1] == 8, #NAME " wait_until_some_vector gave %zu", r);                                  \
    CALL(aclshmem_##NAME##_test_some_vector)(w, WORDS, ix, skip, ACLSHMEM_CMP_EQ, values, &r);                               \
    CHECK(r == 1 && ix[0] == 8, #NAME " test_some_vector gave %zu", r);                                                      \
    /* a comparison that is none */                                                                                          \
    aclshmem_cpu_last_status();                                                                                              \
    aclshmem_##NAME##_wait_until_any(w, WORDS, NULL, 6, (T)1, &r);                                                           \
    CHECK(r == SIZE_MAX && aclshmem_cpu_last_status(), #NAME " wait_until_any with comparison 6");                           \
    aclshmem_##NAME##_wait_until(w, -1, (T)1);                                                                               \
    CHECK(aclshmem_cpu_last_status(), #NAME " wait_until with comparison -1");                                               \
    meet();                                                                                                                  \
  }                                                                                                                          \
  struct NAME##_end
ACLSHMEM_P2P_SYNC_TYPE_FUNC(FORMS);

/* Signed types compare as signed, unsigned ones as unsigned, floats as floats. */
static void check_signs(void *memory) {
  int yes;
  int8_t *i8 = memory;
  meet();
  STORE(i8, -3);
  aclshmem_int8_test(i8, ACLSHMEM_CMP_LT, 2, &yes);
  CHECK(yes == 1, "int8: -3 < 2");
  aclshmem_uint8_test((uint8_t *)i8, ACLSHMEM_CMP_GT, 2, &yes);
  CHECK(yes == 1, "uint8: 253 > 2");
  int64_t *i64 = memory;
  STORE(i64, INT64_MIN);
  aclshmem_int64_test(i64, ACLSHMEM_CMP_LT, 0, &yes);
  CHECK(yes == 1, "int64: the least is below 0");
  aclshmem_uint64_test((uint64_t *)i64, ACLSHMEM_CMP_LT, 1, &yes);
  CHECK(yes == 0, "uint64: 2^63 is not below 1");
  float *f = memory;
  STORE(f, -0.5f);
  aclshmem_float_test(f, ACLSHMEM_CMP_GT, -0.75f, &yes);
  CHECK(yes == 1, "float: -0.5 > -0.75");
  STORE(f, -0.0f);
  aclshmem_float_test(f, ACLSHMEM_CMP_EQ, 0.0f, &yes);
  CHECK(yes == 1, "float: -0 == 0");
  meet();
}

#define RUN(NAME, TYPE) check_##NAME((TYPE *)memory)

int main(int argc, char **argv) {
  arguments(argc, argv);
  up(16 << 20);
  void *memory = aclshmem_malloc(WORDS * 8);
  turn = aclshmem_calloc(1, sizeof *turn);
  CHECK(memory && turn, "no memory");
  ACLSHMEM_P2P_SYNC_TYPE_FUNC(RUN);
  check_signs(memory);
  aclshmem_cpu_last_status();
  int32_t here = 0;
  aclshmem_signal_wait_until(&here, ACLSHMEM_CMP_EQ, 1); /* nobody could ever change it */
  CHECK(aclshmem_cpu_last_status(), "a wait for private memory was not refused");
  aclshmem_free(turn);
  aclshmem_free(memory);
  CHECK(aclshmem_finalize() == 0, "finalize");
  return done();
}
