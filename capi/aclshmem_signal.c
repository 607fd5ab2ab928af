/*
 * aclshmem_signal.c - puts with a signal, signals, quiet and barriers of the Ascend face.
 *
 * Ascend's signal is a word of four bytes, so the core's eight-byte put_signal does not serve: it is a put, a fence where the
 * peer is not mapped, and an atomic update, whose release makes the data visible before it (partner: the waiter's acquire).
 */
#include "aclshmem_face.h"

static int32_t check_op(int op) {
  if (op == ACLSHMEM_SIGNAL_SET || op == ACLSHMEM_SIGNAL_ADD) return GSHMEM_OK;
  return errtext_fail(GSHMEM_EINVAL, "the signal operation is neither ACLSHMEM_SIGNAL_SET nor ACLSHMEM_SIGNAL_ADD");
}

int32_t face_signal(face *f, void *sig, int32_t value, int op, int pe) {
  int32_t rc = check_op(op);
  if (rc) return rc;
  return gshmem_atomic(face_world_of(f, sig), op == ACLSHMEM_SIGNAL_SET ? GSHMEM_A_SET : GSHMEM_A_ADD, 4, sig, (uint32_t)value, 0, pe, NULL);
}

/* Both places are checked before anything moves. HOT_SLOW or an error: nothing has moved. */
static int32_t put_signal_here(uint64_t world, void *dst, const void *src, uint64_t bytes, void *sig, int32_t value, int op, int pe) {
  hot_world *w;
  hot_thread *self;
  int32_t rc = hot_enter(world, &w, &self);
  if (HOT_UNLIKELY(rc)) return rc;
  uint8_t *to = hot_find(w, dst, bytes, pe, &rc);
  uint8_t *word = rc ? NULL : hot_find(w, sig, 4, pe, &rc);
  if (!rc && (uintptr_t)word & 3) rc = GSHMEM_EALIGN;
  if (HOT_LIKELY(!rc)) {
    if (bytes) hot_move(to, src, bytes);
    rc = hot_atomic_inline(w, op == ACLSHMEM_SIGNAL_SET ? HOT_A_SET : HOT_A_ADD, 4, sig, (uint32_t)value, 0, pe, NULL);
  }
  hot_leave(self);
  return rc;
}

/* Refuses a signal word that is no good before the data move, in the core's words. */
static int32_t check_signal(face *f, void *sig, int pe) {
  uint64_t world = face_world_of(f, sig);
  if ((uintptr_t)sig & 3) return errtext_fail(GSHMEM_EALIGN, "the signal's address is not a multiple of 4");
  uint64_t unused;
  return gshmem_g(world, sig, 4, pe, &unused);
}

static int32_t put_signal_apart(face *f, void *dst, const void *src, uint64_t bytes, void *sig, int32_t value, int op, int pe, int complete) {
  int32_t rc = check_signal(f, sig, pe);
  if (!rc) rc = face_put(f, dst, src, bytes, pe, 0);
  uint64_t from = face_world_of(f, dst), to = face_world_of(f, sig);
  if (!rc) rc = from == to ? gshmem_fence(from) : gshmem_quiet(from, f->wait_ns);
  if (!rc) rc = face_signal(f, sig, value, op, pe);
  return rc || !complete ? rc : gshmem_quiet(to, f->wait_ns);
}

static __attribute__((noinline)) void put_signal(void *dst, const void *src, uint64_t bytes, void *sig, int32_t value, int op, int pe, int complete) {
  face *f = face_now();
  uint32_t odd = atomic_load_explicit(&f->odd, memory_order_acquire);
  int32_t rc = check_op(op);
  if (HOT_UNLIKELY(rc)) {
    face_failed("put_signal", rc);
    return;
  }
  if (HOT_LIKELY(!odd) && HOT_LIKELY(!put_signal_here(face_world(f), dst, src, bytes, sig, value, op, pe))) return;
  face_drain(f);
  int64_t began = odd & ODD_PROF ? hot_now() : 0;
  if (face_on_device(f, sig)) {
    rc = gshmem_put_signal_on_stream(face_world(f), dst, src, bytes, sig, value, op, pe, NULL);
    if (!rc && complete) rc = gshmem_quiet(face_world(f), f->wait_ns);
  } else {
    rc = put_signal_apart(f, dst, src, bytes, sig, value, op, pe, complete);
  }
  if (began) face_prof_add(PROF_PUT_SIGNAL, began);
  if (rc) face_failed("put_signal", rc);
}

static inline uint64_t bytes_of(uint64_t n, uint64_t size) { return HOT_UNLIKELY(n > UINT64_MAX / size) ? UINT64_MAX : n * size; }

void aclshmemx_putmem_signal(void *d, void *s, size_t n, void *sig, int32_t v, int op, int pe) { put_signal(d, s, n, sig, v, op, pe, 1); }
void aclshmemx_putmem_signal_nbi(void *d, void *s, size_t n, void *sig, int32_t v, int op, int pe) { put_signal(d, s, n, sig, v, op, pe, 0); }

#define TYPED(NAME, TYPE)                                                                                                  \
  void aclshmem_##NAME##_put_signal(TYPE *d, TYPE *s, size_t n, uint8_t *sig, int32_t v, int op, int pe) {                 \
    put_signal(d, s, bytes_of(n, sizeof(TYPE)), sig, v, op, pe, 1);                                                        \
  }                                                                                                                        \
  void aclshmem_##NAME##_put_signal_nbi(TYPE *d, TYPE *s, size_t n, uint8_t *sig, int32_t v, int op, int pe) {             \
    put_signal(d, s, bytes_of(n, sizeof(TYPE)), sig, v, op, pe, 0);                                                        \
  }                                                                                                                        \
  struct aclshmem_##NAME##_done
ACLSHMEM_TYPE_FUNC(TYPED);

#define SIZED(BITS)                                                                                                        \
  void aclshmem_put##BITS##_signal(void *d, void *s, size_t n, int32_t *sig, int32_t v, int op, int pe) {                  \
    put_signal(d, s, bytes_of(n, BITS / 8), sig, v, op, pe, 1);                                                            \
  }                                                                                                                        \
  void aclshmem_put##BITS##_signal_nbi(void *d, void *s, size_t n, int32_t *sig, int32_t v, int op, int pe) {              \
    put_signal(d, s, bytes_of(n, BITS / 8), sig, v, op, pe, 0);                                                            \
  }                                                                                                                        \
  struct aclshmem_##BITS##_done
ACLSHMEM_SIZE_FUNC(SIZED);

/* ---- on streams ---- */
static int32_t run_signal(face_task *t) {
  int64_t began = atomic_load(&t->f->odd) & ODD_PROF ? hot_now() : 0;
  int32_t rc = face_signal(t->f, t->dst, (int32_t)t->a, t->b, t->pe);
  if (began) face_prof_add(PROF_SIGNAL, began);
  return rc;
}
static int32_t run_wait(face_task *t) { return face_wait_int32(t->f, t->dst, t->b, (int32_t)t->a); }
static int32_t run_quiet(face_task *t) { return face_quiet(t->f); }
static int32_t run_barrier(face_task *t) { return face_barrier(t->f, t->n); }

void aclshmemx_signal_op_on_stream(int32_t *sig, int32_t value, int op, int pe, aclrtStream stream) {
  face *f = face_now();
  if (face_device_stream(f, stream))
    face_told("signal_op_on_stream", gshmem_signal_on_stream(face_world(f), sig, value, op, pe, stream));
  else
    face_queue(stream, &(face_task){.run = run_signal, .what = "signal_op_on_stream", .f = f, .world = face_world(f), .dst = sig, .a = value, .b = op, .pe = pe});
}

void aclshmemx_signal_wait_until_on_stream(int32_t *sig, int cmp, int32_t value, aclrtStream stream) {
  face *f = face_now();
  if (face_device_stream(f, stream))
    face_told("signal_wait_until_on_stream", gshmem_signal_wait_on_stream(face_world(f), sig, cmp, value, stream));
  else
    face_queue(stream, &(face_task){.run = run_wait, .what = "signal_wait_until_on_stream", .f = f, .world = face_world(f), .dst = sig, .a = value, .b = cmp});
}

/* ---- completion ---- */
int32_t face_quiet(face *f) {
  uint64_t host = atomic_load(&f->host_world);
  int64_t began = atomic_load(&f->odd) & ODD_PROF ? hot_now() : 0;
  int32_t rc = gshmem_quiet(face_world(f), f->wait_ns);
  if (!rc && host) rc = gshmem_quiet(host, f->wait_ns);
  if (began) face_prof_add(PROF_QUIET, began);
  return rc;
}

void aclshmemx_quiet_on_stream(aclrtStream stream) {
  face *f = face_now();
  if (face_device_stream(f, stream))
    face_told("quiet_on_stream", gshmem_quiet_on_stream(face_world(f), stream));
  else
    face_queue(stream, &(face_task){.run = run_quiet, .what = "quiet_on_stream", .f = f, .world = face_world(f)});
}

static uint64_t team_handle(face *f, aclshmem_team_t team) {
  if (team < 0 || team >= ACLSHMEM_MAX_TEAMS) return 0;
  return atomic_load_explicit(&f->team[team], memory_order_acquire);
}

/* A quiet covers every target, so it covers the team's members; it is local, as nothing here makes others wait. */
void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream) {
  face *f = face_now();
  if (handle.team_id != ACLSHMEM_TEAM_INVALID && !team_handle(f, handle.team_id)) {
    face_refuse(ACLSHMEM_INVALID_PARAM, "handle_wait: team %d does not exist", handle.team_id);
    return;
  }
  if (face_device_stream(f, stream))
    face_told("handle_wait", gshmem_quiet_on_stream(face_world(f), stream));
  else
    face_queue(stream, &(face_task){.run = run_quiet, .what = "handle_wait", .f = f, .world = face_world(f)});
}

/* ---- barriers ---- */
int32_t face_barrier(face *f, uint64_t team) {
  int64_t began = atomic_load(&f->odd) & ODD_PROF ? hot_now() : 0;
  uint64_t host = atomic_load(&f->host_world);
  int32_t rc = host ? gshmem_quiet(host, f->wait_ns) : GSHMEM_OK;
  if (!rc) rc = gshmem_barrier(team);
  if (began) face_prof_add(PROF_BARRIER, began);
  return rc;
}

static void meet(aclshmem_team_t team, int barrier) {
  face *f = face_now();
  uint32_t odd = atomic_load_explicit(&f->odd, memory_order_acquire);
  if (HOT_UNLIKELY(odd)) face_drain(f);
  if (team == ACLSHMEM_TEAM_INVALID) return;
  uint64_t handle = team_handle(f, team);
  if (HOT_UNLIKELY(!handle && face_world(f))) {
    face_refuse(ACLSHMEM_INVALID_PARAM, "%s: team %d does not exist", barrier ? "barrier" : "sync", team);
    return;
  }
  int64_t began = odd & ODD_PROF && !barrier ? hot_now() : 0;
  int32_t rc = barrier ? face_barrier(f, handle) : gshmem_sync(handle);
  if (began) face_prof_add(PROF_SYNC, began);
  if (rc) face_failed(barrier ? "barrier" : "sync", rc);
}

void aclshmem_barrier(aclshmem_team_t team) { meet(team, 1); }
void aclshmem_barrier_all(void) { meet(ACLSHMEM_TEAM_WORLD, 1); }
void aclshmem_sync(aclshmem_team_t team) { meet(team, 0); }
void aclshmem_sync_all(void) { meet(ACLSHMEM_TEAM_WORLD, 0); }

void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream) {
  face *f = face_now();
  if (team == ACLSHMEM_TEAM_INVALID) return;
  uint64_t handle = team_handle(f, team);
  if (!handle && face_world(f)) {
    face_refuse(ACLSHMEM_INVALID_PARAM, "barrier_on_stream: team %d does not exist", team);
    return;
  }
  if (face_device_stream(f, stream))
    face_told("barrier_on_stream", gshmem_barrier_on_stream(handle, stream));
  else
    face_queue(stream, &(face_task){.run = run_barrier, .what = "barrier_on_stream", .f = f, .world = face_world(f), .n = handle});
}

void aclshmemx_barrier_all_on_stream(aclrtStream stream) { aclshmemx_barrier_on_stream(ACLSHMEM_TEAM_WORLD, stream); }

uint64_t util_get_ffts_config(void) { return 0; } /* hosts have no such synchronisation unit */
