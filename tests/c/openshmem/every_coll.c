/* every_coll.c - calls every collective of every type: over teams and over active sets, each against a plain loop. */
#include "check.h"

#define COUNT 37 /* elements of each PE; odd, and more than travels with a flag for wide types */
#define MOST 16  /* bytes of the widest element */

static unsigned char *in, *out;
static size_t out_bytes;
static shmem_team_t team; /* every PE, backwards: rank r is PE n-1-r */
static int rank;
static long psync[SHMEM_SYNC_SIZE];
static long double work[COUNT + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static int pe_of(int r) { return n - 1 - r; }

static void clean(void) {
  memset(out, CANARY, out_bytes);
  shmem_barrier_all();
}
static void after(const char *name) {
  CHECK(intact(out, out_bytes) && intact(in, out_bytes), "%s wrote beside dest or source", name);
  shmem_barrier_all();
}

#define SOURCE(T, count)                                                     \
  T *source = (T *)in, *dest = (T *)out;                                     \
  for (int i = 0; i < (count); i++) source[i] = (T)number(me, i, __LINE__);  \
  clean()
#define EXPECT(T, index, pe, element, what) \
  CHECK(dest[index] == (T)number(pe, element, __LINE__), "%s: element %d", what, (int)(index))

/* The moving collectives of one type. `len_of` gives ranks different lengths for collect. */
static int len_of(int r) { return (r * 7 + 3) % COUNT; }

#define MOVING(NAME, T, UNITS, BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS)                                    \
  static void moving_##NAME(void) {                                                                                  \
    {                                                                                                                \
      SOURCE(T, COUNT);                                                                                              \
      int root = n / 2;                                                                                              \
      CHECK(F(BROADCAST)(team, (void *)dest, (void *)source, COUNT * UNITS, root) == 0, #BROADCAST);                 \
      for (int i = 0; i < COUNT; i++) EXPECT(T, i, pe_of(root), i, #BROADCAST);                                      \
      CHECK(out[COUNT * sizeof(T)] == CANARY, #BROADCAST " wrote too much");                                         \
      after(#BROADCAST);                                                                                             \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT);                                                                                              \
      int at = 0;                                                                                                    \
      CHECK(F(COLLECT)(team, (void *)dest, (void *)source, (size_t)len_of(rank) * UNITS) == 0, #COLLECT);            \
      for (int r = 0; r < n; r++)                                                                                    \
        for (int i = 0; i < len_of(r); i++, at++) EXPECT(T, at, pe_of(r), i, #COLLECT);                              \
      CHECK(out[(size_t)at * sizeof(T)] == CANARY, #COLLECT " wrote too much");                                      \
      after(#COLLECT);                                                                                               \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT);                                                                                              \
      CHECK(F(FCOLLECT)(team, (void *)dest, (void *)source, COUNT * UNITS) == 0, #FCOLLECT);                         \
      for (int r = 0; r < n; r++)                                                                                    \
        for (int i = 0; i < COUNT; i++) EXPECT(T, r * COUNT + i, pe_of(r), i, #FCOLLECT);                            \
      after(#FCOLLECT);                                                                                              \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT *n);                                                                                           \
      CHECK(F(ALLTOALL)(team, (void *)dest, (void *)source, COUNT * UNITS) == 0, #ALLTOALL);                         \
      for (int r = 0; r < n; r++)                                                                                    \
        for (int i = 0; i < COUNT; i++) EXPECT(T, r * COUNT + i, pe_of(r), rank * COUNT + i, #ALLTOALL);             \
      after(#ALLTOALL);                                                                                              \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT *n * 2);                                                                                       \
      int dst = UNITS == 1 ? 3 : 1, sst = UNITS == 1 ? 2 : 1; /* bytes have no strided form of a wider element */    \
      CHECK(F(ALLTOALLS)(team, (void *)dest, (void *)source, dst, sst, COUNT * UNITS) == 0, #ALLTOALLS);             \
      for (int r = 0; r < n; r++)                                                                                    \
        for (int i = 0; i < COUNT; i++) {                                                                            \
          EXPECT(T, (r * COUNT + i) * dst, pe_of(r), (rank * COUNT + i) * sst, #ALLTOALLS);                          \
          if (dst > 1) CHECK(out[((size_t)(r * COUNT + i) * 3 + 1) * sizeof(T)] == CANARY, #ALLTOALLS " filled a gap"); \
        }                                                                                                            \
      after(#ALLTOALLS);                                                                                             \
    }                                                                                                                \
  }
#define MOVING_TYPED(N, T) \
  MOVING(N, T, 1, shmem_##N##_broadcast, shmem_##N##_collect, shmem_##N##_fcollect, shmem_##N##_alltoall, shmem_##N##_alltoalls)
OPENSHMEM_RMA(MOVING_TYPED)
MOVING(mem, uint8_t, 1, shmem_broadcastmem, shmem_collectmem, shmem_fcollectmem, shmem_alltoallmem, shmem_alltoallsmem)

/* ---- reductions: small numbers, so that the plain fold is exact in every type ---- */

#define FOLD_and(a, b) ((a) & (b))
#define FOLD_or(a, b) ((a) | (b))
#define FOLD_xor(a, b) ((a) ^ (b))
#define FOLD_max(a, b) ((a) > (b) ? (a) : (b))
#define FOLD_min(a, b) ((a) < (b) ? (a) : (b))
#define FOLD_sum(a, b) ((a) + (b))
#define FOLD_prod(a, b) ((a) * (b))

static int term(int pe, int i) { return (pe * 3 + i * 5) % 4 + 1; }

#define REDUCTION(N, T, OP, KIND, FUNCTION, ...)                                                   \
  static void KIND##_##OP##_##N(void) {                                                            \
    T *source = (T *)in, *dest = (T *)out;                                                         \
    for (int i = 0; i < COUNT; i++) source[i] = (T)term(me, i);                                    \
    clean();                                                                                       \
    __VA_ARGS__;                                                                                   \
    for (int i = 0; i < COUNT; i++) {                                                              \
      T want = (T)term(0, i);                                                                      \
      for (int r = 1; r < n; r++) want = (T)FOLD_##OP(want, (T)term(r, i));                        \
      CHECK(dest[i] == want, "%s: element %d", #FUNCTION, i);                                      \
      CHECK(source[i] == (T)term(me, i), "%s changed its source", #FUNCTION);                      \
    }                                                                                              \
    CHECK(out[COUNT * sizeof(T)] == CANARY, "%s wrote too much", #FUNCTION);                       \
    after(#FUNCTION);                                                                              \
  }
#define TEAM_REDUCTION(N, T, OP) \
  REDUCTION(N, T, OP, team, shmem_##N##_##OP##_reduce, CHECK(F(shmem_##N##_##OP##_reduce)(team, dest, source, COUNT) == 0, "status"))
#define SET_REDUCTION(N, T, OP) \
  REDUCTION(N, T, OP, set, shmem_##N##_##OP##_to_all, F(shmem_##N##_##OP##_to_all)(dest, source, COUNT, 0, 0, n, (T *)work, psync))
#define T_AND(N, T) TEAM_REDUCTION(N, T, and)
#define T_OR(N, T) TEAM_REDUCTION(N, T, or)
#define T_XOR(N, T) TEAM_REDUCTION(N, T, xor)
#define T_MAX(N, T) TEAM_REDUCTION(N, T, max)
#define T_MIN(N, T) TEAM_REDUCTION(N, T, min)
#define T_SUM(N, T) TEAM_REDUCTION(N, T, sum)
#define T_PROD(N, T) TEAM_REDUCTION(N, T, prod)
#define S_AND(N, T) SET_REDUCTION(N, T, and)
#define S_OR(N, T) SET_REDUCTION(N, T, or)
#define S_XOR(N, T) SET_REDUCTION(N, T, xor)
#define S_MAX(N, T) SET_REDUCTION(N, T, max)
#define S_MIN(N, T) SET_REDUCTION(N, T, min)
#define S_SUM(N, T) SET_REDUCTION(N, T, sum)
#define S_PROD(N, T) SET_REDUCTION(N, T, prod)
#define EACH(LISTS, X, A) \
  LISTS##_AND(X##_AND##A) LISTS##_OR(X##_OR##A) LISTS##_XOR(X##_XOR##A) LISTS##_MAX(X##_MAX##A) LISTS##_MIN(X##_MIN##A) LISTS##_SUM(X##_SUM##A) LISTS##_PROD(X##_PROD##A)
EACH(OPENSHMEM_REDUCE, T, )
EACH(OPENSHMEM_TO_ALL, S, )

#define T_AND_CALL(N, T) team_and_##N();
#define T_OR_CALL(N, T) team_or_##N();
#define T_XOR_CALL(N, T) team_xor_##N();
#define T_MAX_CALL(N, T) team_max_##N();
#define T_MIN_CALL(N, T) team_min_##N();
#define T_SUM_CALL(N, T) team_sum_##N();
#define T_PROD_CALL(N, T) team_prod_##N();
#define S_AND_CALL(N, T) set_and_##N();
#define S_OR_CALL(N, T) set_or_##N();
#define S_XOR_CALL(N, T) set_xor_##N();
#define S_MAX_CALL(N, T) set_max_##N();
#define S_MIN_CALL(N, T) set_min_##N();
#define S_SUM_CALL(N, T) set_sum_##N();
#define S_PROD_CALL(N, T) set_prod_##N();

/* ---- active sets: all PEs, and every second one ---- */

static int in_set(int pe, int log, int size) { return pe % (1 << log) == 0 && pe >> log < size; }

#define MOVING_SET(S, T)                                                                                             \
  static void set_##S(int log, int size) {                                                                           \
    int mine = me >> log;                                                                                            \
    if (!in_set(me, log, size)) {                                                                                    \
      for (int k = 0; k < 10; k++) shmem_barrier_all(); /* those of clean and after */                               \
      return;                                                                                                        \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT);                                                                                              \
      int root = size - 1;                                                                                           \
      F(shmem_broadcast##S)(dest, source, COUNT, root, 0, log, size, psync);                                         \
      for (int i = 0; i < COUNT && mine != root; i++) EXPECT(T, i, root << log, i, "broadcast over a set");          \
      if (mine == root) CHECK(out[0] == CANARY, "broadcast changed dest at the root");                               \
      after("broadcast");                                                                                            \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT);                                                                                              \
      int at = 0;                                                                                                    \
      F(shmem_collect##S)(dest, source, (size_t)len_of(mine), 0, log, size, psync);                                  \
      for (int r = 0; r < size; r++)                                                                                 \
        for (int i = 0; i < len_of(r); i++, at++) EXPECT(T, at, r << log, i, "collect over a set");                  \
      after("collect");                                                                                              \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT);                                                                                              \
      F(shmem_fcollect##S)(dest, source, COUNT, 0, log, size, psync);                                                \
      for (int r = 0; r < size; r++)                                                                                 \
        for (int i = 0; i < COUNT; i++) EXPECT(T, r * COUNT + i, r << log, i, "fcollect over a set");                \
      after("fcollect");                                                                                             \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT *size);                                                                                        \
      F(shmem_alltoall##S)(dest, source, COUNT, 0, log, size, psync);                                                \
      for (int r = 0; r < size; r++)                                                                                 \
        for (int i = 0; i < COUNT; i++) EXPECT(T, r * COUNT + i, r << log, mine * COUNT + i, "alltoall over a set"); \
      after("alltoall");                                                                                             \
    }                                                                                                                \
    {                                                                                                                \
      SOURCE(T, COUNT *size * 2);                                                                                    \
      F(shmem_alltoalls##S)(dest, source, 3, 2, COUNT, 0, log, size, psync);                                         \
      for (int r = 0; r < size; r++)                                                                                 \
        for (int i = 0; i < COUNT; i++) EXPECT(T, (r * COUNT + i) * 3, r << log, (mine * COUNT + i) * 2, "alltoalls over a set"); \
      after("alltoalls");                                                                                            \
    }                                                                                                                \
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) CHECK(psync[i] == SHMEM_SYNC_VALUE, "pSync is as it was");             \
  }
MOVING_SET(32, uint32_t)
MOVING_SET(64, uint64_t)

/* Nobody leaves a barrier or sync of a set before all have come: each counts at the first member before and reads after. */
static void meeting(int log, int size) {
  static long arrived;
  for (int round = 1; round <= 20 && in_set(me, log, size); round++) {
    shmem_long_atomic_inc(&arrived, 0);
    if (round % 2)
      F(shmem_barrier)(0, log, size, psync);
    else {
      shmem_quiet(); /* a sync alone does not complete the update */
      F(shmem_sync)(0, log, size, psync);
    }
    CHECK(shmem_long_atomic_fetch(&arrived, 0) >= (long)round * size, "round %d: somebody had not come", round);
  }
  shmem_barrier_all();
  arrived = 0;
  shmem_barrier_all();
}

static void sets(void) {
  for (int i = 0; i < SHMEM_SYNC_SIZE; i++) psync[i] = SHMEM_SYNC_VALUE;
  shmem_barrier_all();
  for (int log = 0; log < 2; log++) {
    int size = (n + log) >> log;
    set_32(log, size);
    set_64(log, size);
    meeting(log, size);
  }
  meeting(0, 1);
}

/* dest is source, and private memory: neither may be pushed into by others, and both work. */
static void alltoall_elsewhere(uint64_t *from, uint64_t *to, const char *what) {
  for (int i = 0; i < COUNT * n; i++) from[i] = (uint64_t)number(me, i, 0);
  shmem_barrier_all();
  CHECK(F(shmem_uint64_alltoall)(team, to, from, COUNT) == 0, "alltoall %s", what);
  for (int r = 0; r < n; r++)
    for (int i = 0; i < COUNT; i++) CHECK(to[r * COUNT + i] == (uint64_t)number(pe_of(r), rank * COUNT + i, 0), "alltoall %s: element %d of rank %d", what, i, r);
  shmem_barrier_all();
}

int main(void) {
  begin();
  out_bytes = (size_t)n * COUNT * MOST * 3;
  in = guarded(out_bytes);
  out = guarded(out_bytes);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team);
  rank = F(shmem_team_my_pe)(team);
  CHECK(rank == n - 1 - me && F(shmem_team_n_pes)(team) == n, "rank");
#define CALL(N, T) moving_##N();
  OPENSHMEM_RMA(CALL)
  moving_mem();
  uint64_t *private = malloc(out_bytes);
  alltoall_elsewhere((uint64_t *)in, (uint64_t *)in, "in place");
  alltoall_elsewhere((uint64_t *)in, private, "into private memory");
  free(private);
  sets();
  EACH(OPENSHMEM_REDUCE, T, _CALL)
  EACH(OPENSHMEM_TO_ALL, S, _CALL)
  CHECK(F(shmem_team_sync)(team) == 0, "team_sync");
  guarded_free(in);
  guarded_free(out);
  return finish();
}
