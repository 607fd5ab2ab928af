/*
 * aclshmem_init.c - instances of the Ascend face: coming up, leaving, which one is current, the end of all.
 *
 *   down ──claim──► coming (SHM_CREATED) ──up──► up (IS_INITIALIZED) ──last finalize──► down
 *
 * An init of an instance that is up joins it when the PE and their number are the same (whoever shares a process with another user of
 * the library cannot end the other's world); any other is refused.
 */
#include "aclshmem_face.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static face first = {.me = -1, .n = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .wait_ns = -1};
static face *slots[FACE_MAX] = {&first}; /* slot 0 is instance 0's; guarded by lock, never freed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(face *) face_current = &first;

static aclshmem_instance_ctx contexts[2]; /* what instance_ctx_get hands out */
static _Atomic int context_now;

/* lock is held. */
static face *find_locked(uint64_t id) {
  for (int i = 0; i < FACE_MAX; i++)
    if (slots[i] && slots[i]->id == id && (slots[i]->status || (id == 0 && i == 0))) return slots[i];
  return NULL;
}

face *face_find(uint64_t id) {
  pthread_mutex_lock(&lock);
  face *f = find_locked(id);
  pthread_mutex_unlock(&lock);
  return f;
}

/* lock is held. A context is only written while the other one is handed out. */
static void make_current_locked(face *f) {
  int other = 1 - atomic_load(&context_now);
  contexts[other].id = f->id;
  atomic_store(&context_now, other);
  atomic_store_explicit(&face_current, f, memory_order_release);
}

/* lock is held. A face for a new instance; NULL when there are 255, or no memory. */
static face *claim_locked(uint64_t id) {
  if (!id) return &first;
  for (int i = 1; i < FACE_MAX; i++) {
    if (slots[i] && slots[i]->status) continue;
    if (!slots[i]) {
      if (!(slots[i] = calloc(1, sizeof *slots[i]))) return NULL;
      pthread_mutex_init(&slots[i]->lock, NULL);
    }
    slots[i]->id = id;
    slots[i]->me = slots[i]->n = -1;
    return slots[i];
  }
  return NULL;
}

/* ---- settings --------------------------------------------------------------------------------------------------------- */

/* SHMEM_TIMEOUT as the core reads it: seconds, or with ms, s, m, h; -1 none. */
static int64_t environment_timeout(void) {
  static const struct { const char *unit; double ns; } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 6e10}, {"h", 3.6e12}};
  const char *text = getenv("SHMEM_TIMEOUT");
  if (!text || !*text) return (int64_t)1800 * 1000000000;
  char *end;
  double value = strtod(text, &end);
  if (value < 0) return -1;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (!strcmp(end, units[i].unit)) return (int64_t)(value * units[i].ns);
  return (int64_t)1800 * 1000000000; /* the core refuses such a value in words when it comes up */
}

static int check(const aclshmemx_init_attr_t *a) {
  const aclshmem_init_optional_attr_t *o = &a->option_attr;
  if (a->my_pe < 0) return face_refuse(ACLSHMEM_INVALID_VALUE, "init: my_pe is %d", a->my_pe);
  if (a->n_pes <= 0 || a->n_pes > ACLSHMEM_MAX_PES) return face_refuse(ACLSHMEM_INVALID_VALUE, "init: n_pes is %d; it is 1 to %d", a->n_pes, ACLSHMEM_MAX_PES);
  if (!a->local_mem_size || a->local_mem_size > ACLSHMEM_MAX_LOCAL_SIZE)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "init: local_mem_size is %llu; it is 1 to %lu", (unsigned long long)a->local_mem_size, ACLSHMEM_MAX_LOCAL_SIZE);
  if (!o->shm_init_timeout || !o->control_operation_timeout)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "init: shm_init_timeout is %u and control_operation_timeout %u seconds; both are at least 1. C++ sets the defaults, which memset "
                       "clears; in C begin with ACLSHMEMX_INIT_ATTR_INITIALIZER", o->shm_init_timeout, o->control_operation_timeout);
  if (!o->data_op_engine_type || (unsigned)o->data_op_engine_type & ~0xfu)
    return face_refuse(ACLSHMEM_INVALID_VALUE, "init: data_op_engine_type is %#x; it is a mask of ACLSHMEM_DATA_OP_*", (unsigned)o->data_op_engine_type);
  if (a->my_pe >= a->n_pes) return face_refuse(ACLSHMEM_INVALID_PARAM, "init: my_pe is %d of %d", a->my_pe, a->n_pes);
  return ACLSHMEM_SUCCESS;
}

/* ---- the watch for global_exit: one thread while an instance of several PEs is up ------------------------------------- */

#define EXIT_MARK 0x41580000 /* an abort code that is a global_exit; the status is in the low byte */
#define WATCH_NS 50000000

static struct {
  pthread_cond_t wake;
  pthread_t thread;
  int users, running;
} watch = {.wake = PTHREAD_COND_INITIALIZER}; /* guarded by lock */

static int exit_asked(uint64_t world) {
  hot_world *w;
  hot_thread *self;
  if (!world || hot_enter_known(world, &w, &self)) return -1; /* the core may have heard of it first */
  int32_t code = w->self ? atomic_load_explicit(&w->self->abort_code, memory_order_acquire) : 0;
  /* Who asked is still telling the others and leaves by itself: its own watch must not be faster. */
  if (code && atomic_load_explicit(&w->self->abort_by, memory_order_relaxed) == w->me + 1) code = 0;
  hot_leave(self);
  return (code & ~0xff) == EXIT_MARK ? code & 0xff : -1;
}

/* The process may be anywhere, perhaps inside stdio: what can be written without waiting is, the rest is not. */
static void leave(int status) {
  if (!ftrylockfile(stdout)) fflush_unlocked(stdout);
  if (!ftrylockfile(stderr)) fflush_unlocked(stderr);
  _exit(status);
}

static void *watching(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (watch.users) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WATCH_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&watch.wake, &lock, &until);
    for (int i = 0; i < FACE_MAX; i++) {
      int status = slots[i] && slots[i]->status ? exit_asked(face_world(slots[i])) : -1;
      if (status >= 0) leave(status);
    }
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void watch_add(void) {
  pthread_mutex_lock(&lock);
  if (!watch.users++ && !watch.running) watch.running = !pthread_create(&watch.thread, NULL, watching, NULL);
  pthread_mutex_unlock(&lock);
}

static void watch_remove(void) {
  pthread_mutex_lock(&lock);
  pthread_t thread = watch.thread;
  int join = !--watch.users && watch.running;
  if (join) {
    watch.running = 0;
    pthread_cond_signal(&watch.wake);
  }
  pthread_mutex_unlock(&lock);
  if (join) pthread_join(thread, NULL);
}

void aclshmem_global_exit(int status) {
  face *f = face_now();
  uint64_t world = face_world(f);
  if (!world || atomic_load(&hot_forked)) return;
  gshmem_abort(world, EXIT_MARK | (status & 0xff));
  exit(status);
}

/* ---- coming up ---------------------------------------------------------------------------------------------------------- */

static int32_t measure(uint64_t world, uintptr_t *low, uint64_t *bytes) {
  gshmem_heap_stat stat = {.size = sizeof stat};
  int32_t rc = gshmem_heap_stats(world, &stat);
  if (rc) return rc;
  *low = (uintptr_t)stat.low;
  *bytes = stat.bytes;
  return GSHMEM_OK;
}

/* Where the two sides lie: with a device they are two heaps of one world, without one the host side gets a world of its own when it is asked for. */
static int32_t measure_sides(face *f, uint64_t world) {
  gshmem_heap_stat stat = {.size = sizeof stat};
  int device = gshmem_device_stats(world, &stat) == GSHMEM_OK;
  int32_t rc = device ? measure(world, &f->host_low, &f->host_bytes) : measure(world, &f->low, &f->bytes);
  if (rc || !device) return rc;
  f->low = (uintptr_t)stat.low;
  f->bytes = stat.bytes;
  atomic_store_explicit(&f->device, 1, memory_order_release); /* partner: face_on_device */
  return GSHMEM_OK;
}

/* The device that is wanted: the one of the environment, else whatever there is. */
static const char *device_wanted(void) {
  const char *said = getenv("SHMEM_DEVICE");
  return said && *said ? NULL : "auto";
}

/* The world, its teams and its numbers. Collective. */
static int32_t open_world(face *f, const aclshmemx_init_attr_t *a, const meeting *m) {
  char label[64];
  snprintf(label, sizeof label, "of Ascend instance %llu, %d PEs", (unsigned long long)f->id, a->n_pes);
  gshmem_options o = {.size = sizeof o, .me = a->my_pe, .n = a->n_pes, .heap_bytes = a->local_mem_size + ACLSHMEM_EXTRA_SIZE,
                      .timeout_ns = (int64_t)a->option_attr.shm_init_timeout * 1000000000, .method = m->method, .secret = m->secret, .label = label,
                      .device = device_wanted(), .device_bytes = a->local_mem_size + ACLSHMEM_EXTRA_SIZE};
  if (!strcmp(m->method, "uid"))
    o.uid = m->uid;
  else
    o.endpoint = m->endpoint;
  uint64_t world, team;
  int32_t rc = gshmem_init(&o, &world, &team);
  if (rc) return rc;
  f->me = a->my_pe;
  f->n = a->n_pes;
  f->local_bytes = a->local_mem_size;
  f->control_ns = (int64_t)a->option_attr.control_operation_timeout * 1000000000;
  f->wait_ns = environment_timeout();
  rc = measure_sides(f, world);
  if (!rc) rc = face_teams_open(f, team);
  if (rc) {
    face_teams_close(f);
    gshmem_finalize(world, 0);
    atomic_store(&f->device, 0);
    return rc;
  }
  atomic_store_explicit(&f->world, world, memory_order_release);
  face_buffers_apply(f);
  return GSHMEM_OK;
}

/* lock is held. 1: joined; 0: come up; negative: refused. */
static int join_locked(face *f, const aclshmemx_init_attr_t *a) {
  if (f->status == ACLSHMEM_STATUS_NOT_INITIALIZED) return 0;
  if (f->status == ACLSHMEM_STATUS_IS_INITIALIZED && f->me == a->my_pe && f->n == a->n_pes && a->local_mem_size <= f->local_bytes) {
    f->joins++;
    return 1;
  }
  return ACLSHMEM_INNER_ERROR;
}

static int claim(uint64_t id, const aclshmemx_init_attr_t *a, face **out) {
  pthread_mutex_lock(&lock);
  face *f = find_locked(id);
  int joined = f ? join_locked(f, a) : 0;
  if (!f) f = claim_locked(id);
  if (f && !joined) f->status = ACLSHMEM_STATUS_SHM_CREATED;
  if (joined == 1) make_current_locked(f);
  pthread_mutex_unlock(&lock);
  *out = f;
  if (!f) return face_refuse(ACLSHMEM_INNER_ERROR, "init: there are %d instances already, or no memory", FACE_MAX - 1);
  if (joined < 0)
    return face_refuse(joined, "init: instance %llu is up as PE %d of %d with %llu bytes (or comes up just now); finalize it first, or use another instance_id",
                       (unsigned long long)id, f->me, f->n, (unsigned long long)f->local_bytes);
  return joined;
}

int aclshmemx_init_attr(aclshmemx_bootstrap_t flags, aclshmemx_init_attr_t *attributes) {
  face_log_level_reset();
  if (!attributes) return face_refuse(ACLSHMEM_INVALID_PARAM, "init: attributes are null");
  int rc = check(attributes);
  if (rc) return rc;
  if (!(flags & (ACLSHMEMX_INIT_WITH_DEFAULT | ACLSHMEMX_INIT_WITH_MPI | ACLSHMEMX_INIT_WITH_UNIQUEID)))
    return face_refuse(ACLSHMEM_INVALID_PARAM, "init: flags %#x name none of ACLSHMEMX_INIT_WITH_DEFAULT, _MPI and _UNIQUEID", (unsigned)flags);
  face *f;
  if ((rc = claim(attributes->instance_id, attributes, &f))) return rc == 1 ? ACLSHMEM_SUCCESS : rc;
  meeting m;
  rc = face_meet(flags, attributes, &m);
  if (!rc) {
    int32_t status = open_world(f, attributes, &m);
    if (status) rc = face_code(face_failed("init", status));
  }
  if (m.secret) explicit_bzero(m.secret, strlen(m.secret));
  free(m.secret);
  pthread_mutex_lock(&lock);
  f->status = rc ? ACLSHMEM_STATUS_NOT_INITIALIZED : ACLSHMEM_STATUS_IS_INITIALIZED;
  f->joins = 1;
  if (!rc) make_current_locked(f);
  pthread_mutex_unlock(&lock);
  if (rc) return rc;
  watch_add();
  face_prof_begin(f);
  face_log(FACE_INFO, "instance %llu is up: PE %d of %d", (unsigned long long)f->id, f->me, f->n);
  return ACLSHMEM_SUCCESS;
}

/* With a device the host side is of the same world, and kernels reach it from its first use on. Where they cannot, all PEs find so together: it is
   host memory all the same, and the log says what it lacks. */
static void reach_host(face *f) {
  if (atomic_exchange(&f->reached, 1)) return;
  if (gshmem_device_reach_host(face_world(f), f->control_ns))
    face_log(FACE_WARN, "HOST_SIDE memory is for the host and its transfers only; kernels do not reach it: %s", gshmem_last_error());
}

/* PE 0's unique id by a broadcast in the first world, then a second world for the host-side range. */
int face_host_open(face *f) {
  if (atomic_load(&f->device)) reach_host(f);
  if (atomic_load(&f->host_world) || atomic_load(&f->device)) return GSHMEM_OK;
  struct { int32_t status; uint8_t uid[GSHMEM_UID_BYTES]; } word = {0, {0}}, got;
  if (f->me == 0 && f->n > 1) word.status = gshmem_uid_create(NULL, word.uid);
  int32_t rc = gshmem_broadcast(atomic_load(&f->control), &word, &got, sizeof word, 0);
  if (rc) return rc;
  if (got.status) return errtext_fail(got.status, "the host-side range needs a second world, and PE 0 could not make its unique id");
  gshmem_options o = {.size = sizeof o, .me = f->me, .n = f->n, .heap_bytes = f->local_bytes + ACLSHMEM_EXTRA_SIZE, .timeout_ns = f->control_ns,
                      .method = f->n > 1 ? "uid" : "single", .uid = f->n > 1 ? got.uid : NULL, .device = "none", .label = "host-side memory of an Ascend instance"};
  uint64_t world;
  if ((rc = gshmem_init(&o, &world, &f->host_team))) return rc;
  if ((rc = measure(world, &f->host_low, &f->host_bytes))) {
    gshmem_finalize(world, 0);
    return rc;
  }
  atomic_fetch_or(&f->odd, ODD_HOST);
  atomic_store_explicit(&f->host_world, world, memory_order_release); /* partner: face_world_of */
  return GSHMEM_OK;
}

/* ---- leaving ------------------------------------------------------------------------------------------------------------ */

static int32_t close_worlds(face *f) {
  uint64_t world = face_world(f), host = atomic_load(&f->host_world);
  face_stream_end(f);
  face_prof_end(f);
  int32_t rc = GSHMEM_OK;
  if (host) rc = gshmem_finalize(host, f->wait_ns);
  int32_t second = gshmem_finalize(world, f->wait_ns);
  atomic_store(&f->host_world, 0);
  atomic_store(&f->device, 0);
  atomic_store(&f->reached, 0);
  f->host_bytes = f->bytes = 0;
  atomic_store(&f->control, 0);
  atomic_store(&f->world, 0);
  atomic_store(&f->odd, 0);
  face_teams_close(f);
  face_blocks_forget(f);
  return rc ? rc : second;
}

int aclshmemx_finalize(uint64_t instance_id) {
  if (atomic_load(&hot_forked)) return face_code(fork_refuse());
  pthread_mutex_lock(&lock);
  face *f = find_locked(instance_id);
  int up = f && f->status == ACLSHMEM_STATUS_IS_INITIALIZED, last = up && --f->joins == 0;
  if (last) f->status = ACLSHMEM_STATUS_SHM_CREATED; /* leaving: nobody joins it any more */
  pthread_mutex_unlock(&lock);
  if (!f) return face_refuse(ACLSHMEM_INNER_ERROR, "finalize: there is no instance %llu", (unsigned long long)instance_id);
  if (!last) return ACLSHMEM_SUCCESS; /* never up, or somebody else still uses it */
  watch_remove();
  int32_t rc = close_worlds(f);
  pthread_mutex_lock(&lock);
  f->status = ACLSHMEM_STATUS_NOT_INITIALIZED;
  if (f->id) make_current_locked(&first);
  pthread_mutex_unlock(&lock);
  return rc ? face_code(face_failed("finalize", rc)) : ACLSHMEM_SUCCESS;
}

int aclshmem_finalize(void) { return aclshmemx_finalize(face_now()->id); }

/* ---- what there is ------------------------------------------------------------------------------------------------------ */

int aclshmemx_init_status(void) {
  pthread_mutex_lock(&lock);
  int status = face_now()->status;
  pthread_mutex_unlock(&lock);
  return status;
}

int aclshmem_my_pe(void) { return face_now()->me; }
int aclshmem_n_pes(void) { return face_now()->n; }

void aclshmem_info_get_version(int *major, int *minor) {
  if (!major || !minor) return;
  *major = ACLSHMEM_MAJOR_VERSION;
  *minor = ACLSHMEM_MINOR_VERSION;
}

void aclshmem_info_get_name(char *name) {
  if (name)
    snprintf(name, ACLSHMEM_MAX_NAME_LEN, "ACLSHMEM v%d.%d.%d", ACLSHMEM_VENDOR_MAJOR_VER, ACLSHMEM_VENDOR_MINOR_VER, ACLSHMEM_VENDOR_PATCH_VER);
}

aclshmem_instance_ctx *aclshmemx_instance_ctx_get(void) { return &contexts[atomic_load(&context_now)]; }

int aclshmemx_instance_ctx_set(uint64_t instance_id) {
  pthread_mutex_lock(&lock);
  face *f = find_locked(instance_id);
  if (f) make_current_locked(f);
  pthread_mutex_unlock(&lock);
  if (f) return ACLSHMEM_SUCCESS;
  return face_refuse(ACLSHMEM_INNER_ERROR, "instance_ctx_set: there is no instance %llu; the current one stays", (unsigned long long)instance_id);
}
