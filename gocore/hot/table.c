/*
 * table.c - the tables of this process: worlds, teams, the threads that are inside of them.
 *
 * Slots are type-stable (hot.h): a struct is made once per slot and reused, so that a late caller with an old handle reads a
 * handle that differs, never freed memory. What a world's struct points to is freed after hot_world_drain, when no thread
 * is inside any more.
 */
#define _GNU_SOURCE
#include "hot_inline.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(hot_header) == 512, "layout.HeaderSize");
_Static_assert(sizeof(hot_arrival) == HOT_LINE, "an arrival is one line");
_Static_assert(sizeof(hot_progress) == HOT_LINE && sizeof(hot_poison) == HOT_LINE, "one line each");
_Static_assert(sizeof(hot_said) <= HOT_LINE && offsetof(hot_said, number) == 32, "layout.SaidNumber");
_Static_assert(sizeof(hot_caster) == HOT_LINE && offsetof(hot_caster, said) == 8, "layout.CasterSaid");
_Static_assert(sizeof(hot_letter) == HOT_LINE && HOT_CASTS == 64, "layout.Casts");
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), "hot.h and gshmem.h share this number")
SAME(HOT_OK, GSHMEM_OK);
SAME(HOT_PENDING, GSHMEM_PENDING);
SAME(HOT_A_XOR, GSHMEM_A_XOR);
SAME(HOT_A_SET, GSHMEM_A_SET);
SAME(HOT_CMP_LE, GSHMEM_CMP_LE);
SAME(HOT_T_F8E5M2FNUZ, GSHMEM_F8E5M2FNUZ);
SAME(HOT_R_PREMUL, GSHMEM_PREMUL);
SAME(HOT_OP_ALL_TO_ALL_V, GSHMEM_ALL_TO_ALL_V);
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "shared words are plain words");

_Atomic(hot_world *) hot_worlds[HOT_MAX_WORLDS];
_Atomic(hot_team *) hot_teams[HOT_MAX_TEAMS];
_Atomic int hot_forked;
int hot_fence_needed;
_Thread_local hot_thread *hot_tls;

/* Guards the pools below; never held while waiting. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static hot_world *world_pool[HOT_MAX_WORLDS];
static hot_team *team_pool[HOT_MAX_TEAMS];
static uint8_t world_taken[HOT_MAX_WORLDS], team_taken[HOT_MAX_TEAMS];

/* ---- threads --------------------------------------------------------------------------------------------------- */

static _Atomic(hot_thread *) threads;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static int thread_key_made;

/* A thread ends: its word may serve another one. Destructors that run after this one may call us: they get a new word. */
static void thread_ended(void *p) {
  hot_thread *t = p;
  hot_tls = NULL;
  atomic_store_explicit(&t->in, NULL, memory_order_release);
  atomic_store_explicit(&t->used, 0, memory_order_release); /* partner: the compare-exchange in thread_reuse */
}

static void thread_key_make(void) { thread_key_made = pthread_key_create(&thread_key, thread_ended) == 0; }

static hot_thread *thread_reuse(void) {
  hot_thread *t = atomic_load_explicit(&threads, memory_order_acquire);
  for (; t; t = t->next) {
    uint32_t unused = 0;
    if (atomic_compare_exchange_strong(&t->used, &unused, 1)) return t;
  }
  return NULL;
}

hot_thread *hot_thread_self(void) {
  if (hot_tls) return hot_tls;
  pthread_once(&thread_once, thread_key_make);
  hot_thread *t = thread_reuse();
  if (!t) {
    t = aligned_alloc(HOT_LINE, sizeof *t);
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    atomic_store_explicit(&t->used, 1, memory_order_relaxed);
    t->next = atomic_load_explicit(&threads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&threads, &t->next, t, memory_order_release, memory_order_relaxed)) {
    }
  }
  if (thread_key_made) pthread_setspecific(thread_key, t);
  return hot_tls = t;
}

static int membarrier(int command) { return (int)syscall(__NR_membarrier, command, 0, 0); }

/* Before the first handle exists: from then on every announcement may rely on the closer's membarrier. */
static void membarrier_register(void) {
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0) hot_fence_needed = 1;
}

static int inside(const hot_world *w) {
  for (hot_thread *t = atomic_load_explicit(&threads, memory_order_acquire); t; t = t->next)
    if (t != hot_tls && atomic_load_explicit(&t->in, memory_order_acquire) == w) return 1;
  return 0;
}

int32_t hot_world_drain(hot_world *w, int64_t timeout_ns) {
  /* Orders every announcement made before against our look at it, and our handle = 0 against every later one's look at
     the handle. Partner: hot_announce. */
  atomic_thread_fence(memory_order_seq_cst);
  if (!hot_fence_needed) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  int64_t end = timeout_ns < 0 ? INT64_MAX : hot_now() + timeout_ns;
  for (int turn = 0; inside(w); turn++) {
    if (hot_now() >= end) return HOT_PENDING;
    if (turn < 50) {
      sched_yield();
    } else {
      struct timespec nap = {0, 100000};
      nanosleep(&nap, NULL);
    }
  }
  return HOT_OK;
}

/* ---- worlds ------------------------------------------------------------------------------------------------------ */

static void world_release_arrays(hot_world *w) {
  for (int i = 0; i < HOT_MAX_SEG; i++) free(w->seg[i].base);
  free(w->whole);
  free((void *)w->dead);
  memset(w->seg, 0, sizeof w->seg);
  w->whole = NULL;
  w->dead = NULL;
}

static int world_make_arrays(hot_world *w, int32_t n) {
  int ok = 1;
  for (int i = 0; i < HOT_MAX_SEG; i++) ok &= (w->seg[i].base = calloc((size_t)n, sizeof(uint8_t *))) != NULL;
  ok &= (w->whole = calloc((size_t)n, sizeof(uint8_t *))) != NULL;
  ok &= (w->dead = calloc((size_t)n, sizeof(*w->dead))) != NULL;
  return ok;
}

/* A slot with its struct, marked taken; 0 when there is none. */
static uint32_t slot_take(uint8_t *taken, void **pool, uint32_t limit, size_t bytes) {
  uint32_t slot = 1;
  pthread_mutex_lock(&pool_lock);
  while (slot < limit && taken[slot]) slot++;
  if (slot < limit && !pool[slot] && (pool[slot] = aligned_alloc(HOT_LINE, (bytes + HOT_LINE - 1) / HOT_LINE * HOT_LINE)))
    memset(pool[slot], 0, bytes);
  if (slot == limit || !pool[slot])
    slot = 0;
  else
    taken[slot] = 1;
  pthread_mutex_unlock(&pool_lock);
  return slot;
}

static void slot_give(uint8_t *taken, uint32_t slot) {
  pthread_mutex_lock(&pool_lock);
  taken[slot] = 0;
  pthread_mutex_unlock(&pool_lock);
}

/* Bytes of the last-level cache the first core shares. sysconf is no help: it may give the sum over a whole server. */
static uint64_t cache_bytes(void) {
  static const char *const files[] = {"/sys/devices/system/cpu/cpu0/cache/index3/size", "/sys/devices/system/cpu/cpu0/cache/index2/size"};
  for (int i = 0; i < 2; i++) {
    FILE *f = fopen(files[i], "re");
    if (!f) continue;
    unsigned long kib = 0;
    int found = fscanf(f, "%luK", &kib);
    fclose(f);
    if (found == 1 && kib) return (uint64_t)kib << 10;
  }
  return HOT_CACHE_BYTES;
}

hot_world *hot_world_new(int32_t me, int32_t n, uint64_t id) {
  if (n < 1 || me < 0 || me >= n) return NULL;
  uint32_t slot = slot_take(world_taken, (void **)world_pool, HOT_MAX_WORLDS, sizeof(hot_world));
  if (!slot) return NULL;
  hot_world *w = world_pool[slot];
  w->slot = slot;
  w->me = me;
  w->n = n;
  w->nseg = 0;
  w->crowded = 0;
  w->direct = 0;
  w->device_low = 0;
  w->device_span = 0;
  w->cache = cache_bytes();
  atomic_store(&w->spin, HOT_SPIN_TURNS);
  w->self = NULL;
  w->id = id;
  atomic_store(&w->alarm, 0);
  if (!world_make_arrays(w, n)) {
    hot_world_free(w);
    return NULL;
  }
  w->seg[0].low = UINTPTR_MAX; /* an empty heap holds no address */
  return w;
}

int32_t hot_world_segment(hot_world *w, void *low, uint64_t length, uint64_t off, uint32_t id, uint32_t kind) {
  if (kind == HOT_KIND_DEVICE && w->nseg == 0) w->nseg = 1; /* seg[0] is dereferenced without a look at its kind */
  if (w->nseg >= HOT_MAX_SEG) return -1;
  hot_seg *s = &w->seg[w->nseg];
  s->low = (uintptr_t)low;
  s->length = length;
  s->off = off;
  s->id = id;
  s->kind = kind;
  return (int32_t)w->nseg++;
}

int32_t hot_world_device(hot_world *w, uintptr_t low, uint64_t length, uintptr_t window_low, uint64_t window_span) {
  if (w->nseg >= HOT_MAX_SEG) return -1;
  hot_seg *s = &w->seg[w->nseg];
  s->low = low;
  s->length = length;
  s->off = 0;
  s->id = HOT_DEVICE_SEG;
  s->kind = HOT_KIND_DEVICE;
  __atomic_store_n(&w->device_low, window_low, __ATOMIC_RELAXED);
  __atomic_store_n(&w->device_span, window_span, __ATOMIC_RELEASE);
  __atomic_store_n(&w->nseg, w->nseg + 1, __ATOMIC_RELEASE); /* partner: hot_segments; the range is whole before it counts */
  return (int32_t)w->nseg - 1;
}

void hot_world_direct(hot_world *w, int32_t direct) { __atomic_store_n(&w->direct, direct, __ATOMIC_RELAXED); }

void hot_world_base(hot_world *w, uint32_t index, int32_t pe, void *base) {
  __atomic_store_n(&w->seg[index].base[pe], (uint8_t *)base, __ATOMIC_RELAXED);
}

void hot_world_whole(hot_world *w, int32_t pe, void *first) {
  __atomic_store_n(&w->whole[pe], (uint8_t *)first, __ATOMIC_RELAXED);
  if (pe == w->me) w->self = first;
}

uint64_t hot_world_publish(hot_world *w) {
  pthread_mutex_lock(&pool_lock);
  static int registered;
  if (!registered) {
    registered = 1;
    membarrier_register();
  }
  pthread_mutex_unlock(&pool_lock);
  if (w->crowded) atomic_store(&w->spin, 0);
  w->generation = (w->generation + 1) & 0x0fffffffu;
  uint64_t handle = (uint64_t)(w->generation | HOT_GEN_WORLD) << 32 | w->slot;
  atomic_store_explicit(&w->known, handle, memory_order_release);  /* partner: hot_enter_known */
  atomic_store_explicit(&w->handle, handle, memory_order_release); /* partner: hot_enter */
  atomic_store_explicit(&hot_worlds[w->slot], w, memory_order_release);
  return handle;
}

void hot_world_refuse(hot_world *w) {
  atomic_store_explicit(&w->handle, 0, memory_order_release);
  hot_world_raise(w);
}

void hot_world_close(hot_world *w) {
  atomic_store_explicit(&w->known, 0, memory_order_release);
  hot_world_refuse(w);
}

void hot_world_free(hot_world *w) {
  atomic_store_explicit(&w->known, 0, memory_order_release);
  atomic_store_explicit(&w->handle, 0, memory_order_release);
  world_release_arrays(w);
  slot_give(world_taken, w->slot);
}

void hot_world_raise(hot_world *w) {
  atomic_fetch_add_explicit(&w->alarm, 1, memory_order_release); /* partner: hot_wait_turn */
  if (w->self) hot_ring(w->self);
}

void hot_world_raise_pe(hot_world *w, int32_t pe) {
  hot_header *h = (hot_header *)(void *)__atomic_load_n(&w->whole[pe], __ATOMIC_RELAXED);
  if (h) hot_raise(h);
}

void hot_world_ring_pe(hot_world *w, int32_t pe) { hot_ring_pe(w, pe); }

int hot_world_is_dead(hot_world *w, int32_t pe) {
  return atomic_load_explicit(&w->dead[pe], memory_order_acquire) != 0; /* partner: hot_world_mark_dead */
}

void hot_set_forked(int forked) { atomic_store(&hot_forked, forked); }

void hot_world_mark_dead(hot_world *w, int32_t pe) {
  if (pe < 0 || pe >= w->n) return;
  atomic_store_explicit(&w->dead[pe], 1, memory_order_release);
  for (uint32_t i = 0; i < w->nseg; i++) hot_world_base(w, i, pe, NULL);
  hot_world_raise(w);
}

/* ---- teams -------------------------------------------------------------------------------------------------------- */

static void team_release_arrays(hot_team *t) {
  free(t->pe);
  free(t->ctl);
  free(t->ctl_off);
  t->pe = NULL;
  t->ctl = NULL;
  t->ctl_off = NULL;
}

/* Everything but handle, busy, slot and generation, which late callers and the next owner rely on. */
static void team_reset(hot_team *t, hot_world *w, int32_t me, int32_t n) {
  __atomic_store_n(&t->world, w, __ATOMIC_RELAXED);
  t->me = me;
  t->n = n;
  t->mapped = 0;
  atomic_store(&t->queued, 0);
  atomic_store(&t->poison, 0);
  t->seq = t->history = t->alarms = 0;
  t->casts = t->room = 0;
  t->timeout_ns = -1;
  t->slab = NULL;
  t->slab_off = t->slab_half = 0;
  t->stage = NULL;
  t->stage_off = t->stage_cap = 0;
  memset(t->plans, 0, sizeof t->plans);
}

hot_team *hot_team_new(hot_world *w, int32_t me, int32_t n) {
  if (n < 1 || me < 0 || me >= n) return NULL;
  uint32_t slot = slot_take(team_taken, (void **)team_pool, HOT_MAX_TEAMS, sizeof(hot_team));
  if (!slot) return NULL;
  hot_team *t = team_pool[slot];
  t->slot = slot;
  atomic_store(&t->busy, 1);
  team_reset(t, w, me, n);
  t->pe = calloc((size_t)n, sizeof *t->pe);
  t->ctl = calloc((size_t)n, sizeof *t->ctl);
  t->ctl_off = calloc((size_t)n, sizeof *t->ctl_off);
  if (!t->pe || !t->ctl || !t->ctl_off) {
    hot_team_free(t);
    return NULL;
  }
  return t;
}

uint64_t hot_team_publish(hot_team *t) {
  t->generation = (t->generation + 1) & 0x0fffffffu;
  uint64_t handle = (uint64_t)(t->generation | HOT_GEN_TEAM) << 32 | t->slot;
  atomic_store_explicit(&t->handle, handle, memory_order_release);
  atomic_store_explicit(&hot_teams[t->slot], t, memory_order_release); /* partner: hot_enter_team */
  atomic_store_explicit(&t->busy, 0, memory_order_release);            /* partner: the exchange of the first operation */
  return handle;
}

void hot_team_close(hot_team *t) { atomic_store_explicit(&t->handle, 0, memory_order_release); }

void hot_team_free(hot_team *t) {
  atomic_store_explicit(&t->handle, 0, memory_order_release);
  team_release_arrays(t);
  slot_give(team_taken, t->slot);
}
