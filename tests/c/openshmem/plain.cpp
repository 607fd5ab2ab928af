// plain.cpp - the header in C++17: typed functions, std::complex, statics.
#include <shmem.h>

#include <complex>
#include <cstdio>

static long counter;
static std::complex<double> sum, mine;

int main() {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  shmem_long_atomic_add(&counter, me + 1, 0);
  mine = std::complex<double>(me, 1);
  shmem_barrier_all();
  const bool counted = shmem_long_g(&counter, 0) == long(n) * (n + 1) / 2;
  const bool added = shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1) == 0 && sum == std::complex<double>(n * (n - 1) / 2, n);
  shmem_barrier_all();
  shmem_finalize();
  if (!counted || !added) std::fprintf(stderr, "PE %d: counted %d added %d\n", me, counted, added);
  return counted && added ? 0 : 1;
}
