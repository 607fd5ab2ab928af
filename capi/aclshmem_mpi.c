/*
 * aclshmem_mpi.c - meeting through MPI: PE 0's unique id by one broadcast.
 *
 * The library is not linked with MPI. The program's MPI is found in the process; the two interfaces there are (Open MPI's pointers,
 * MPICH's integers) differ in what a communicator and a type are.
 */
#define _GNU_SOURCE
#include "aclshmem_face.h"

#include <dlfcn.h>
#include <string.h>

typedef union handle { /* a communicator or a type in either interface; passed in one integer register in both */
  void *pointer;
  int number;
} handle;

typedef struct mpi {
  int (*initialized)(int *);
  int (*rank)(void *comm, int *);
  int (*size)(void *comm, int *);
  int (*bcast)(void *buffer, int count, void *type, int root, void *comm);
  void *world, *byte;
  int open; /* Open MPI's interface */
} mpi;

#define MPICH_WORLD 0x44000000
#define MPICH_BYTE 0x4c00010d

static int find_mpi(mpi *m) {
  m->initialized = (int (*)(int *))dlsym(RTLD_DEFAULT, "MPI_Initialized");
  m->rank = (int (*)(void *, int *))dlsym(RTLD_DEFAULT, "MPI_Comm_rank");
  m->size = (int (*)(void *, int *))dlsym(RTLD_DEFAULT, "MPI_Comm_size");
  m->bcast = (int (*)(void *, int, void *, int, void *))dlsym(RTLD_DEFAULT, "MPI_Bcast");
  if (!m->initialized || !m->rank || !m->size || !m->bcast) return 0;
  m->world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
  m->byte = dlsym(RTLD_DEFAULT, "ompi_mpi_byte");
  m->open = m->world && m->byte;
  if (!m->open) {
    m->world = (void *)(uintptr_t)MPICH_WORLD;
    m->byte = (void *)(uintptr_t)MPICH_BYTE;
  }
  return 1;
}

static void *communicator(const mpi *m, void *comm) {
  if (!comm) return m->world;
  handle h;
  memcpy(&h, comm, m->open ? sizeof h.pointer : sizeof h.number);
  return m->open ? h.pointer : (void *)(uintptr_t)(unsigned)h.number;
}

int face_mpi_uid(void *comm_args, int me, int n, uint8_t uid[GSHMEM_UID_BYTES]) {
  mpi m;
  int up = 0, rank = -1, size = -1;
  if (!find_mpi(&m)) return face_refuse(ACLSHMEM_INVALID_VALUE, "init by MPI: this program has no MPI library; link one, or init by a unique id");
  if (m.initialized(&up) || !up) return face_refuse(ACLSHMEM_INNER_ERROR, "init by MPI: call MPI_Init first");
  void *comm = communicator(&m, comm_args);
  if (m.rank(comm, &rank) || m.size(comm, &size)) return face_refuse(ACLSHMEM_INNER_ERROR, "init by MPI: comm_args does not point to a communicator");
  if (rank != me || size != n)
    return face_refuse(ACLSHMEM_INVALID_PARAM, "init by MPI: my_pe is %d of %d, but MPI says %d of %d; they must be equal", me, n, rank, size);
  struct { int32_t status; uint8_t uid[GSHMEM_UID_BYTES]; } word = {0, {0}};
  if (rank == 0) word.status = gshmem_uid_create(NULL, word.uid);
  if (m.bcast(&word, sizeof word, m.byte, 0, comm)) return face_refuse(ACLSHMEM_INNER_ERROR, "init by MPI: MPI_Bcast failed");
  if (word.status) return rank ? face_refuse(face_code(word.status), "init by MPI: PE 0 could not make a unique id") : face_code(face_failed("init by MPI", word.status));
  memcpy(uid, word.uid, sizeof word.uid);
  return ACLSHMEM_SUCCESS;
}
