/*
 * shim_rma.c - one-sided access, signals and waits: the public names over the hot path.
 *
 * Each function tries the hot path in C. Whatever it does not finish (another host, a bad argument, a finished world)
 * goes to Go once, which either does it or words the error; so nothing here needs texts of its own but the fork's.
 */
#include "internal.h"

#include "../gocore/hot/hot_inline.h"
#include "_cgo_export.h"

#define FINISH(rc, slow)                                       \
  do {                                                         \
    int32_t rc_ = (rc);                                        \
    if (HOT_LIKELY(rc_ == HOT_OK)) return GSHMEM_OK;           \
    if (rc_ == GSHMEM_EFORKED) return fork_refuse();           \
    return (slow);                                             \
  } while (0)

int32_t gshmem_put(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe) {
  FINISH(HOT_LIKELY(src || !bytes) ? hot_h_put(world, dst, src, bytes, pe) : GSHMEM_EINVAL, goshmem_put(world, dst, (void *)src, bytes, pe, 0));
}

int32_t gshmem_get(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe) {
  FINISH(HOT_LIKELY(dst || !bytes) ? hot_h_get(world, dst, src, bytes, pe) : GSHMEM_EINVAL, goshmem_get(world, dst, (void *)src, bytes, pe, 0));
}

/* Mapped memory is written at once, so an nbi put is a put there; a transport has taken the bytes on return, a device not. */
int32_t gshmem_put_nbi(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe) {
  FINISH(HOT_LIKELY(src || !bytes) ? hot_h_put(world, dst, src, bytes, pe) : GSHMEM_EINVAL, goshmem_put(world, dst, (void *)src, bytes, pe, 1));
}

int32_t gshmem_get_nbi(uint64_t world, void *dst, const void *src, uint64_t bytes, int32_t pe) {
  FINISH(HOT_LIKELY(dst || !bytes) ? hot_h_get(world, dst, src, bytes, pe) : GSHMEM_EINVAL, goshmem_get(world, dst, (void *)src, bytes, pe, 1));
}

int32_t gshmem_iput(uint64_t world, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe) {
  FINISH(hot_h_iput(world, dst, src, dst_stride, src_stride, elem, count, pe),
         goshmem_iput(world, dst, (void *)src, dst_stride, src_stride, elem, count, pe));
}

int32_t gshmem_iget(uint64_t world, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe) {
  FINISH(hot_h_iget(world, dst, src, dst_stride, src_stride, elem, count, pe),
         goshmem_iget(world, dst, (void *)src, dst_stride, src_stride, elem, count, pe));
}

int32_t gshmem_put_many(uint64_t world, void *const *dst, const void *const *src, const uint64_t *bytes, const int32_t *pe, uint64_t n, uint64_t *done_out) {
  uint64_t done = 0;
  if (HOT_UNLIKELY(n && !(dst && src && bytes && pe))) return errtext_fail(GSHMEM_EINVAL, "put_many: one of the four arrays is NULL, and n is not 0");
  int32_t rc = hot_h_put_many(world, dst, src, bytes, pe, n, &done);
  if (rc == GSHMEM_EFORKED) return fork_refuse();
  for (; rc != HOT_OK && done < n; done++) { /* from the first piece the hot path left, one by one */
    if ((rc = gshmem_put(world, dst[done], src[done], bytes[done], pe[done]))) break;
    rc = HOT_PENDING; /* keep going until all are done */
  }
  if (done_out) *done_out = done;
  return done == n ? GSHMEM_OK : rc;
}

int32_t gshmem_get_many(uint64_t world, void *const *dst, const void *const *src, const uint64_t *bytes, const int32_t *pe, uint64_t n, uint64_t *done_out) {
  uint64_t done = 0;
  if (HOT_UNLIKELY(n && !(dst && src && bytes && pe))) return errtext_fail(GSHMEM_EINVAL, "get_many: one of the four arrays is NULL, and n is not 0");
  int32_t rc = hot_h_get_many(world, dst, src, bytes, pe, n, &done);
  if (rc == GSHMEM_EFORKED) return fork_refuse();
  for (; rc != HOT_OK && done < n; done++) {
    if ((rc = gshmem_get(world, dst[done], src[done], bytes[done], pe[done]))) break;
    rc = HOT_PENDING;
  }
  if (done_out) *done_out = done;
  return done == n ? GSHMEM_OK : rc;
}

int32_t gshmem_p(uint64_t world, void *dst, uint64_t value, int32_t width, int32_t pe) {
  FINISH(hot_h_p(world, dst, value, width, pe), goshmem_p(world, dst, value, width, pe));
}

int32_t gshmem_g(uint64_t world, const void *src, int32_t width, int32_t pe, uint64_t *value_out) {
  FINISH(HOT_LIKELY(value_out != NULL) ? hot_h_g(world, src, width, pe, value_out) : GSHMEM_EINVAL, goshmem_g(world, (void *)src, width, pe, value_out));
}

int32_t gshmem_atomic(uint64_t world, int32_t op, int32_t width, void *target, uint64_t operand, uint64_t compare, int32_t pe, uint64_t *old_out) {
  FINISH(hot_h_atomic(world, op, width, target, operand, compare, pe, old_out),
         goshmem_atomic(world, op, width, target, operand, compare, pe, old_out));
}

int32_t gshmem_put_signal(uint64_t world, void *dst, const void *src, uint64_t bytes, uint64_t *signal, uint64_t value, int32_t signal_op, int32_t pe) {
  FINISH(HOT_UNLIKELY(!src && bytes) ? GSHMEM_EINVAL : hot_h_put_signal(world, dst, src, bytes, signal, value, signal_op, pe),
         goshmem_put_signal(world, dst, (void *)src, bytes, signal, value, signal_op, pe));
}

int32_t gshmem_put_signal_nbi(uint64_t world, void *dst, const void *src, uint64_t bytes, uint64_t *signal, uint64_t value, int32_t signal_op, int32_t pe) {
  return gshmem_put_signal(world, dst, src, bytes, signal, value, signal_op, pe);
}

int32_t gshmem_fence(uint64_t world) { FINISH(hot_h_fence(world), goshmem_fence(world)); }

int32_t gshmem_quiet(uint64_t world, int64_t timeout_ns) { FINISH(hot_h_quiet(world), goshmem_quiet(world, timeout_ns)); }

int32_t gshmem_one_sided_start(uint64_t world, const gshmem_one_sided *what, int64_t timeout_ns, int64_t slice_ns, uint64_t *request_out) {
  REFUSE_FORKED();
  return goshmem_one_sided_start(world, (gshmem_one_sided *)what, timeout_ns, slice_ns, request_out);
}

/* Narrow values as the comparison sees them: both sides sign- or zero-extended. */
static uint64_t widen(uint64_t v, int32_t width, int32_t is_signed) {
  if (width >= 8 || width <= 0) return v;
  int shift = 64 - 8 * width;
  return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static int compare_code(int32_t cmp, int32_t is_signed) {
  return cmp < GSHMEM_CMP_EQ || cmp > GSHMEM_CMP_LE ? -1 : cmp | (is_signed ? HOT_CMP_SIGNED : 0);
}

int32_t gshmem_test(uint64_t world, const void *word, int32_t width, int32_t is_signed, int32_t cmp, uint64_t value, int32_t *true_out) {
  REFUSE_FORKED();
  if (HOT_UNLIKELY(!true_out)) return errtext_fail(GSHMEM_EINVAL, "test: true_out is NULL");
  int code = compare_code(cmp, is_signed);
  int32_t rc = code < 0 ? GSHMEM_EINVAL : hot_h_test(world, word, width, code, widen(value, width, is_signed), true_out);
  FINISH(rc, goshmem_test(world, (void *)word, width, is_signed, cmp, value, true_out));
}

#define FIRST_LOOK_NS 20000 /* how long a wait stays in C before Go is asked to name deadlines, deaths and aborts */

static int32_t first_look(uint64_t world, const void *word, int32_t width, int code, uint64_t value, int64_t timeout_ns, int64_t slice_ns, hot_wait *s) {
  int64_t budget = FIRST_LOOK_NS;
  if (slice_ns >= 0 && slice_ns < budget) budget = slice_ns;
  if (timeout_ns >= 0 && timeout_ns < budget) budget = timeout_ns;
  return hot_h_wait_until(world, word, width, code, value, s, budget ? hot_now() + budget : 0);
}

int32_t gshmem_wait_until_start(uint64_t world, const void *word, int32_t width, int32_t is_signed, int32_t cmp, uint64_t value, int64_t timeout_ns,
                                int64_t slice_ns, uint64_t *request_out) {
  REFUSE_FORKED();
  return goshmem_wait_until_start(world, (void *)word, width, is_signed, cmp, widen(value, width, is_signed), timeout_ns, slice_ns, request_out);
}

int32_t gshmem_wait_until(uint64_t world, const void *word, int32_t width, int32_t is_signed, int32_t cmp, uint64_t value, int64_t timeout_ns, uint64_t *value_out) {
  int code = compare_code(cmp, is_signed);
  uint64_t want = widen(value, width, is_signed);
  hot_wait s = {0};
  int32_t rc = code < 0 ? GSHMEM_EINVAL : first_look(world, word, width, code, want, timeout_ns, -1, &s);
  if (HOT_LIKELY(rc == HOT_OK)) {
    if (value_out) *value_out = s.seen;
    return GSHMEM_OK;
  }
  if (rc == GSHMEM_EFORKED) return fork_refuse();
  return goshmem_wait_until(world, (void *)word, width, is_signed, cmp, want, timeout_ns, value_out);
}
