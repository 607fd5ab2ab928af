/* generic.c - the C11 generics: each picks the function of its type, with and without a context. */
#include "check.h"

static shmem_ctx_t ctx;

#define MOVE(T)                                                                                  \
  do {                                                                                           \
    T *t = (T *)room, mine[4] = {(T)number(me, 0, 2), (T)number(me, 1, 2), (T)number(me, 2, 2), (T)number(me, 3, 2)}, back[4]; \
    shmem_barrier_all();                                                                         \
    shmem_put(t, mine, 4, right());                                                              \
    shmem_barrier_all();                                                                         \
    CHECK(t[3] == (T)number(left(), 3, 2), "put of " #T);                                        \
    shmem_get(ctx, back, t, 4, right());                                                         \
    CHECK(back[2] == mine[2], "get of " #T);                                                     \
    shmem_barrier_all();                                                                         \
    shmem_p(ctx, &t[0], (T)(mine[0] + 1), right());                                              \
    shmem_p(&t[1], (T)(mine[1] + 1), right());                                                   \
    shmem_iput(&t[2], mine, 1, 2, 2, right());                                                   \
    shmem_barrier_all();                                                                         \
    CHECK(t[0] == (T)(number(left(), 0, 2) + 1) && t[3] == (T)number(left(), 2, 2), "p and iput of " #T); \
    const T *c = t;                                                                              \
    CHECK(shmem_g(c, right()) == (T)(mine[0] + 1) && shmem_g(ctx, &c[1], right()) == (T)(mine[1] + 1), "g of " #T); \
    shmem_iget(ctx, back, t, 2, 1, 2, right());                                                  \
    CHECK(back[0] == (T)(mine[0] + 1), "iget of " #T);                                           \
    shmem_barrier_all();                                                                         \
    *signal = 0;                                                                                 \
    shmem_barrier_all();                                                                         \
    shmem_put_signal(t, mine, 4, signal, 1, SHMEM_SIGNAL_ADD, right());                          \
    shmem_put_signal_nbi(ctx, t, mine, 4, signal, 1, SHMEM_SIGNAL_ADD, right());                 \
    shmem_put_nbi(t, mine, 4, right());                                                          \
    shmem_get_nbi(ctx, back, t, 0, right());                                                     \
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 2);                                            \
    CHECK(t[1] == (T)number(left(), 1, 2), "put_signal of " #T);                                 \
    shmem_barrier_all();                                                                         \
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, t, mine, 4, n - 1) == 0 && t[1] == (T)number(n - 1, 1, 2), "broadcast of " #T); \
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, t, mine, 1) == 0 && t[n - 1] == (T)number(n - 1, 0, 2), "fcollect of " #T); \
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, t, mine, 1) == 0 && t[0] == (T)number(0, 0, 2), "collect of " #T); \
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, t, mine, 1) == 0 && t[0] >= mine[0], "max of " #T); \
  } while (0)

#define ATOMIC(T)                                                                                \
  do {                                                                                           \
    T *t = (T *)room, old = 0;                                                                   \
    shmem_barrier_all();                                                                         \
    *t = 5;                                                                                      \
    shmem_barrier_all();                                                                         \
    CHECK(shmem_atomic_fetch_add(t, 3, right()) == 5 && shmem_atomic_fetch(ctx, t, right()) == 8, "fetch_add of " #T); \
    shmem_atomic_inc(ctx, t, right());                                                           \
    CHECK(shmem_atomic_compare_swap(t, 9, 20, right()) == 9 && shmem_atomic_swap(ctx, t, 21, right()) == 20, "swap of " #T); \
    shmem_atomic_fetch_inc_nbi(&old, t, right());                                                \
    shmem_quiet();                                                                               \
    CHECK(old == 21 && shmem_fadd(t, 2, right()) == 22, "older names of " #T);                   \
    shmem_atomic_set(t, 30, right());                                                            \
    shmem_barrier_all();                                                                         \
    shmem_wait_until(t, SHMEM_CMP_EQ, 30);                                                       \
    CHECK(shmem_test(t, SHMEM_CMP_GE, 30) && shmem_test_all(t, 1, NULL, SHMEM_CMP_EQ, 30), "test of " #T); \
    CHECK(shmem_wait_until_any(t, 1, NULL, SHMEM_CMP_EQ, 30) == 0, "any of " #T);                \
  } while (0)

#define BITS(T)                                                                                  \
  do {                                                                                           \
    T *t = (T *)room;                                                                            \
    shmem_barrier_all();                                                                         \
    *t = 12;                                                                                     \
    shmem_barrier_all();                                                                         \
    CHECK(shmem_atomic_fetch_or(t, 3, right()) == 12 && shmem_atomic_fetch_and(ctx, t, 6, right()) == 15, "bits of " #T); \
    shmem_atomic_xor(t, 1, right());                                                             \
    shmem_barrier_all();                                                                         \
    CHECK(*t == 7, "bits of " #T);                                                               \
    shmem_barrier_all();                                                                         \
    T mine = (T)(1 << (me % 5)), all = 0, *r = t + 1;                                            \
    CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, r, &mine, 1) == 0, "or of " #T);                     \
    for (int i = 0; i < n; i++) all |= (T)(1 << (i % 5));                                        \
    CHECK(*r == all, "or of " #T);                                                               \
  } while (0)

int main(void) {
  begin();
  unsigned char *room = shmem_calloc((size_t)n + 4, 64);
  uint64_t *signal = shmem_calloc(1, sizeof *signal);
  shmem_ctx_create(0, &ctx);
  MOVE(float); MOVE(double); MOVE(long double); MOVE(char); MOVE(signed char); MOVE(short); MOVE(int); MOVE(long); MOVE(long long);
  MOVE(unsigned char); MOVE(unsigned short); MOVE(unsigned int); MOVE(unsigned long); MOVE(unsigned long long);
  MOVE(int8_t); MOVE(int16_t); MOVE(int32_t); MOVE(int64_t); MOVE(uint64_t); MOVE(size_t); MOVE(ptrdiff_t);
  ATOMIC(int); ATOMIC(long); ATOMIC(long long); ATOMIC(unsigned int); ATOMIC(unsigned long); ATOMIC(unsigned long long); ATOMIC(size_t); ATOMIC(int32_t);
  BITS(unsigned int); BITS(unsigned long); BITS(unsigned long long);
  double _Complex z = 1 + me * I, sum = 0;
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &z, 1) == 0 && creal(sum) == n && cimag(sum) == n * (n - 1) / 2, "complex sum");
  long psync[SHMEM_SYNC_SIZE];
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0, "sync of a team");
  shmem_sync(0, 0, n, psync);
  return finish();
}
