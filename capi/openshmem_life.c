/*
 * openshmem_life.c - init and finalize, the end of a job, and what can be asked about it.
 *
 *   down --init--> up --finalize (as often as init)--> down
 *
 * A watcher thread looks ten times a second whether a peer has ended the job (shmem_global_exit), so that a PE which computes
 * without calling anything ends too.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "openshmem.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

osh_state osh;
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static pthread_t watcher;
static _Atomic int watching;
static pthread_once_t at_exit = PTHREAD_ONCE_INIT;

/* ---- words ---- */

static void print(const char *op, const char *words, va_list args) {
  char text[ERRTEXT_MAX];
  vsnprintf(text, sizeof text, words, args);
  size_t length = strlen(op);
  int named = !strncmp(text, op, length) && text[length] == ':'; /* words of the core name the operation themselves */
  const char *name = named ? "" : op, *colon = named ? "" : ": ";
  if (osh.world) fprintf(stderr, "shmem: PE %d of %d: %s%s%s\n", osh.me, osh.n, name, colon, text);
  else fprintf(stderr, "shmem: %s%s%s\n", name, colon, text);
}

void osh_say(const char *op, const char *words, ...) {
  va_list args;
  va_start(args, words);
  print(op, words, args);
  va_end(args);
}

static _Noreturn void end_job(int code) {
  uint64_t world = osh.world;
  osh.world = 0;
  if (world) gshmem_abort(world, code);
  fflush(NULL);
  _exit(code & 0xff ? code & 0xff : 1);
}

void osh_die(const char *op, const char *words, ...) {
  va_list args;
  va_start(args, words);
  print(op, words, args);
  va_end(args);
  end_job(1);
}

/* The code a peer ended the job with, 0 when none did; *by is that peer. */
static int aborted(int *by) {
  hot_world *w;
  hot_thread *self;
  int code = 0;
  if (hot_enter_known(osh.world, &w, &self) != HOT_OK) return 0;
  if (w->self) {
    code = atomic_load_explicit(&w->self->abort_code, memory_order_acquire); /* partner: the aborter's store */
    *by = atomic_load_explicit(&w->self->abort_by, memory_order_relaxed) - 1;
  }
  hot_leave(self);
  return code;
}

#define EXIT_ZERO (1 << 30) /* a code must not be 0: this stands for it */

static int exit_status(int code) { return code == EXIT_ZERO ? 0 : code & 0xff ? code & 0xff : 1; }

void osh_fail(const char *op, int32_t status) {
  int by = -1, code = status == GSHMEM_EABORTED ? aborted(&by) : 0;
  if (code && by != osh.me) { /* the peer has told why */
    osh.world = 0;
    fflush(NULL);
    _exit(exit_status(code));
  }
  const char *words = gshmem_last_error(), *hint = status == GSHMEM_ENOTSYM && osh.world ? osh_data_obstacle() : NULL;
  if (!*words) words = gshmem_status_name(status);
  if (hint) osh_die(op, "%s (variables of the program are not symmetric here: %s)", words, hint);
  osh_die(op, "%s", words);
}

int osh_refuse(const char *op, int32_t status) {
  if (status == GSHMEM_EABORTED) osh_fail(op, status);
  osh_say(op, "%s", gshmem_last_error());
  return status;
}

/* ---- the watcher ---- */

static void *watch(void *unused) {
  const struct timespec tick = {0, 100 * 1000 * 1000};
  int by = -1;
  while (atomic_load(&watching)) {
    nanosleep(&tick, NULL);
    int code = aborted(&by);
    if (!code || by == osh.me) continue;
    nanosleep(&tick, NULL); /* a blocked call notices by itself and may say more */
    if (!atomic_load(&watching)) break;
    fflush(stdout);
    _exit(exit_status(code));
  }
  return unused;
}

static void watcher_start(void) {
  atomic_store(&watching, 1);
  if (pthread_create(&watcher, NULL, watch, NULL)) atomic_store(&watching, 0); /* then a computing PE ends at its next call */
}

static void watcher_stop(void) {
  if (atomic_exchange(&watching, 0)) pthread_join(watcher, NULL);
}

/* ---- init ---- */

/* A PE that leaves main without finalize: as if it had called it, unless it failed; then the peers must not wait for it. */
static void leaving(int status, void *unused) {
  (void)unused;
  if (!osh.world || atomic_load_explicit(&hot_forked, memory_order_relaxed)) return;
  if (status) {
    uint64_t world = osh.world;
    osh.world = 0;
    atomic_store(&watching, 0);
    gshmem_abort(world, status & 0xff);
    return;
  }
  osh.users = 1;
  shmem_finalize();
}

static void register_leaving(void) { on_exit(leaving, NULL); }

static void greet(void) {
  if (osh.me != 0) return;
  if (getenv("SHMEM_VERSION")) printf("OpenSHMEM %d.%d, %s %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING, gshmem_version());
  if (getenv("SHMEM_INFO"))
    printf("OpenSHMEM environment: SHMEM_SYMMETRIC_SIZE (now %llu bytes), SHMEM_VERSION, SHMEM_INFO, SHMEM_DEBUG, SHMEM_STATIC_DATA=0 (variables "
           "are not symmetric); shmem-config --diagnose shows every setting\n",
           (unsigned long long)osh.heap_bytes);
  if (getenv("SHMEM_DEBUG") && osh_data_obstacle()) printf("shmem: variables are not symmetric: %s\n", osh_data_obstacle());
  fflush(stdout);
}

/* The one world that is up in this process, 0 when there is none. Several: words, since there is no telling which is meant. */
static uint64_t world_that_is_up(void) {
  uint64_t found = 0;
  for (uint32_t i = 0; i < HOT_MAX_WORLDS; i++) {
    hot_world *w = atomic_load_explicit(&hot_worlds[i], memory_order_acquire); /* partner: hot_world_publish */
    uint64_t handle = w ? atomic_load_explicit(&w->handle, memory_order_acquire) : 0;
    if (handle && found) osh_die("init", "several worlds are up in this process; finalize all but one before shmem_init");
    if (handle) found = handle;
  }
  return found;
}

/* A world that is up gets a team of our own over all its PEs, which the other users of the world know nothing of. */
static void join(uint64_t world) {
  osh.world = world;
  osh.joined = 1;
  int32_t size = gshmem_n_pes(world), *pe = malloc(sizeof *pe * (size_t)(size > 0 ? size : 1));
  if (!pe) osh_die("init", "no memory for the table of %d PEs", size);
  for (int32_t i = 0; i < size; i++) pe[i] = i;
  osh_check("init", gshmem_team_create(world, pe, size, 0x501b000000000000ull ^ osh.round, GSHMEM_DEFAULT_TIMEOUT, &osh.team));
  free(pe);
}

static void come_up(void) {
  gshmem_options options = {.size = sizeof options, .me = -1, .n = -1};
  gshmem_heap_stat heap = {.size = sizeof heap};
  uint64_t up = world_that_is_up();
  static uint64_t rounds; /* guarded by life */
  osh.round = ++rounds;
  if (up) join(up);
  else osh_check("init", gshmem_init(&options, &osh.world, &osh.team));
  osh.me = gshmem_my_pe(osh.world);
  osh.n = gshmem_n_pes(osh.world);
  osh_check("init", gshmem_heap_stats(osh.world, &heap));
  osh.heap_low = (uintptr_t)heap.low;
  osh.heap_bytes = heap.bytes;
  osh_data_open();
  osh_teams_open();
  pthread_once(&at_exit, register_leaving);
  watcher_start();
  greet();
  osh_check("init", gshmem_barrier(osh.team));
}

int shmem_init_thread(int requested, int *provided) {
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
    osh_say("init_thread", "requested is %d; use SHMEM_THREAD_SINGLE, FUNNELED, SERIALIZED or MULTIPLE", requested);
    return GSHMEM_EINVAL;
  }
  pthread_mutex_lock(&life);
  if (!osh.users++) {
    come_up();
    osh.level = requested;
  }
  if (provided) *provided = osh.level;
  pthread_mutex_unlock(&life);
  return 0;
}

void shmem_init(void) { shmem_init_thread(SHMEM_THREAD_SINGLE, NULL); }

void shmem_query_thread(int *provided) { *provided = osh.level; }

/* ---- the end ---- */

void shmem_finalize(void) {
  pthread_mutex_lock(&life);
  if (!osh.users || --osh.users) {
    pthread_mutex_unlock(&life);
    return;
  }
  shmem_quiet();
  osh_check("finalize", gshmem_barrier(osh.team)); /* nobody's data go away while a peer may still write them */
  watcher_stop();
  osh_data_close();
  osh_memory_close();
  osh_sets_close();
  osh_teams_close();
  int32_t rc = osh.joined ? gshmem_team_destroy(osh.team) : gshmem_finalize(osh.world, -1);
  if (rc) osh_say("finalize", "%s", gshmem_last_error());
  osh = (osh_state){0};
  pthread_mutex_unlock(&life);
}

void shmem_global_exit(int status) {
  uint64_t world = osh.world;
  osh.world = 0; /* no finalize on the way out */
  atomic_store(&watching, 0);
  if (world) gshmem_abort(world, status & 0xff ? status & 0xff : EXIT_ZERO);
  exit(status);
}

/* ---- asking ---- */

int shmem_my_pe(void) { return osh.me; }
int shmem_n_pes(void) { return osh.n; }
int shmem_pe_accessible(int pe) { return pe >= 0 && pe < osh.n; }

int shmem_addr_accessible(const void *addr, int pe) {
  uintptr_t off = (uintptr_t)osh_twin(addr) - osh.heap_low;
  return shmem_pe_accessible(pe) && off < osh.heap_bytes;
}

void *shmem_ptr(const void *dest, int pe) {
  hot_world *w;
  hot_thread *self;
  if (hot_enter(osh.world, &w, &self) != HOT_OK) return NULL;
  int32_t rc = HOT_OK;
  void *there = hot_find(w, osh_twin(dest), 1, pe, &rc);
  hot_leave(self);
  return there;
}

void shmem_info_get_version(int *major, int *minor) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}

void shmem_info_get_name(char *name) { strcpy(name, SHMEM_VENDOR_STRING); }

/* For profilers that interpose it; without one there is nothing to control. */
void shmem_pcontrol(const int level, ...) { (void)level; }

void shmem_ctx_c11_generic_selection_failed(void) { osh_die("generic", "a C11 generic was called with a type that has no such operation"); }

void shmem_barrier_all(void) { osh_check("barrier_all", gshmem_barrier(osh.team)); }
void shmem_sync_all(void) { osh_check("sync_all", gshmem_sync(osh.team)); }

/* Memory is coherent on every platform here. */
void shmem_clear_cache_inv(void) {}
void shmem_set_cache_inv(void) {}
void shmem_clear_cache_line_inv(void *dest) { (void)dest; }
void shmem_set_cache_line_inv(void *dest) { (void)dest; }
void shmem_udcflush(void) {}
void shmem_udcflush_line(void *dest) { (void)dest; }
