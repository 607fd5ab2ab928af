/*
 * hot.c - one-sided operations on memory that is mapped here. No lock, no allocation, no policy: what does not fit
 * (unmapped, dead, device memory) is HOT_SLOW and Go decides. Everything a signal makes visible is ordered by its
 * release store; no copy leaves unordered (non-temporal) stores behind.
 */
#include "hot_inline.h"

/* The other segments, and the reason when there is no place. Zero bytes need no place. */
uint8_t *hot_find_slow(hot_world *w, const void *addr, uint64_t nbytes, int32_t pe, int32_t *rc) {
  if (nbytes == 0) return NULL;
  for (uint32_t i = 0, n = hot_segments(w); i < n; i++) {
    const hot_seg *s = &w->seg[i];
    uint64_t off = (uint64_t)((uintptr_t)addr - s->low);
    if (off >= s->length || nbytes > s->length - off) continue;
    uint8_t *base = s->kind == HOT_KIND_DEVICE ? NULL : __atomic_load_n(&s->base[pe], __ATOMIC_RELAXED);
    if (base) return base + off;
    *rc = HOT_SLOW;
    return NULL;
  }
  *rc = GSHMEM_ENOTSYM;
  return NULL;
}

uint8_t *hot_address(hot_world *w, const void *addr, uint64_t nbytes, int32_t pe, int32_t *status_out) {
  *status_out = HOT_OK;
  return hot_find(w, addr, nbytes, pe, status_out);
}

int32_t hot_own_word_slow(hot_world *w, const void *word, int width) {
  int32_t rc = HOT_OK;
  uint8_t *p = hot_find_slow(w, word, (uint64_t)width | (width == 0), w->me, &rc);
  return p ? HOT_OK : rc;
}

int32_t hot_put(hot_world *w, void *dst, const void *src, uint64_t nbytes, int32_t pe) {
  int32_t rc = HOT_OK;
  uint8_t *to = hot_elsewhere(w, src) ? hot_not_here(&rc) : hot_find(w, dst, nbytes, pe, &rc);
  if (to) hot_move(to, src, nbytes);
  return rc;
}

int32_t hot_get(hot_world *w, void *dst, const void *src, uint64_t nbytes, int32_t pe) {
  int32_t rc = HOT_OK;
  const uint8_t *from = hot_elsewhere(w, dst) ? hot_not_here(&rc) : hot_find(w, src, nbytes, pe, &rc);
  if (from) hot_move(dst, from, nbytes);
  return rc;
}

int32_t hot_p(hot_world *w, void *dst, uint64_t value, int width, int32_t pe) { return hot_p_inline(w, dst, value, width, pe); }

int32_t hot_g(hot_world *w, const void *src, int width, int32_t pe, uint64_t *value_out) {
  return hot_g_inline(w, src, width, pe, value_out);
}

int32_t hot_atomic(hot_world *w, int op, int width, void *target, uint64_t operand, uint64_t compare, int32_t pe, uint64_t *old_out) {
  return hot_atomic_inline(w, op, width, target, operand, compare, pe, old_out);
}

int32_t hot_put_signal(hot_world *w, void *dst, const void *src, uint64_t nbytes, uint64_t *sig, uint64_t value, int sigop, int32_t pe) {
  int32_t rc = HOT_OK;
  if (nbytes && hot_elsewhere(w, src)) return HOT_SLOW;
  uint8_t *to = hot_find(w, dst, nbytes, pe, &rc);
  if (rc) return rc;
  uint64_t *signal = (uint64_t *)(void *)hot_find(w, sig, 8, pe, &rc);
  if (rc) return rc;
  if ((uintptr_t)signal & 7) return GSHMEM_EALIGN;
  if (sigop != GSHMEM_SIGNAL_SET && sigop != GSHMEM_SIGNAL_ADD) return GSHMEM_EINVAL;
  if (to) hot_move(to, src, nbytes);
  /* release: the data before the signal; partner: the acquire load of whoever waits for it */
  if (sigop == GSHMEM_SIGNAL_SET)
    __atomic_store_n(signal, value, __ATOMIC_RELEASE);
  else
    __atomic_fetch_add(signal, value, __ATOMIC_RELEASE);
  hot_ring_pe(w, pe);
  return HOT_OK;
}

int32_t hot_fence(hot_world *w) {
  atomic_thread_fence(memory_order_release);
  return HOT_LIKELY(__atomic_load_n(&w->direct, __ATOMIC_RELAXED)) ? HOT_OK : HOT_SLOW;
}

int32_t hot_quiet(hot_world *w) {
  atomic_thread_fence(memory_order_seq_cst);
  return HOT_LIKELY(__atomic_load_n(&w->direct, __ATOMIC_RELAXED)) ? HOT_OK : HOT_SLOW;
}

/* ---- strided and many --------------------------------------------------------------------------------------------- */

/* Where pe's copy of a strided range lies: *first_out is element 0. Strides are in elements and may be negative. HOT_OK
   with *first_out set, else the reason. */
static int32_t strided_place(hot_world *w, const void *addr, int64_t stride, uint64_t elem, uint64_t count, int32_t pe, uint8_t **first_out) {
  int64_t step, reach;
  if (count - 1 > INT64_MAX || elem > INT64_MAX) return GSHMEM_ENOTSYM;
  if (__builtin_mul_overflow(stride, (int64_t)elem, &step) || __builtin_mul_overflow(step, (int64_t)(count - 1), &reach))
    return GSHMEM_ENOTSYM;
  uint64_t back = reach < 0 ? 0 - (uint64_t)reach : 0, ahead = reach < 0 ? 0 : (uint64_t)reach, span;
  if (__builtin_add_overflow(back + ahead, elem, &span) || (uintptr_t)addr < back) return GSHMEM_ENOTSYM;
  int32_t rc = HOT_OK;
  uint8_t *low = hot_find(w, (const void *)((uintptr_t)addr - back), span, pe, &rc);
  if (!low) return rc;
  *first_out = low + back;
  return HOT_OK;
}

static void strided_copy(uint8_t *dst, const uint8_t *src, int64_t dst_step, int64_t src_step, uint64_t elem, uint64_t count) {
  switch (elem) {
    case 8:
      for (uint64_t i = 0; i < count; i++) *(hot_u64 *)(dst + (int64_t)i * dst_step) = *(const hot_u64 *)(src + (int64_t)i * src_step);
      break;
    case 4:
      for (uint64_t i = 0; i < count; i++) *(hot_u32 *)(dst + (int64_t)i * dst_step) = *(const hot_u32 *)(src + (int64_t)i * src_step);
      break;
    default:
      for (uint64_t i = 0; i < count; i++) hot_copy(dst + (int64_t)i * dst_step, src + (int64_t)i * src_step, elem);
  }
}

/* Which side is the peer's is the only difference between iput and iget. */
static int32_t strided(hot_world *w, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count,
                       int32_t pe, int putting) {
  if ((uint32_t)pe >= (uint32_t)w->n) return GSHMEM_EPE;
  if (count == 0 || elem == 0) return HOT_OK;
  /* Many elements into one place would be a loop as long as the count, which nothing bounds. */
  if (!(putting ? src : dst) || (dst_stride == 0 && count > 1)) return GSHMEM_EINVAL;
  if (hot_elsewhere(w, putting ? src : dst)) return HOT_SLOW;
  uint8_t *peer = NULL;
  int32_t rc = putting ? strided_place(w, dst, dst_stride, elem, count, pe, &peer) : strided_place(w, src, src_stride, elem, count, pe, &peer);
  if (rc) return rc;
  int64_t dst_step, src_step;
  if (__builtin_mul_overflow(dst_stride, (int64_t)elem, &dst_step) || __builtin_mul_overflow(src_stride, (int64_t)elem, &src_step))
    return GSHMEM_EINVAL;
  if (putting)
    strided_copy(peer, src, dst_step, src_step, elem, count);
  else
    strided_copy(dst, peer, dst_step, src_step, elem, count);
  return HOT_OK;
}

int32_t hot_iput(hot_world *w, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe) {
  return strided(w, dst, src, dst_stride, src_stride, elem, count, pe, 1);
}

int32_t hot_iget(hot_world *w, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count, int32_t pe) {
  return strided(w, dst, src, dst_stride, src_stride, elem, count, pe, 0);
}

int32_t hot_put_many(hot_world *w, void *const *dst, const void *const *src, const uint64_t *nbytes, const int32_t *pe, uint64_t n,
                     uint64_t *done_out) {
  int32_t rc = HOT_OK;
  uint64_t i = 0;
  for (; i < n; i++) {
    uint8_t *to = hot_elsewhere(w, src[i]) ? hot_not_here(&rc) : hot_find(w, dst[i], nbytes[i], pe[i], &rc);
    if (HOT_UNLIKELY(!src[i] && nbytes[i])) rc = GSHMEM_EINVAL;
    if (HOT_UNLIKELY(rc)) break;
    if (to) hot_move(to, src[i], nbytes[i]);
  }
  *done_out = i;
  return rc;
}

int32_t hot_get_many(hot_world *w, void *const *dst, const void *const *src, const uint64_t *nbytes, const int32_t *pe, uint64_t n,
                     uint64_t *done_out) {
  int32_t rc = HOT_OK;
  uint64_t i = 0;
  for (; i < n; i++) {
    const uint8_t *from = hot_elsewhere(w, dst[i]) ? hot_not_here(&rc) : hot_find(w, src[i], nbytes[i], pe[i], &rc);
    if (HOT_UNLIKELY(!dst[i] && nbytes[i])) rc = GSHMEM_EINVAL;
    if (HOT_UNLIKELY(rc)) break;
    if (from) hot_move(dst[i], from, nbytes[i]);
  }
  *done_out = i;
  return rc;
}

/* ---- headers ------------------------------------------------------------------------------------------------------- */

void hot_header_init(hot_header *h, int32_t me, int32_t n, const uint8_t nonce[16], uint64_t size, uint64_t page, uint64_t scratch_off,
                     uint64_t scratch_len, uint64_t heap_off, uint64_t heap_len) {
  h->version = HOT_LAYOUT_VERSION;
  h->me = me;
  h->n = n;
  h->line = HOT_LINE;
  memcpy(h->nonce, nonce, sizeof h->nonce);
  h->size = size;
  h->page = page;
  h->scratch_off = scratch_off;
  h->scratch_len = scratch_len;
  h->heap_off = heap_off;
  h->heap_len = heap_len;
  __atomic_store_n(&h->magic, HOT_MAGIC, __ATOMIC_RELEASE); /* partner: hot_header_check */
}

int hot_header_check(const hot_header *h, const uint8_t nonce[16]) {
  if (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != HOT_MAGIC) return 1;
  if (h->version != HOT_LAYOUT_VERSION || h->line != HOT_LINE) return 2;
  return memcmp(h->nonce, nonce, sizeof h->nonce) == 0 ? 0 : 3;
}
