/* mpi.c - coming up through MPI, with a communicator and without. */
#include "check.h"

#include <mpi.h>

static void run(void *comm) {
  take_device();
  aclshmemx_init_attr_t a = ACLSHMEMX_INIT_ATTR_INITIALIZER;
  a.my_pe = me;
  a.n_pes = n;
  a.local_mem_size = 1 << 20;
  a.comm_args = comm;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_MPI, &a) == 0, "init: %s", aclshmem_cpu_last_error());
  int32_t *w = aclshmem_malloc(4);
  aclshmem_int32_p(w, me + 9, (me + 1) % n);
  aclshmem_barrier_all();
  CHECK(AT(w) == (me + n - 1) % n + 9, "p");
  CHECK(aclshmem_finalize() == 0, "finalize");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  run(NULL);
  MPI_Comm other;
  MPI_Comm_split(MPI_COMM_WORLD, 0, n - me, &other); /* backwards */
  MPI_Comm_rank(other, &me);
  run(&other);
  MPI_Finalize();
  if (!failures) printf("MPI fine\n");
  return failures != 0;
}
