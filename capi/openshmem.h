/*
 * openshmem.h - what the files of the OpenSHMEM face share. Nothing here is exported.
 *
 * The face keeps one current world. A function with a hot path tries it on the address as given; when that is not heap memory,
 * osh_twin finds the heap address of a static variable (openshmem_data.c) and the native ABI does the rest, in words when it fails.
 */
#ifndef GSHMEM_OPENSHMEM_H
#define GSHMEM_OPENSHMEM_H

#define SHMEM_NO_GENERIC 1
#include "include/openshmem/shmem.h"

#include "internal.h"
#include "openshmem_types.h"

#include "../gocore/hot/hot_inline.h"

#define OSH_COLD __attribute__((noinline, cold))
#define OSH_SHARED __attribute__((noinline)) /* one copy of a hot path for all types of its width */

/* ---- the current world (openshmem_life.c) ---- */

/* A piece of the program's static data and where the heap has it. */
typedef struct osh_range {
  uintptr_t low;
  uint64_t length;
  uintptr_t twin;
} osh_range;

#define OSH_MAX_RANGES 4

typedef struct osh_state {
  uint64_t world, team; /* handles; 0 outside init ... finalize */
  int32_t me, n;
  uint32_t nrange;
  osh_range range[OSH_MAX_RANGES];
  uintptr_t heap_low;
  uint64_t heap_bytes;
  int32_t level, users; /* thread level; how often init was called */
  uint64_t round;       /* a number of this init, the same at every PE: part of the keys of our teams */
  int32_t joined;       /* the world was up before (another face, Python): it outlives our finalize */
} osh_state;
extern osh_state osh;

/* Prints the words of this thread's last failure behind `op`, tells the peers, ends the process. */
OSH_COLD _Noreturn void osh_fail(const char *op, int32_t status);
/* The same with words of its own. */
OSH_COLD _Noreturn void osh_die(const char *op, const char *words, ...) __attribute__((format(printf, 2, 3)));
/* Prints; the job goes on. */
OSH_COLD void osh_say(const char *op, const char *words, ...) __attribute__((format(printf, 2, 3)));

static inline void osh_check(const char *op, int32_t status) {
  if (HOT_UNLIKELY(status != GSHMEM_OK)) osh_fail(op, status);
}

/* For functions with a status: 0, or the words and nonzero. An aborted job ends here as well. */
OSH_COLD int osh_refuse(const char *op, int32_t status);
static inline int osh_status(const char *op, int32_t status) { return HOT_LIKELY(status == GSHMEM_OK) ? 0 : osh_refuse(op, status); }

/* ---- static variables (openshmem_data.c) ---- */

/* The symmetric address of a variable: its twin in the heap for static data, else the address itself. */
static inline void *osh_twin(const void *p) {
  for (uint32_t i = 0; i < osh.nrange; i++) {
    uintptr_t off = (uintptr_t)p - osh.range[i].low;
    if (off < osh.range[i].length) return (void *)(osh.range[i].twin + off);
  }
  return (void *)(uintptr_t)p;
}

/* The same for the program's first range alone, which usually is the only one: one compare on hot paths, whose slow ones use osh_twin. */
static inline void *osh_near(const void *p) {
  uintptr_t off = (uintptr_t)p - osh.range[0].low; /* without static data its length is 0 */
  return (void *)(HOT_UNLIKELY(off < osh.range[0].length) ? osh.range[0].twin + off : (uintptr_t)p);
}

void osh_data_open(void);  /* Collective. Makes the program's static data symmetric, or remembers why not. */
void osh_data_close(void); /* Gives the program its private data back, as they are now. */
uint64_t osh_data_bytes(void);      /* what osh_data_open will take from the heap */
const char *osh_data_obstacle(void); /* why static data are not symmetric; NULL when they are */

/* ---- memory (openshmem_memory.c) ---- */
void osh_memory_close(void);

/* ---- teams and contexts (openshmem_team.c) ---- */

typedef struct osh_team {
  uintptr_t value; /* what the user holds; 0 when the slot is free */
  uint64_t handle; /* of the native ABI */
  int32_t me, n;
  int32_t *pe; /* world PE of each rank */
  shmem_team_config_t config;
} osh_team;

#define OSH_MAX_TEAMS 4096u
#define OSH_MAX_CTXS 4096u
extern osh_team *osh_teams[OSH_MAX_TEAMS];

void osh_teams_open(void); /* WORLD and SHARED. Collective. */
void osh_teams_close(void);

/* NULL for a handle that is not a live team. */
static inline osh_team *osh_team_of(shmem_team_t team) {
  osh_team *t = osh_teams[(uintptr_t)team % OSH_MAX_TEAMS];
  return HOT_LIKELY(t && t->value == (uintptr_t)team && team) ? t : NULL;
}

int osh_ctx_pe_slow(shmem_ctx_t ctx, int pe);
/* The world PE of a context's rank; -1, which every operation refuses, when there is none. */
static inline int osh_ctx_pe(shmem_ctx_t ctx, int pe) { return HOT_LIKELY(ctx == SHMEM_CTX_DEFAULT) ? pe : osh_ctx_pe_slow(ctx, pe); }

/* The team of an active set, made at its first use. Ends the job when this PE is not in it. */
osh_team *osh_set(const char *op, int start, int log_stride, int size);
void osh_sets_close(void);

/* ---- moving bytes (openshmem_rma.c) ---- */
void osh_put(void *dest, const void *source, uint64_t bytes, int pe);
void osh_get(void *dest, const void *source, uint64_t bytes, int pe);

/* ---- collectives on a team (openshmem_coll.c); status of the native ABI ---- */
int32_t osh_broadcast(const osh_team *t, void *dest, const void *source, uint64_t bytes, int root);
int32_t osh_collect(const osh_team *t, void *dest, const void *source, uint64_t bytes);
int32_t osh_fcollect(const osh_team *t, void *dest, const void *source, uint64_t bytes);
int32_t osh_alltoall(const osh_team *t, void *dest, const void *source, uint64_t bytes);
int32_t osh_alltoalls(const osh_team *t, void *dest, const void *source, int64_t dst, int64_t sst, uint64_t elem, uint64_t count);
int32_t osh_all_reduce(const osh_team *t, void *dest, const void *source, uint64_t count, int32_t dtype, int32_t op);

#define OSH_LONG_DOUBLE 0 /* no dtype of the core: reduced here */
#define OSH_DTYPE(T)                                                                                                          \
  _Generic((T)0, float: GSHMEM_F32, double: GSHMEM_F64, long double: OSH_LONG_DOUBLE, float _Complex: GSHMEM_C64,              \
           double _Complex: GSHMEM_C128, char: (char)-1 < 1 ? GSHMEM_I8 : GSHMEM_U8, signed char: GSHMEM_I8,                   \
           short: GSHMEM_I16, int: GSHMEM_I32, long: sizeof(long) == 8 ? GSHMEM_I64 : GSHMEM_I32, long long: GSHMEM_I64,       \
           unsigned char: GSHMEM_U8, unsigned short: GSHMEM_U16, unsigned int: GSHMEM_U32,                                     \
           unsigned long: sizeof(long) == 8 ? GSHMEM_U64 : GSHMEM_U32, unsigned long long: GSHMEM_U64)

/* 1 for signed integers. */
#define OSH_SIGNED(T)                                                                                                    \
  _Generic((T)0, short: 1, int: 1, long: 1, long long: 1, unsigned short: 0, unsigned int: 0, unsigned long: 0, unsigned long long: 0)

/* A value of up to 8 bytes as bits and back. Memory order of the bytes: little-endian machines only, as all of the library. */
#define OSH_BITS(value)                                        \
  __extension__({                                              \
    uint64_t bits_ = 0;                                        \
    __typeof__(value) v_ = (value);                            \
    memcpy(&bits_, &v_, sizeof v_ < 8 ? sizeof v_ : 8);        \
    bits_;                                                     \
  })
#define OSH_VALUE(T, bits)                                     \
  __extension__({                                              \
    uint64_t bits_ = (bits);                                   \
    T v_;                                                      \
    memcpy(&v_, &bits_, sizeof v_ < 8 ? sizeof v_ : 8);        \
    v_;                                                        \
  })

#endif
