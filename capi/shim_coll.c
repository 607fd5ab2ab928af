/*
 * shim_coll.c - collectives: the public names over the C executor.
 *
 * A synchronous call on a team that is wholly mapped and has nothing queued runs here. What does not finish within the
 * slice, or needs a schedule, is handed to Go as a begun collective; what is not for C at all starts in Go.
 */
#include "internal.h"

#include "../gocore/hot/exec.h"
#include "../gocore/hot/hot_inline.h"
#include "_cgo_export.h"

#include <stdlib.h>

/* Waits for an adopted collective; what has ended is released. */
static int32_t go_on(uint64_t request, int64_t slice_ns, uint64_t *request_out) {
  int32_t rc = goshmem_request_wait(request, slice_ns);
  if (rc == GSHMEM_PENDING) return rc;
  goshmem_request_release(request);
  *request_out = 0;
  return rc;
}

/* HOT_SLOW: Go starts it. Everything else is final for this call. */
static int32_t try_here(uint64_t team, const hot_call *call, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  hot_team *t;
  hot_thread *self;
  int32_t rc = hot_enter_team(team, &t, &self);
  if (HOT_UNLIKELY(rc)) return rc == GSHMEM_EFORKED ? fork_refuse() : HOT_SLOW;
  if (hot_elsewhere(t->world, call->in) || hot_elsewhere(t->world, call->out)) { /* perhaps device memory: Go looks */
    hot_leave(self);
    return HOT_SLOW;
  }
  hot_coll c;
  c.wait = (hot_wait){0};
  rc = hot_collective(&c, t, team, call, timeout_ns, slice_ns);
  if (HOT_LIKELY(rc == HOT_OK)) {
    hot_leave(self);
    if (request_out) *request_out = 0;
    return GSHMEM_OK;
  }
  /* Refused before it arrived: Go refuses it again, in words. */
  int begun = rc != HOT_SLOW && (rc >= 0 || c.arrived);
  uint64_t request = 0;
  if (begun) rc = goshmem_collective_adopt(team, &c, &request); /* inside still: a finalize must not take the memory away */
  hot_leave(self);
  if (!begun) return HOT_SLOW;
  if (rc == GSHMEM_PENDING && slice_ns != 0) rc = go_on(request, slice_ns, &request);
  if (request_out && rc >= 0) *request_out = request;
  return rc;
}

static int32_t collective(uint64_t team, int32_t what, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root,
                          double scale, const uint64_t *counts, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  if (HOT_LIKELY(!(flags & (GSHMEM_ASYNC | GSHMEM_NOTIFY)))) {
    hot_call call = {.op = (uint32_t)what, .dtype = (uint32_t)dtype, .redop = (uint32_t)op, .root = root, .in = in, .out = out,
                     .count = count, .scale = scale, .counts = counts};
    int32_t rc = try_here(team, &call, timeout_ns, slice_ns, request_out);
    if (HOT_LIKELY(rc != HOT_SLOW)) return rc;
  } else {
    REFUSE_FORKED();
  }
  return goshmem_collective(team, what, (void *)in, out, count, dtype, op, root, scale, (uint64_t *)counts, flags, timeout_ns, slice_ns, request_out);
}

int32_t gshmem_collective(uint64_t team, int32_t what, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root,
                          double scale, const uint64_t *counts, uint32_t flags, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  if (HOT_UNLIKELY(what == HOT_OP_EXCHANGE || what == HOT_OP_CAST)) what = -what; /* the core's own: refused by number */
  return collective(team, what, in, out, count, dtype, op, root, scale, counts, flags, timeout_ns, slice_ns, request_out);
}

/* Blocking forms: the same, without a slice. */
static int32_t plain(uint64_t team, int32_t what, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root) {
  uint64_t none;
  return collective(team, what, in, out, count, dtype, op, root, 1.0, NULL, 0, GSHMEM_DEFAULT_TIMEOUT, -1, &none);
}

int32_t gshmem_barrier(uint64_t team) { return plain(team, GSHMEM_BARRIER, NULL, NULL, 0, 0, 0, -1); }
int32_t gshmem_sync(uint64_t team) { return plain(team, GSHMEM_SYNC, NULL, NULL, 0, 0, 0, -1); }
int32_t gshmem_broadcast(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root) {
  return plain(team, GSHMEM_BROADCAST, in, out, bytes, 0, 0, root);
}
int32_t gshmem_all_reduce(uint64_t team, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op) {
  return plain(team, GSHMEM_ALL_REDUCE, in, out, count, dtype, op, -1);
}
/* Blocks and threads as gshmem_broadcast. */
int32_t shim_cast(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root) {
  return plain(team, bytes <= HOT_INLINE_BYTES ? (int32_t)HOT_OP_CAST : GSHMEM_BROADCAST, in, out, bytes, 0, 0, root);
}
int32_t shim_meet(uint64_t team, int32_t what, uint64_t bytes) { return plain(team, GSHMEM_BARRIER, NULL, NULL, bytes, 0, what, -1); }
int32_t gshmem_reduce(uint64_t team, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op, int32_t root) {
  return plain(team, GSHMEM_REDUCE, in, out, count, dtype, op, root);
}
int32_t gshmem_all_gather(uint64_t team, const void *in, void *out, uint64_t bytes) {
  return plain(team, GSHMEM_ALL_GATHER, in, out, bytes, 0, 0, -1);
}
int32_t gshmem_reduce_scatter(uint64_t team, const void *in, void *out, uint64_t count, int32_t dtype, int32_t op) {
  return plain(team, GSHMEM_REDUCE_SCATTER, in, out, count, dtype, op, -1);
}
int32_t gshmem_all_to_all(uint64_t team, const void *in, void *out, uint64_t bytes) {
  return plain(team, GSHMEM_ALL_TO_ALL, in, out, bytes, 0, 0, -1);
}
int32_t gshmem_gather(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root) {
  return plain(team, GSHMEM_GATHER, in, out, bytes, 0, 0, root);
}
int32_t gshmem_scatter(uint64_t team, const void *in, void *out, uint64_t bytes, int32_t root) {
  return plain(team, GSHMEM_SCATTER, in, out, bytes, 0, 0, root);
}

int32_t gshmem_reduce_supported(int32_t dtype, int32_t op) { return hot_reduce_supported(dtype, op); }
