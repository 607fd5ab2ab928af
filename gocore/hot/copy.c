/*
 * copy.c - moving bytes between mappings. The system's memcpy is tuned per machine and is what users compare with;
 * short sizes skip its call and dispatch. What will not stay in the caches anyhow goes past them.
 */
#include "hot_inline.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* 9..16 and 17..32 bytes as two overlapping halves: no loop, no branch on the exact size. */
static inline void copy_two(uint8_t *d, const uint8_t *s, uint64_t n) {
  if (n >= 16) {
    uint64_t a = *(const hot_u64 *)s, b = *(const hot_u64 *)(s + 8);
    uint64_t c = *(const hot_u64 *)(s + n - 16), e = *(const hot_u64 *)(s + n - 8);
    *(hot_u64 *)d = a;
    *(hot_u64 *)(d + 8) = b;
    *(hot_u64 *)(d + n - 16) = c;
    *(hot_u64 *)(d + n - 8) = e;
  } else {
    uint64_t a = *(const hot_u64 *)s, c = *(const hot_u64 *)(s + n - 8);
    *(hot_u64 *)d = a;
    *(hot_u64 *)(d + n - 8) = c;
  }
}

void hot_copy(void *dst, const void *src, uint64_t nbytes) {
  if (nbytes == 0 || dst == src) return;
  if (nbytes >= 8 && nbytes <= 32)
    copy_two(dst, src, nbytes);
  else if (HOT_UNLIKELY(nbytes >= HOT_CACHE_BYTES))
    hot_copy_past(dst, src, nbytes);
  else
    memcpy(dst, src, nbytes);
}

#if defined(__x86_64__)
#define LINE 64u
#define AHEAD 2048u /* the hardware's own prefetch stops at each page's end */

void hot_copy_past(void *dst, const void *src, uint64_t nbytes) {
  uint8_t *d = dst;
  const uint8_t *s = src;
  uint64_t head = -(uintptr_t)d & (LINE - 1);
  if (nbytes < head + LINE) {
    memcpy(d, s, nbytes);
    return;
  }
  memcpy(d, s, head);
  for (d += head, s += head, nbytes -= head; nbytes >= LINE; d += LINE, s += LINE, nbytes -= LINE) {
    const __m128i *from = (const __m128i *)(const void *)s;
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2), e = _mm_loadu_si128(from + 3);
    _mm_prefetch((const char *)s + AHEAD, _MM_HINT_T0); /* past the end as well: a hint faults nothing */
    __m128i *to = (__m128i *)(void *)d;
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, e);
  }
  memcpy(d, s, nbytes);
  _mm_sfence(); /* ordered like plain stores from here on: a release store may follow */
}
#else
void hot_copy_past(void *dst, const void *src, uint64_t nbytes) { memcpy(dst, src, nbytes); }
#endif
