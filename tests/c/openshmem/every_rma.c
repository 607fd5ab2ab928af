/* every_rma.c - calls every put, get, p, g, strided and signalling function of every type and size, also through contexts. */
#include "check.h"

#define COUNT 11

static unsigned char *target; /* COUNT elements of up to 16 bytes, strided by up to 3 */
static uint64_t *signals;     /* two words */
static shmem_ctx_t ctx;       /* of a team in which ranks run backwards */
static uint64_t expected;     /* what signals[0] is when all tests so far have signalled */

static int in_ctx(int pe) { return n - 1 - pe; }

static void clean(void) {
  memset(target, CANARY, COUNT * 16 * 3);
  shmem_barrier_all();
}

static void after(const char *name) {
  shmem_barrier_all();
  CHECK(intact(target, COUNT * 16 * 3), "%s wrote beside its target", name);
}

/* The right neighbour's memory is the target; what the left one wrote is checked here. */
#define TEST_PUT(T, SAME, FUNCTION, ...)                                                       \
  do {                                                                                         \
    T mine[COUNT];                                                                             \
    clean();                                                                                   \
    for (int i = 0; i < COUNT; i++) mine[i] = (T)number(me, i, __LINE__);                      \
    F(FUNCTION)(__VA_ARGS__);                                                                  \
    after(#FUNCTION);                                                                          \
    for (int i = 0; i < COUNT; i++) {                                                          \
      T want = (T)number(left(), i, __LINE__), have;                                           \
      memcpy(&have, target + (size_t)i * sizeof(T) * (SAME), sizeof have);                     \
      CHECK(have == want, "%s: element %d", #FUNCTION, i);                                     \
    }                                                                                          \
    if ((SAME) > 1) CHECK(target[sizeof(T)] == CANARY, "%s wrote between its elements", #FUNCTION); \
    shmem_barrier_all();                                                                       \
  } while (0)

#define TEST_GET(T, SAME, FUNCTION, ...)                                                       \
  do {                                                                                         \
    T mine[COUNT];                                                                             \
    clean();                                                                                   \
    memset(mine, 0, sizeof mine);                                                              \
    for (int i = 0; i < COUNT; i++) {                                                          \
      T value = (T)number(me, i, __LINE__);                                                    \
      memcpy(target + (size_t)i * sizeof(T) * (SAME), &value, sizeof value);                   \
    }                                                                                          \
    shmem_barrier_all();                                                                       \
    F(FUNCTION)(__VA_ARGS__);                                                                  \
    shmem_quiet();                                                                             \
    for (int i = 0; i < COUNT; i++) CHECK(mine[i] == (T)number(right(), i, __LINE__), "%s: element %d", #FUNCTION, i); \
    after(#FUNCTION);                                                                          \
  } while (0)

#define TEST_SIGNAL(T, FUNCTION, ...)                                                          \
  do {                                                                                         \
    expected += 3;                                                                             \
    TEST_PUT(T, 1, FUNCTION, __VA_ARGS__);                                                     \
    CHECK(shmem_signal_fetch(&signals[0]) == expected, "%s: the signal", #FUNCTION);           \
  } while (0)
#define SIGNAL_ARGS COUNT, &signals[0], 3, SHMEM_SIGNAL_ADD

#define AT ((void *)target)

#define TYPED(N, T)                                                                            \
  static void test_##N(void) {                                                                 \
    T *t = AT;                                                                                 \
    TEST_PUT(T, 1, shmem_##N##_put, t, mine, COUNT, right());                                  \
    TEST_PUT(T, 1, shmem_ctx_##N##_put, ctx, t, mine, COUNT, in_ctx(right()));                 \
    TEST_PUT(T, 1, shmem_##N##_put_nbi, t, mine, COUNT, right());                              \
    TEST_PUT(T, 1, shmem_ctx_##N##_put_nbi, ctx, t, mine, COUNT, in_ctx(right()));             \
    TEST_PUT(T, 3, shmem_##N##_iput, t, mine, 3, 1, COUNT, right());                           \
    TEST_PUT(T, 2, shmem_ctx_##N##_iput, ctx, t, mine, 2, 1, COUNT, in_ctx(right()));          \
    TEST_GET(T, 1, shmem_##N##_get, mine, t, COUNT, right());                                  \
    TEST_GET(T, 1, shmem_ctx_##N##_get, ctx, mine, t, COUNT, in_ctx(right()));                 \
    TEST_GET(T, 1, shmem_##N##_get_nbi, mine, t, COUNT, right());                              \
    TEST_GET(T, 1, shmem_ctx_##N##_get_nbi, ctx, mine, t, COUNT, in_ctx(right()));             \
    TEST_GET(T, 3, shmem_##N##_iget, mine, t, 1, 3, COUNT, right());                           \
    TEST_GET(T, 2, shmem_ctx_##N##_iget, ctx, mine, t, 1, 2, COUNT, in_ctx(right()));          \
    TEST_SIGNAL(T, shmem_##N##_put_signal, t, mine, SIGNAL_ARGS, right());                     \
    TEST_SIGNAL(T, shmem_ctx_##N##_put_signal, ctx, t, mine, SIGNAL_ARGS, in_ctx(right()));    \
    TEST_SIGNAL(T, shmem_##N##_put_signal_nbi, t, mine, SIGNAL_ARGS, right());                 \
    TEST_SIGNAL(T, shmem_ctx_##N##_put_signal_nbi, ctx, t, mine, SIGNAL_ARGS, in_ctx(right())); \
    clean();                                                                                   \
    F(shmem_##N##_p)(&t[1], (T)number(me, 1, 7), right());                                     \
    F(shmem_ctx_##N##_p)(ctx, &t[3], (T)number(me, 3, 7), in_ctx(right()));                    \
    after("p");                                                                                \
    CHECK(t[1] == (T)number(left(), 1, 7) && t[3] == (T)number(left(), 3, 7), "p of " #T);     \
    CHECK(target[0] == CANARY && target[4 * sizeof(T)] == CANARY, "p of " #T " wrote too much"); \
    CHECK(F(shmem_##N##_g)(&t[1], right()) == (T)number(me, 1, 7), "g of " #T);                \
    CHECK(F(shmem_ctx_##N##_g)(ctx, &t[3], in_ctx(right())) == (T)number(me, 3, 7), "ctx g of " #T); \
    shmem_barrier_all();                                                                       \
  }
OPENSHMEM_RMA(TYPED)

typedef struct { uint64_t low, high; } pair;
#define SIZED(S, T)                                                                            \
  static void test_##S(void) {                                                                 \
    TEST_PUT(T, 1, shmem_put##S, AT, mine, COUNT * sizeof(T) / UNIT_##S, right());             \
    TEST_PUT(T, 1, shmem_ctx_put##S, ctx, AT, mine, COUNT * sizeof(T) / UNIT_##S, in_ctx(right())); \
    TEST_PUT(T, 1, shmem_put##S##_nbi, AT, mine, COUNT * sizeof(T) / UNIT_##S, right());       \
    TEST_PUT(T, 1, shmem_ctx_put##S##_nbi, ctx, AT, mine, COUNT * sizeof(T) / UNIT_##S, in_ctx(right())); \
    TEST_GET(T, 1, shmem_get##S, mine, AT, COUNT * sizeof(T) / UNIT_##S, right());             \
    TEST_GET(T, 1, shmem_ctx_get##S, ctx, mine, AT, COUNT * sizeof(T) / UNIT_##S, in_ctx(right())); \
    TEST_GET(T, 1, shmem_get##S##_nbi, mine, AT, COUNT * sizeof(T) / UNIT_##S, right());       \
    TEST_GET(T, 1, shmem_ctx_get##S##_nbi, ctx, mine, AT, COUNT * sizeof(T) / UNIT_##S, in_ctx(right())); \
    TEST_SIGNAL(T, shmem_put##S##_signal, AT, mine, COUNT * sizeof(T) / UNIT_##S, &signals[0], 3, SHMEM_SIGNAL_ADD, right()); \
    TEST_SIGNAL(T, shmem_ctx_put##S##_signal, ctx, AT, mine, COUNT * sizeof(T) / UNIT_##S, &signals[0], 3, SHMEM_SIGNAL_ADD, in_ctx(right())); \
    TEST_SIGNAL(T, shmem_put##S##_signal_nbi, AT, mine, COUNT * sizeof(T) / UNIT_##S, &signals[0], 3, SHMEM_SIGNAL_ADD, right()); \
    TEST_SIGNAL(T, shmem_ctx_put##S##_signal_nbi, ctx, AT, mine, COUNT * sizeof(T) / UNIT_##S, &signals[0], 3, SHMEM_SIGNAL_ADD, in_ctx(right())); \
  }
#define STRIDED(S, T)                                                                          \
  static void strided_##S(void) {                                                              \
    TEST_PUT(T, 3, shmem_iput##S, AT, mine, 3, 1, COUNT, right());                             \
    TEST_PUT(T, 2, shmem_ctx_iput##S, ctx, AT, mine, 2, 1, COUNT, in_ctx(right()));            \
    TEST_GET(T, 3, shmem_iget##S, mine, AT, 1, 3, COUNT, right());                             \
    TEST_GET(T, 2, shmem_ctx_iget##S, ctx, mine, AT, 1, 2, COUNT, in_ctx(right()));            \
  }
#define UNIT_8 1
#define UNIT_16 2
#define UNIT_32 4
#define UNIT_64 8
#define UNIT_128 16
#define UNIT_mem 1
SIZED(8, uint8_t)
SIZED(16, uint16_t)
SIZED(32, uint32_t)
SIZED(64, uint64_t)
SIZED(128, long double)
SIZED(mem, uint32_t)
STRIDED(8, uint8_t)
STRIDED(16, uint16_t)
STRIDED(32, uint32_t)
STRIDED(64, uint64_t)
STRIDED(128, long double)

int main(void) {
  shmem_team_t backwards;
  begin();
  target = guarded(COUNT * 16 * 3);
  signals = F(shmem_calloc)(2, sizeof *signals);
  CHECK(F(shmem_team_split_strided)(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &backwards) == 0, "backwards");
  CHECK(F(shmem_team_create_ctx)(backwards, SHMEM_CTX_SERIALIZED, &ctx) == 0, "context of a team");
#define CALL(N, T) test_##N();
  OPENSHMEM_RMA(CALL)
#define CALL_SIZE(S) test_##S(); strided_##S();
  OPENSHMEM_SIZES(CALL_SIZE)
  test_mem();
  CHECK(signals[1] == 0, "only the first signal was used");
  used("shmem_signal_fetch");
  F(shmem_ctx_destroy)(ctx);
  F(shmem_team_destroy)(backwards);
  guarded_free(target);
  F(shmem_free)(signals);
  return finish();
}
