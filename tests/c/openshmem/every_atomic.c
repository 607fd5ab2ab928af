/* every_atomic.c - calls every atomic function of every type, also through contexts and by the older names. */
#include "check.h"

static long double *room; /* one word, and canaries around it */
static shmem_ctx_t ctx;   /* of a team in which ranks run backwards */

static int in_ctx(int pe) { return n - 1 - pe; }

/* Runs OPERATION against the right neighbour's word, which was `was`; then mine, which the left one changed, must be `now`. */
#define STEP(T, was, now, what, ...)                                                   \
  do {                                                                                 \
    T *t = (T *)&room[2];                                                              \
    memset(t, 0x5a, sizeof *room);                                                     \
    *t = (T)(was);                                                                     \
    shmem_barrier_all();                                                               \
    __VA_ARGS__;                                                                       \
    shmem_quiet();                                                                     \
    shmem_barrier_all();                                                               \
    CHECK(*t == (T)(now), "%s: the word after", what);                                 \
    CHECK(room[1] == 17 && room[3] == 19 && ((unsigned char *)t)[sizeof(T)] == 0x5a, "%s wrote beside the word", what); \
    shmem_barrier_all();                                                               \
  } while (0)

/* A fetching operation in its four forms: it gives `was` and leaves `now`. */
#define FETCHING(N, T, OP, was, now, ...)                                                                              \
  STEP(T, was, now, #N " " #OP, T old = F(shmem_##N##_atomic_##OP)(t __VA_ARGS__, right()); CHECK(old == (T)(was), "old value")); \
  STEP(T, was, now, #N " ctx " #OP, T old = F(shmem_ctx_##N##_atomic_##OP)(ctx, t __VA_ARGS__, in_ctx(right())); CHECK(old == (T)(was), "old value")); \
  STEP(T, was, now, #N " nbi " #OP, T old = 0; F(shmem_##N##_atomic_##OP##_nbi)(&old, t __VA_ARGS__, right()); shmem_quiet(); \
       CHECK(old == (T)(was), "old value"));                                                                            \
  STEP(T, was, now, #N " ctx nbi " #OP, T old = 0; F(shmem_ctx_##N##_atomic_##OP##_nbi)(ctx, &old, t __VA_ARGS__, in_ctx(right())); \
       shmem_ctx_quiet(ctx); CHECK(old == (T)(was), "old value"))
#define SILENT(N, T, OP, was, now, ...)                                                                                \
  STEP(T, was, now, #N " " #OP, F(shmem_##N##_atomic_##OP)(t __VA_ARGS__, right()));                                   \
  STEP(T, was, now, #N " ctx " #OP, F(shmem_ctx_##N##_atomic_##OP)(ctx, t __VA_ARGS__, in_ctx(right())))
#define OLD(N, T, OP, was, now, ...) \
  STEP(T, was, now, #N " old " #OP, T old = F(shmem_##N##_##OP)(t __VA_ARGS__, right()); CHECK(old == (T)(was), "old value"))

#define ALL(N, T)                                                                      \
  static void all_##N(void) {                                                          \
    FETCHING(N, T, fetch, 41, 41);                                                     \
    SILENT(N, T, set, 41, 1000 + n, , (T)(1000 + n));                                  \
    FETCHING(N, T, swap, 43, 99, , (T)99);                                             \
    OLD(N, T, fetch, 45, 45);                                                          \
    OLD(N, T, swap, 46, 47, , (T)47);                                                  \
    STEP(T, 1, 48, #N " old set", F(shmem_##N##_set)(t, (T)48, right()));              \
  }
OPENSHMEM_AMO_ALL(ALL)

#define NUMBERS(N, T)                                                                  \
  static void numbers_##N(void) {                                                      \
    FETCHING(N, T, compare_swap, 51, 52, , (T)51, (T)52);                              \
    FETCHING(N, T, compare_swap, 51, 51, , (T)50, (T)52);                              \
    FETCHING(N, T, fetch_inc, 7, 8);                                                   \
    SILENT(N, T, inc, -1, 0);                                                          \
    FETCHING(N, T, fetch_add, 100, 160, , (T)60);                                      \
    FETCHING(N, T, fetch_add, 100, 90, , (T)-10);                                      \
    SILENT(N, T, add, 100, 161, , (T)61);                                              \
    OLD(N, T, cswap, 61, 62, , (T)61, (T)62);                                          \
    OLD(N, T, finc, 63, 64);                                                           \
    OLD(N, T, fadd, 64, 74, , (T)10);                                                  \
    STEP(T, 65, 66, #N " old inc", F(shmem_##N##_inc)(t, right()));                    \
    STEP(T, 65, 75, #N " old add", F(shmem_##N##_add)(t, (T)10, right()));             \
    crowd_##N();                                                                       \
  }
/* Everybody adds to PE 0's word at once, through both names: nothing is lost, and every old value is seen once. */
#define CROWD(N, T)                                                                    \
  static void crowd_##N(void) {                                                        \
    enum { TIMES = 50 };                                                               \
    T *t = (T *)&room[2], sum = 0;                                                     \
    *t = 0;                                                                            \
    shmem_barrier_all();                                                               \
    for (int i = 0; i < TIMES; i++) {                                                  \
      sum = (T)(sum + shmem_##N##_atomic_fetch_inc(t, 0));                             \
      shmem_##N##_atomic_add(t, 0, 0);                                                 \
    }                                                                                  \
    shmem_barrier_all();                                                               \
    CHECK(shmem_##N##_g(t, 0) == (T)(TIMES * n), "increments were lost");              \
    shmem_barrier_all();                                                               \
    *t = 0;                                                                            \
    shmem_barrier_all();                                                               \
    shmem_##N##_atomic_add(t, sum, 0);                                                 \
    shmem_barrier_all();                                                               \
    CHECK(shmem_##N##_g(t, 0) == (T)((TIMES * n) * (TIMES * n - 1) / 2), "an old value was seen twice"); \
    shmem_barrier_all();                                                               \
  }
OPENSHMEM_AMO(CROWD)
OPENSHMEM_AMO(NUMBERS)

#define BITS(N, T)                                                                     \
  static void bits_##N(void) {                                                         \
    FETCHING(N, T, fetch_and, 0x6d, 0x6d & 0x3b, , (T)0x3b);                           \
    FETCHING(N, T, fetch_or, 0x65, 0x65 | 0x1a, , (T)0x1a);                            \
    FETCHING(N, T, fetch_xor, 0x6d, 0x6d ^ 0x3b, , (T)0x3b);                           \
    SILENT(N, T, and, 0x6d, 0x6d & 0x3b, , (T)0x3b);                                   \
    SILENT(N, T, or, 0x65, 0x65 | 0x1a, , (T)0x1a);                                    \
    SILENT(N, T, xor, 0x6d, 0x6d ^ 0x3b, , (T)0x3b);                                   \
  }
OPENSHMEM_AMO_BITS(BITS)

int main(void) {
  shmem_team_t backwards;
  begin();
  room = shmem_malloc(5 * sizeof *room);
  memset(room, 0x5a, 5 * sizeof *room);
  room[1] = 17;
  room[3] = 19;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &backwards);
  CHECK(shmem_team_create_ctx(backwards, 0, &ctx) == 0, "context");
#define CALL_ALL(N, T) all_##N();
  OPENSHMEM_AMO_ALL(CALL_ALL)
#define CALL_NUMBERS(N, T) numbers_##N();
  OPENSHMEM_AMO(CALL_NUMBERS)
#define CALL_BITS(N, T) bits_##N();
  OPENSHMEM_AMO_BITS(CALL_BITS)
  return finish();
}
