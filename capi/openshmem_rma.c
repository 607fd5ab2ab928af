/*
 * openshmem_rma.c - put, get, p, g, strided and signalling forms of every type and size.
 *
 * The bodies exist once per shape (OSH_SHARED) and hold the inlined hot path; a typed function is a jump into one of them.
 * Mapped memory is written at once and the transports take the bytes before they return, so the nbi forms are the same calls.
 */
#include "openshmem.h"

OSH_SHARED void osh_put(void *dest, const void *source, uint64_t bytes, int pe) {
  if (HOT_LIKELY(hot_h_put(osh.world, osh_near(dest), source, bytes, pe) == HOT_OK)) return;
  osh_check("put", gshmem_put(osh.world, osh_twin(dest), source, bytes, pe));
}

OSH_SHARED void osh_get(void *dest, const void *source, uint64_t bytes, int pe) {
  if (HOT_LIKELY(hot_h_get(osh.world, dest, osh_near(source), bytes, pe) == HOT_OK)) return;
  osh_check("get", gshmem_get(osh.world, dest, osh_twin(source), bytes, pe));
}

/* ---- single values ---- */

OSH_COLD static void p_slow(void *dest, uint64_t bits, int width, int pe) {
  osh_check("p", gshmem_p(osh.world, osh_twin(dest), bits, width, pe));
}

OSH_COLD static uint64_t g_slow(const void *source, int width, int pe) {
  uint64_t bits = 0;
  osh_check("g", gshmem_g(osh.world, osh_twin(source), width, pe, &bits));
  return bits;
}

#define SINGLE(W)                                                                            \
  OSH_SHARED static void p##W(void *dest, uint64_t bits, int pe) {                           \
    if (HOT_UNLIKELY(hot_h_p(osh.world, osh_near(dest), bits, W, pe) != HOT_OK)) p_slow(dest, bits, W, pe); \
  }                                                                                          \
  OSH_SHARED static uint64_t g##W(const void *source, int pe) {                              \
    uint64_t bits = 0;                                                                       \
    return HOT_LIKELY(hot_h_g(osh.world, osh_near(source), W, pe, &bits) == HOT_OK) ? bits : g_slow(source, W, pe); \
  }
SINGLE(1)
SINGLE(2)
SINGLE(4)
SINGLE(8)

static inline void put_bits(void *dest, uint64_t bits, size_t width, int pe) {
  switch (width) {
    case 1: p1(dest, bits, pe); return;
    case 2: p2(dest, bits, pe); return;
    case 4: p4(dest, bits, pe); return;
    default: p8(dest, bits, pe);
  }
}

static inline uint64_t get_bits(const void *source, size_t width, int pe) {
  switch (width) {
    case 1: return g1(source, pe);
    case 2: return g2(source, pe);
    case 4: return g4(source, pe);
    default: return g8(source, pe);
  }
}

/* ---- strided ---- */

OSH_SHARED static void strided_put(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, uint64_t elem, size_t n, int pe) {
  if (HOT_LIKELY(hot_h_iput(osh.world, dest, source, dst, sst, elem, n, pe) == HOT_OK)) return;
  osh_check("iput", gshmem_iput(osh.world, osh_twin(dest), source, dst, sst, elem, n, pe));
}

OSH_SHARED static void strided_get(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, uint64_t elem, size_t n, int pe) {
  if (HOT_LIKELY(hot_h_iget(osh.world, dest, source, dst, sst, elem, n, pe) == HOT_OK)) return;
  osh_check("iget", gshmem_iget(osh.world, dest, osh_twin(source), dst, sst, elem, n, pe));
}

/* ---- with a signal ---- */

OSH_SHARED static void put_signal(void *dest, const void *source, uint64_t bytes, uint64_t *signal, uint64_t value, int op, int pe) {
  if (HOT_LIKELY(hot_h_put_signal(osh.world, dest, source, bytes, signal, value, op, pe) == HOT_OK)) return;
  osh_check("put_signal", gshmem_put_signal(osh.world, osh_twin(dest), source, bytes, osh_twin(signal), value, op, pe));
}

uint64_t shmem_signal_fetch(const uint64_t *sig_addr) { return g8(sig_addr, osh.me); }

/* ---- by type ---- */

#define MOVES(NAME, T, SUFFIX, CALL)                                                                                   \
  void shmem_##NAME##_##SUFFIX(T *dest, const T *source, size_t nelems, int pe) { CALL(dest, source, nelems * sizeof(T), pe); } \
  void shmem_ctx_##NAME##_##SUFFIX(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, int pe) {                  \
    CALL(dest, source, nelems * sizeof(T), osh_ctx_pe(ctx, pe));                                                        \
  }
#define STRIDES(NAME, T, SUFFIX, CALL)                                                                                 \
  void shmem_##NAME##_##SUFFIX(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) {         \
    CALL(dest, source, dst, sst, sizeof(T), nelems, pe);                                                                \
  }                                                                                                                    \
  void shmem_ctx_##NAME##_##SUFFIX(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    CALL(dest, source, dst, sst, sizeof(T), nelems, osh_ctx_pe(ctx, pe));                                               \
  }
#define SIGNALS(NAME, T, SUFFIX)                                                                                       \
  void shmem_##NAME##_##SUFFIX(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) { \
    put_signal(dest, source, nelems * sizeof(T), sig_addr, signal, sig_op, pe);                                         \
  }                                                                                                                    \
  void shmem_ctx_##NAME##_##SUFFIX(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, \
                                   int sig_op, int pe) {                                                               \
    put_signal(dest, source, nelems * sizeof(T), sig_addr, signal, sig_op, osh_ctx_pe(ctx, pe));                        \
  }
/* long double alone is wider than a word. */
#define SINGLES(NAME, T)                                                                                               \
  void shmem_##NAME##_p(T *dest, T value, int pe) {                                                                    \
    if (sizeof(T) > 8) osh_put(dest, &value, sizeof value, pe);                                                        \
    else put_bits(dest, OSH_BITS(value), sizeof value, pe);                                                            \
  }                                                                                                                    \
  void shmem_ctx_##NAME##_p(shmem_ctx_t ctx, T *dest, T value, int pe) { shmem_##NAME##_p(dest, value, osh_ctx_pe(ctx, pe)); } \
  T shmem_##NAME##_g(const T *source, int pe) {                                                                        \
    if (sizeof(T) <= 8) return OSH_VALUE(T, get_bits(source, sizeof(T), pe));                                          \
    T value;                                                                                                           \
    osh_get(&value, source, sizeof value, pe);                                                                         \
    return value;                                                                                                      \
  }                                                                                                                    \
  T shmem_ctx_##NAME##_g(shmem_ctx_t ctx, const T *source, int pe) { return shmem_##NAME##_g(source, osh_ctx_pe(ctx, pe)); }
#define BY_TYPE(NAME, T)               \
  MOVES(NAME, T, put, osh_put)         \
  MOVES(NAME, T, get, osh_get)         \
  MOVES(NAME, T, put_nbi, osh_put)     \
  MOVES(NAME, T, get_nbi, osh_get)     \
  STRIDES(NAME, T, iput, strided_put)  \
  STRIDES(NAME, T, iget, strided_get)  \
  SIGNALS(NAME, T, put_signal)         \
  SIGNALS(NAME, T, put_signal_nbi)     \
  SINGLES(NAME, T)
OPENSHMEM_RMA(BY_TYPE)

/* ---- by size ---- */

#define SIZED_MOVES(NAME, BYTES, CALL)                                                                                  \
  void shmem_##NAME(void *dest, const void *source, size_t nelems, int pe) { CALL(dest, source, nelems * (BYTES), pe); } \
  void shmem_ctx_##NAME(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe) {                       \
    CALL(dest, source, nelems * (BYTES), osh_ctx_pe(ctx, pe));                                                          \
  }
#define SIZED_STRIDES(NAME, BYTES, CALL)                                                                                \
  void shmem_##NAME(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) {              \
    CALL(dest, source, dst, sst, BYTES, nelems, pe);                                                                    \
  }                                                                                                                     \
  void shmem_ctx_##NAME(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    CALL(dest, source, dst, sst, BYTES, nelems, osh_ctx_pe(ctx, pe));                                                   \
  }
#define SIZED_SIGNALS(NAME, BYTES)                                                                                      \
  void shmem_##NAME(void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) { \
    put_signal(dest, source, nelems * (BYTES), sig_addr, signal, sig_op, pe);                                           \
  }                                                                                                                     \
  void shmem_ctx_##NAME(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, \
                        int pe) {                                                                                       \
    put_signal(dest, source, nelems * (BYTES), sig_addr, signal, sig_op, osh_ctx_pe(ctx, pe));                          \
  }
#define MOVES_OF(S, BYTES)                        \
  SIZED_MOVES(put##S, BYTES, osh_put)             \
  SIZED_MOVES(get##S, BYTES, osh_get)             \
  SIZED_MOVES(put##S##_nbi, BYTES, osh_put)       \
  SIZED_MOVES(get##S##_nbi, BYTES, osh_get)       \
  SIZED_SIGNALS(put##S##_signal, BYTES)           \
  SIZED_SIGNALS(put##S##_signal_nbi, BYTES)
#define BY_SIZE(S)                                \
  MOVES_OF(S, S / 8)                              \
  SIZED_STRIDES(iput##S, S / 8, strided_put)      \
  SIZED_STRIDES(iget##S, S / 8, strided_get)
OPENSHMEM_SIZES(BY_SIZE)
MOVES_OF(mem, 1)
