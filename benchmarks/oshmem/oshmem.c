/*
 * oshmem.c - the rows through an OpenSHMEM library: oshcc -O3 oshmem.c -o oshmem; oshrun -n 2 ./oshmem [--row NAME ...].
 */
#include <shmem.h>
#include <stdint.h>
#include <string.h>

/* Two sets, used in turns: a set may be used again only when every PE has left the reduction before. On the heap, since the
   addresses of globals differ between PEs in position-independent programs. */
static long *sync_words[2];
static float *work[2];
static unsigned turn;

static inline int lib_me(void) { return shmem_my_pe(); }
static inline int lib_n(void) { return shmem_n_pes(); }
static inline void *lib_alloc(uint64_t bytes) {
  void *p = shmem_malloc(bytes);
  if (!p) shmem_global_exit(1);
  memset(p, 0, bytes);
  shmem_barrier_all();
  return p;
}
static inline void lib_put(void *dst, const void *src, uint64_t bytes, int pe) { shmem_putmem(dst, src, bytes, pe); }
static inline void lib_get(void *dst, const void *src, uint64_t bytes, int pe) { shmem_getmem(dst, src, bytes, pe); }
static inline void lib_p(uint64_t *dst, uint64_t v, int pe) { shmem_ulong_p((unsigned long *)dst, v, pe); }
static inline void lib_wait(uint64_t *word, uint64_t at_least) { shmem_ulong_wait_until((unsigned long *)word, SHMEM_CMP_GE, at_least); }
static inline uint64_t lib_fetch_add(uint64_t *dst, uint64_t v, int pe) { return shmem_ulong_atomic_fetch_add((unsigned long *)dst, v, pe); }
static inline void lib_barrier(void) { shmem_barrier_all(); }
static inline void lib_all_reduce(float *out, const float *in, uint64_t count) {
  shmem_float_sum_to_all(out, in, (int)count, 0, 0, lib_n(), work[turn & 1], sync_words[turn & 1]);
  turn++;
}

#include "../harness/body.h"

int main(int argc, char **argv) {
  rows r = rows_parse(argc, argv);
  shmem_init();
  for (int k = 0; k < 2; k++) {
    sync_words[k] = lib_alloc(SHMEM_REDUCE_SYNC_SIZE * sizeof(long));
    work[k] = lib_alloc(body_largest(&r) / 2 + sizeof(float) * (SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1));
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++) sync_words[k][i] = SHMEM_SYNC_VALUE;
  }
  shmem_barrier_all();
  body_run(&r);
  shmem_finalize();
  return 0;
}
