/*
 * openshmem_sets.c - the older collectives over an active set (start, log2 of the stride, size).
 *
 * Each set becomes a team of its own at its first use, made by its members alone, and stays until finalize. The team does
 * the synchronising, so pSync and pWrk are not touched: they hold SHMEM_SYNC_VALUE on return, as the specification asks.
 */
#include "openshmem.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct set {
  int start, log_stride, size;
  osh_team team;
  struct set *next;
} set;

static _Atomic(set *) sets; /* newest first; entries are added under `making` and live until finalize */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static set *find(set *from, int start, int log_stride, int size) {
  for (set *s = from; s; s = s->next)
    if (s->start == start && s->log_stride == log_stride && s->size == size) return s;
  return NULL;
}

static set *make(const char *op, int start, int log_stride, int size) {
  set *s = calloc(1, sizeof *s);
  int32_t *pe = malloc(sizeof *pe * (size_t)size);
  if (!s || !pe) osh_die(op, "no memory for the active set of %d PEs", size);
  *s = (set){start, log_stride, size, {.n = size, .me = -1, .pe = pe}, NULL};
  for (int i = 0; i < size; i++) {
    pe[i] = start + i * (1 << log_stride);
    if (pe[i] == osh.me) s->team.me = i;
  }
  if (s->team.me < 0) osh_die(op, "this PE is not in the active set (PE_start %d, logPE_stride %d, PE_size %d)", start, log_stride, size);
  /* Sets with equal members have equal numbers, and each is made once: the number is the key. */
  uint64_t key = (0x5e75000000000000ull | (uint64_t)log_stride << 40 | (uint64_t)(uint32_t)start) ^ osh.round << 32;
  osh_check(op, gshmem_team_create(osh.world, pe, size, key, GSHMEM_DEFAULT_TIMEOUT, &s->team.handle));
  return s;
}

osh_team *osh_set(const char *op, int start, int log_stride, int size) {
  if (size == 1) log_stride = 0;
  set *s = find(atomic_load_explicit(&sets, memory_order_acquire), start, log_stride, size); /* partner: the store below */
  if (HOT_LIKELY(s != NULL)) return &s->team;
  if (!osh.world) osh_die(op, "called before shmem_init or after shmem_finalize");
  if (size < 1 || start < 0 || log_stride < 0 || log_stride > 30 || (int64_t)start + ((int64_t)(size - 1) << log_stride) >= osh.n)
    osh_die(op, "the active set (PE_start %d, logPE_stride %d, PE_size %d) does not fit into %d PEs", start, log_stride, size, osh.n);
  pthread_mutex_lock(&making);
  set *newest = atomic_load_explicit(&sets, memory_order_relaxed);
  if (!(s = find(newest, start, log_stride, size))) {
    s = make(op, start, log_stride, size);
    s->next = newest;
    atomic_store_explicit(&sets, s, memory_order_release);
  }
  pthread_mutex_unlock(&making);
  return &s->team;
}

/* The native teams end with the world; where that goes on, they end here. */
void osh_sets_close(void) {
  set *s = atomic_exchange(&sets, NULL);
  while (s) {
    set *next = s->next;
    if (osh.joined) osh_status("finalize", gshmem_team_destroy(s->team.handle));
    free(s->team.pe);
    free(s);
    s = next;
  }
}

#define SET(op) const osh_team *t = osh_set(op, PE_start, logPE_stride, PE_size)
#define MEMBERS int PE_start, int logPE_stride, int PE_size
#define UNUSED(x) (void)(x)

void shmem_barrier(MEMBERS, long *pSync) {
  UNUSED(pSync);
  SET("barrier");
  osh_check("barrier", gshmem_barrier(t->handle));
}

void shmem_sync(MEMBERS, long *pSync) {
  UNUSED(pSync);
  SET("sync");
  osh_check("sync", gshmem_sync(t->handle));
}

/* Unlike the team form this one leaves dest at the root as it was: there source is its own target. */
static void broadcast(void *dest, const void *source, uint64_t bytes, int root, MEMBERS) {
  SET("broadcast");
  if (root < 0 || root >= t->n) osh_die("broadcast", "PE_root is %d; it counts within the active set of %d PEs", root, t->n);
  osh_check("broadcast", osh_broadcast(t, root == t->me ? (void *)(uintptr_t)source : dest, source, bytes, root));
}

#define BY_SIZE(S)                                                                                                                 \
  void shmem_broadcast##S(void *dest, const void *source, size_t nelems, int PE_root, MEMBERS, long *pSync) {                      \
    UNUSED(pSync);                                                                                                                 \
    broadcast(dest, source, nelems * (S / 8), PE_root, PE_start, logPE_stride, PE_size);                                           \
  }                                                                                                                                \
  void shmem_collect##S(void *dest, const void *source, size_t nelems, MEMBERS, long *pSync) {                                     \
    UNUSED(pSync);                                                                                                                 \
    SET("collect");                                                                                                                \
    osh_check("collect", osh_collect(t, dest, source, nelems * (S / 8)));                                                          \
  }                                                                                                                                \
  void shmem_fcollect##S(void *dest, const void *source, size_t nelems, MEMBERS, long *pSync) {                                    \
    UNUSED(pSync);                                                                                                                 \
    SET("fcollect");                                                                                                               \
    osh_check("fcollect", osh_fcollect(t, dest, source, nelems * (S / 8)));                                                        \
  }                                                                                                                                \
  void shmem_alltoall##S(void *dest, const void *source, size_t nelems, MEMBERS, long *pSync) {                                    \
    UNUSED(pSync);                                                                                                                 \
    SET("alltoall");                                                                                                               \
    osh_check("alltoall", osh_alltoall(t, dest, source, nelems * (S / 8)));                                                        \
  }                                                                                                                                \
  void shmem_alltoalls##S(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, MEMBERS, long *pSync) {     \
    UNUSED(pSync);                                                                                                                 \
    SET("alltoalls");                                                                                                              \
    osh_check("alltoalls", osh_alltoalls(t, dest, source, dst, sst, S / 8, nelems));                                               \
  }
BY_SIZE(32)
BY_SIZE(64)

static void reduce(void *dest, const void *source, int count, int32_t dtype, int32_t op, MEMBERS) {
  SET("reduce");
  if (count < 0) osh_die("reduce", "nreduce is %d; it must not be negative", count);
  osh_check("reduce", osh_all_reduce(t, dest, source, (uint64_t)count, dtype, op));
}

#define TO_ALL(N, T, NAME, OP)                                                                                                     \
  void shmem_##N##_##NAME##_to_all(T *dest, const T *source, int nreduce, MEMBERS, T *pWrk, long *pSync) {                         \
    UNUSED(pWrk);                                                                                                                  \
    UNUSED(pSync);                                                                                                                 \
    reduce(dest, source, nreduce, OSH_DTYPE(T), OP, PE_start, logPE_stride, PE_size);                                              \
  }
#define AND(N, T) TO_ALL(N, T, and, GSHMEM_BAND)
#define OR(N, T) TO_ALL(N, T, or, GSHMEM_BOR)
#define XOR(N, T) TO_ALL(N, T, xor, GSHMEM_BXOR)
#define MAX(N, T) TO_ALL(N, T, max, GSHMEM_MAX)
#define MIN(N, T) TO_ALL(N, T, min, GSHMEM_MIN)
#define SUM(N, T) TO_ALL(N, T, sum, GSHMEM_SUM)
#define PROD(N, T) TO_ALL(N, T, prod, GSHMEM_PROD)
OPENSHMEM_TO_ALL_AND(AND)
OPENSHMEM_TO_ALL_OR(OR)
OPENSHMEM_TO_ALL_XOR(XOR)
OPENSHMEM_TO_ALL_MAX(MAX)
OPENSHMEM_TO_ALL_MIN(MIN)
OPENSHMEM_TO_ALL_SUM(SUM)
OPENSHMEM_TO_ALL_PROD(PROD)
