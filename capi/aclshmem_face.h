/*
 * aclshmem_face.h - what the C files of the Ascend face share.
 *
 * A face is one instance as Ascend's interface sees it: a world of its own, perhaps a second one for host-side memory, its teams by
 * small numbers, its blocks by address and its default stream. Slots of faces are never freed, only reused, so a late caller
 * finds a handle that is stale and gets an error.
 */
#ifndef GSHMEM_ACLSHMEM_FACE_H
#define GSHMEM_ACLSHMEM_FACE_H

#include "internal.h"

#include "../gocore/hot/hot_inline.h"
#include "include/aclshmem.h"

#include <pthread.h>

#define FACE_MAX 256 /* instance 0 and 255 more */

/* What makes a call leave the straight path; `odd` is 0 where none of it holds. */
#define ODD_HOST 1u    /* the host-side range exists: look which range an address is in */
#define ODD_PROF 2u    /* operations are timed */
#define ODD_QUEUED 4u  /* times the number of tasks on the default stream: they come first */

typedef struct face_team {
  int me, n;
  int *pe; /* world PE of each member */
} face_team;

typedef struct face_block {
  struct face_block *next;
  void *address;
  uint64_t handle;
  aclshmem_mem_type_t side;
} face_block;

typedef struct face_stream face_stream;

typedef struct face {
  _Atomic uint64_t world; /* 0 when not up */
  _Atomic uint32_t odd;
  int me, n;
  uint64_t id;
  _Atomic uint64_t control; /* world team of its own for allocations: their order is independent of barriers on streams */
  _Atomic uint64_t host_world; /* without a device: a world of its own for the host-side range */
  _Atomic int device; /* 1: device-side memory is a device's, whose addresses the CPU must not follow; low is such an address */
  atomic_int reached;   /* kernels were asked to reach the host side */
  uint64_t host_team;
  uintptr_t low, host_low;
  uint64_t bytes, host_bytes, local_bytes;
  int64_t control_ns; /* limit of allocations */
  int64_t wait_ns;    /* limit of waits and barriers: SHMEM_TIMEOUT; -1 none */
  _Atomic uint64_t team[ACLSHMEM_MAX_TEAMS]; /* handles; 0 free */

  pthread_mutex_t lock; /* guards what follows; never held while waiting for a peer */
  int status;           /* aclshmemx_init_status_t */
  int joins;            /* how many inits this instance has had */
  face_team *members[ACLSHMEM_MAX_TEAMS];
  face_block *blocks[256];
  struct face_made { uint64_t fingerprint, times; } *made; /* how often each set of PEs has become a team */
  uint32_t n_made;
  face_stream *stream; /* the default stream; made at first use */
} face;

extern _Atomic(face *) face_current; /* never NULL */

static inline face *face_now(void) { return atomic_load_explicit(&face_current, memory_order_acquire); }

static inline uint64_t face_world(face *f) { return atomic_load_explicit(&f->world, memory_order_relaxed); }

/* Device-side memory that the CPU cannot reach. */
static inline int face_on_device(face *f, const void *address) {
  return atomic_load_explicit(&f->device, memory_order_acquire) && (uintptr_t)address - f->low < f->bytes; /* partner: open_world */
}

/* The world whose range holds the address. */
static inline uint64_t face_world_of(face *f, const void *address) {
  uint64_t host = atomic_load_explicit(&f->host_world, memory_order_acquire); /* partner: face_host_open */
  if (host && (uintptr_t)address - f->host_low < f->host_bytes) return host;
  return face_world(f);
}

/* ---- aclshmem_log.c ---- */
enum { FACE_DEBUG, FACE_INFO, FACE_WARN, FACE_ERROR, FACE_FATAL };
void face_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Logs a failed call with the core's words, and keeps the status for aclshmem_cpu_last_status. Gives the status. */
int32_t face_failed(const char *what, int32_t status);
static inline void face_told(const char *what, int32_t rc) {
  if (rc) face_failed(what, rc);
}
/* Words of our own as this thread's last failure, logged. Gives the Ascend code. */
int face_refuse(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int face_code(int32_t status); /* the Ascend code of a gshmem status */
void face_log_level_reset(void);
void face_prof_begin(face *f);
void face_prof_end(face *f);
/* Operations as the profiler counts them: frame numbers of block 0. */
enum { PROF_PUT, PROF_GET, PROF_P, PROF_G, PROF_PUT_SIGNAL, PROF_SIGNAL, PROF_WAIT, PROF_TEST, PROF_BARRIER, PROF_SYNC, PROF_QUIET, PROF_ALLOC, PROF_FREE, PROF_KINDS };
void face_prof_add(int kind, int64_t began_ns);

/* ---- aclshmem_stream.c ---- */
typedef struct face_task {
  struct face_task *next;
  int32_t (*run)(struct face_task *t); /* a gshmem status */
  const char *what;
  face *f;
  uint64_t world; /* of f when it was queued; 0: needs none */
  void *dst, *src;
  uint64_t n;
  int64_t a;
  int b, pe;
  void (*call)(void *);
} face_task;
void face_queue(void *stream, const face_task *t); /* copies the task; logs what is wrong */
int32_t face_drain(face *f);                       /* the default stream; at once when it is idle or is the caller */
void face_stream_end(face *f);
int face_device_stream(face *f, const void *stream); /* 1: the stream is the device's (0 is the device's default), 0: one of this file's */

/* ---- aclshmem_init.c ---- */
face *face_find(uint64_t id); /* an instance that is up or coming up, NULL without */
int face_host_open(face *f);  /* sets the host-side range up. Collective. 0 or a gshmem status */
/* ---- aclshmem_meet.c ---- */
typedef struct meeting {
  const char *method;
  uint8_t uid[GSHMEM_UID_BYTES];
  char endpoint[128];
  char *secret; /* owned; NULL none */
} meeting;
int face_meet(aclshmemx_bootstrap_t flags, aclshmemx_init_attr_t *a, meeting *m); /* 0 or an Ascend code; m filled */
int face_secret(char **secret_out);
/* ---- aclshmem_mpi.c ---- */
int face_mpi_uid(void *comm, int me, int n, uint8_t uid[GSHMEM_UID_BYTES]);
/* ---- aclshmem_heap.c ---- */
void face_blocks_forget(face *f);
/* ---- aclshmem_team.c ---- */
int32_t face_teams_open(face *f, uint64_t world_team);
void face_teams_close(face *f);
/* ---- aclshmem_rma.c ---- */
int32_t face_put(face *f, void *dst, const void *src, uint64_t bytes, int pe, int complete);
int32_t face_get(face *f, void *dst, const void *src, uint64_t bytes, int pe);
void face_buffers_apply(face *f); /* tells the device's kernels what set_*_config said before init */
/* ---- aclshmem_signal.c ---- */
int32_t face_signal(face *f, void *sig, int32_t value, int op, int pe);
int32_t face_quiet(face *f);
int32_t face_barrier(face *f, uint64_t team);
/* ---- aclshmem_wait.c ---- */
int32_t face_wait_int32(face *f, int32_t *word, int cmp, int32_t value);

#endif
