/* hello.c - the program of docs/openshmem.md: every PE adds its number plus one to a variable of PE 0. */
#include <shmem.h>
#include <stdio.h>

static long total;

int main(void) {
  shmem_init();
  shmem_long_atomic_add(&total, shmem_my_pe() + 1L, 0);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) printf("%d PEs, sum %ld\n", shmem_n_pes(), total);
  shmem_finalize();
}
