/* exits.c - global_exit: PE 0 ends the job with status 23 while the others wait, compute or sleep; nobody leaves by itself. */
#define _GNU_SOURCE
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv) {
  arguments(argc, argv);
  up(1 << 20);
  int32_t *w = aclshmem_calloc(1, 4);
  aclshmem_barrier_all();
  printf("CALLED aclshmem_global_exit\n");
  fflush(stdout);
  if (me == 0) {
    usleep(100000);
    aclshmem_global_exit(23);
    return 1;
  }
  if (me == 1) aclshmem_signal_wait_until(w, ACLSHMEM_CMP_EQ, 1); /* may come back before the process ends */
  sleep(200);
  return 2;
}
