/*
 * copy.c - moving bytes between mappings. The system's memcpy is tuned per machine and is what users compare with;
 * short sizes skip its call and dispatch.
 */
#include "hot_inline.h"

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
  else
    memcpy(dst, src, nbytes);
}
