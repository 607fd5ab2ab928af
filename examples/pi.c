/*
 * pi.c - pi by throwing darts, in OpenSHMEM.
 *
 *     shmem-cc -O2 -o pi examples/pi.c && shmem-run -n 4 ./pi [darts per PE]
 */
#include <math.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* xorshift64*: a stream of its own for each PE. */
static double next(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (double)((*state * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

int main(int count, char **words) {
  shmem_init();
  int me = shmem_my_pe(), n = shmem_n_pes();
  long darts = count > 1 ? atol(words[1]) : 2000000;
  static long inside, all_inside; /* static data are symmetric */
  uint64_t state = 88172645463325252ull + 1000003ull * (uint64_t)me;
  for (long i = 0; i < darts; i++) {
    double x = next(&state), y = next(&state);
    inside += x * x + y * y < 1;
  }
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_inside, &inside, 1);
  double pi = 4.0 * (double)all_inside / ((double)darts * n);
  if (me == 0) printf("%ld darts by %d PEs: pi is about %.4f\n", darts * n, n, pi);
  shmem_finalize();
  return fabs(pi - 3.14159265) < 0.01 ? 0 : 1;
}
