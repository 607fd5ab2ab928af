/*
 * openshmem_coll.c - collectives over a team, of every type.
 *
 * They are the native collectives on the symmetric addresses of the buffers. collect asks for the sizes first and is an
 * ordinary gather when they are equal. alltoalls writes its elements straight into the peers' dest, which the specification has
 * ready by then, and meets in a barrier. long double, which the core does not reduce, is gathered in pieces and folded here in rank order.
 */
#include "openshmem.h"

#include "../gocore/hot/exec.h"

#include <stdlib.h>

int32_t osh_broadcast(const osh_team *t, void *dest, const void *source, uint64_t bytes, int root) {
  return shim_cast(t->handle, osh_twin(source), osh_twin(dest), bytes, root);
}

int32_t osh_fcollect(const osh_team *t, void *dest, const void *source, uint64_t bytes) {
  return gshmem_all_gather(t->handle, osh_twin(source), osh_twin(dest), bytes);
}

#define PUSH_MAX (128u << 10)

/* May it be pushed: is `all` bytes at dest symmetric, and apart from the source? What is put into a peer must not be what that peer still sends. */
static int can_push(const uint8_t *dest, const uint8_t *source, uint64_t all) {
  uint64_t off = (uint64_t)((uintptr_t)dest - osh.heap_low);
  return source && off <= osh.heap_bytes && all <= osh.heap_bytes - off && (source + all <= dest || dest + all <= source);
}

/* Few bytes travel with the arrivals. More are put where they belong, as every dest is ready by the specification, and one meeting ends it
   instead of two. Many are read from the peers, which is faster per byte. What cannot be pushed goes the other way too, where it works or is refused. */
int32_t osh_alltoall(const osh_team *t, void *dest, const void *source, uint64_t bytes) {
  uint8_t *to = osh_twin(dest);
  const uint64_t all = (uint64_t)t->n * bytes;
  if (bytes <= HOT_INLINE_BYTES || bytes > PUSH_MAX || t->n == 1 || !can_push(to, osh_twin(source), all))
    return gshmem_all_to_all(t->handle, osh_twin(source), to, bytes);
  to += (uint64_t)t->me * bytes;
  for (int32_t i = 0; i < t->n; i++) {
    int32_t r = (t->me + i) % t->n;
    int32_t rc = gshmem_put(osh.world, to, (const uint8_t *)source + (uint64_t)r * bytes, bytes, t->pe[r]);
    if (rc) return rc;
  }
  return shim_meet(t->handle, GSHMEM_ALL_TO_ALL, bytes);
}

#define FEW 64

int32_t osh_collect(const osh_team *t, void *dest, const void *source, uint64_t bytes) {
  uint64_t few[FEW], *counts = few, request = 0;
  if (t->n > FEW && !(counts = malloc((size_t)t->n * sizeof *counts))) return errtext_fail(GSHMEM_ENOMEM, "collect: no memory for the sizes");
  int32_t rc = gshmem_all_gather(t->handle, &bytes, counts, sizeof bytes);
  int equal = 1;
  for (int32_t r = 0; rc == GSHMEM_OK && r < t->n; r++) equal &= counts[r] == bytes;
  if (rc == GSHMEM_OK && equal)
    rc = osh_fcollect(t, dest, source, bytes);
  else if (rc == GSHMEM_OK)
    rc = gshmem_collective(t->handle, GSHMEM_ALL_GATHER_V, osh_twin(source), osh_twin(dest), 0, 0, 0, -1, 1.0, counts, 0, GSHMEM_DEFAULT_TIMEOUT, -1,
                           &request);
  if (counts != few) free(counts);
  return rc;
}

int32_t osh_alltoalls(const osh_team *t, void *dest, const void *source, int64_t dst, int64_t sst, uint64_t elem, uint64_t count) {
  if (dst == 1 && sst == 1) return osh_alltoall(t, dest, source, elem * count);
  for (int32_t i = 0; count && i < t->n; i++) {
    int32_t r = (t->me + i) % t->n;
    uint8_t *to = (uint8_t *)osh_twin(dest) + (int64_t)((uint64_t)t->me * count * elem) * dst;
    const uint8_t *from = (const uint8_t *)source + (int64_t)((uint64_t)r * count * elem) * sst;
    int32_t rc = gshmem_iput(osh.world, to, from, dst, sst, elem, count, t->pe[r]);
    if (rc) return rc;
  }
  return shim_meet(t->handle, GSHMEM_ALL_TO_ALL, elem * count);
}

/* ---- long double ---- */

static void fold(long double *into, const long double *from, uint64_t n, int32_t op) {
  for (uint64_t i = 0; i < n; i++) {
    switch (op) {
      case GSHMEM_SUM: into[i] += from[i]; break;
      case GSHMEM_PROD: into[i] *= from[i]; break;
      case GSHMEM_MAX: into[i] = from[i] > into[i] || from[i] != from[i] ? from[i] : into[i]; break;
      default: into[i] = from[i] < into[i] || from[i] != from[i] ? from[i] : into[i];
    }
  }
}

#define PIECE 4096u /* elements gathered at once */

static int32_t reduce_long_double(const osh_team *t, long double *dest, const long double *source, uint64_t count, int32_t op) {
  uint64_t most = count < PIECE ? count : PIECE;
  long double *all = malloc(((size_t)t->n * most + 1) * sizeof *all);
  if (!all) return errtext_fail(GSHMEM_ENOMEM, "reduction of long double: no memory for the pieces of all PEs");
  int32_t rc = GSHMEM_OK;
  for (uint64_t at = 0; rc == GSHMEM_OK && at < count; at += most) {
    uint64_t n = count - at < most ? count - at : most;
    rc = gshmem_all_gather(t->handle, source + at, all, n * sizeof *all);
    if (rc) break;
    for (int32_t r = 1; r < t->n; r++) fold(all, all + (uint64_t)r * n, n, op);
    memcpy(dest + at, all, n * sizeof *all);
  }
  free(all);
  return rc;
}

int32_t osh_all_reduce(const osh_team *t, void *dest, const void *source, uint64_t count, int32_t dtype, int32_t op) {
  dest = osh_twin(dest);
  source = osh_twin(source);
  if (HOT_UNLIKELY(dtype == OSH_LONG_DOUBLE)) return reduce_long_double(t, dest, source, count, op);
  return gshmem_all_reduce(t->handle, source, dest, count, dtype, op);
}

/* ---- public: a team that is none is refused, everything else is the status of the operation ---- */

OSH_COLD static int no_team(const char *op) {
  osh_say(op, "the team is SHMEM_TEAM_INVALID, destroyed, or this PE is not in it");
  return GSHMEM_ESTALE;
}

#define ON_TEAM(op, call)                   \
  const osh_team *t = osh_team_of(team);    \
  return HOT_LIKELY(t != NULL) ? osh_status(op, call) : no_team(op)

int shmem_team_sync(shmem_team_t team) { ON_TEAM("team_sync", gshmem_sync(t->handle)); }

int shmem_broadcastmem(shmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root) {
  ON_TEAM("broadcast", osh_broadcast(t, dest, source, nelems, PE_root));
}
int shmem_collectmem(shmem_team_t team, void *dest, const void *source, size_t nelems) { ON_TEAM("collect", osh_collect(t, dest, source, nelems)); }
int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t nelems) { ON_TEAM("fcollect", osh_fcollect(t, dest, source, nelems)); }
int shmem_alltoallmem(shmem_team_t team, void *dest, const void *source, size_t nelems) { ON_TEAM("alltoall", osh_alltoall(t, dest, source, nelems)); }
int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) {
  ON_TEAM("alltoalls", osh_alltoalls(t, dest, source, dst, sst, 1, nelems));
}

#define MOVES(N, T)                                                                                                \
  int shmem_##N##_broadcast(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root) {             \
    return shmem_broadcastmem(team, dest, source, nelems * sizeof(T), PE_root);                                    \
  }                                                                                                                \
  int shmem_##N##_collect(shmem_team_t team, T *dest, const T *source, size_t nelems) {                            \
    return shmem_collectmem(team, dest, source, nelems * sizeof(T));                                               \
  }                                                                                                                \
  int shmem_##N##_fcollect(shmem_team_t team, T *dest, const T *source, size_t nelems) {                           \
    return shmem_fcollectmem(team, dest, source, nelems * sizeof(T));                                              \
  }                                                                                                                \
  int shmem_##N##_alltoall(shmem_team_t team, T *dest, const T *source, size_t nelems) {                           \
    return shmem_alltoallmem(team, dest, source, nelems * sizeof(T));                                              \
  }                                                                                                                \
  int shmem_##N##_alltoalls(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) { \
    ON_TEAM("alltoalls", osh_alltoalls(t, dest, source, dst, sst, sizeof(T), nelems));                             \
  }
OPENSHMEM_RMA(MOVES)

OSH_SHARED static int reduce(shmem_team_t team, void *dest, const void *source, size_t count, int32_t dtype, int32_t op) {
  ON_TEAM("reduce", osh_all_reduce(t, dest, source, count, dtype, op));
}

#define REDUCES(N, T, NAME, OP)                                                                          \
  int shmem_##N##_##NAME##_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) {         \
    return reduce(team, dest, source, nreduce, OSH_DTYPE(T), OP);                                        \
  }
#define AND(N, T) REDUCES(N, T, and, GSHMEM_BAND)
#define OR(N, T) REDUCES(N, T, or, GSHMEM_BOR)
#define XOR(N, T) REDUCES(N, T, xor, GSHMEM_BXOR)
#define MAX(N, T) REDUCES(N, T, max, GSHMEM_MAX)
#define MIN(N, T) REDUCES(N, T, min, GSHMEM_MIN)
#define SUM(N, T) REDUCES(N, T, sum, GSHMEM_SUM)
#define PROD(N, T) REDUCES(N, T, prod, GSHMEM_PROD)
OPENSHMEM_REDUCE_AND(AND)
OPENSHMEM_REDUCE_OR(OR)
OPENSHMEM_REDUCE_XOR(XOR)
OPENSHMEM_REDUCE_MAX(MAX)
OPENSHMEM_REDUCE_MIN(MIN)
OPENSHMEM_REDUCE_SUM(SUM)
OPENSHMEM_REDUCE_PROD(PROD)
