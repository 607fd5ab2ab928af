/*
 * hot_inline.h - the hot path, inline: entering and leaving a world, finding the place, the short copies.
 *
 * Every hot_h_* function takes a handle, announces this thread, works and leaves. A status other than HOT_OK means that
 * nothing was moved: HOT_SLOW asks for the Go path, a negative code is an error that Go words. The checks come in
 * this order: forked child, handle, PE, address range, alignment.
 */
#ifndef GSHMEM_HOT_INLINE_H
#define GSHMEM_HOT_INLINE_H

#include "gshmem.h"
#include "hot.h"

#include <string.h>

#define HOT_LIKELY(x) __builtin_expect(!!(x), 1)
#define HOT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOT_INLINE static inline __attribute__((always_inline, unused))

/* The only thread-local variable of the library: 8 bytes of the loader's small reserve for initial-exec. */
extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) _Thread_local hot_thread *hot_tls;

/* Unaligned views: memory of users has any alignment. */
typedef uint16_t __attribute__((aligned(1), may_alias)) hot_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) hot_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) hot_u64;

HOT_INLINE void hot_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb" ::: "memory"); /* `yield` is a no-op on most cores; isb really waits a little */
#else
  __asm__ __volatile__("" ::: "memory");
#endif
}

/* ---- entering and leaving ------------------------------------------------------------------------------------- */

HOT_INLINE void hot_leave(hot_thread *t) {
  /* release: what this call read and wrote is done before hot_world_drain (acquire) sees the word cleared */
  atomic_store_explicit(&t->in, NULL, memory_order_release);
}

/* Announces this thread in `w`. The store is ordered before the look at the handle by the membarrier in hot_world_drain; a
   compiler barrier is all that is needed here, or a full fence where membarrier is refused. */
HOT_INLINE void hot_announce(hot_thread *t, hot_world *w) {
  atomic_store_explicit(&t->in, w, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (HOT_UNLIKELY(hot_fence_needed)) atomic_thread_fence(memory_order_seq_cst);
}

HOT_INLINE int32_t hot_self(hot_thread **t_out) {
  if (HOT_UNLIKELY(atomic_load_explicit(&hot_forked, memory_order_relaxed))) return GSHMEM_EFORKED;
  hot_thread *t = hot_tls;
  if (HOT_UNLIKELY(!t) && !(t = hot_thread_self())) return GSHMEM_ENOMEM;
  *t_out = t;
  return HOT_OK;
}

HOT_INLINE int32_t hot_enter_as(uint64_t handle, int known, hot_world **w_out, hot_thread **t_out) {
  int32_t rc = hot_self(t_out);
  if (HOT_UNLIKELY(rc)) return rc;
  uint32_t slot = (uint32_t)handle;
  if (HOT_UNLIKELY(slot >= HOT_MAX_WORLDS)) return GSHMEM_ESTALE;
  hot_world *w = atomic_load_explicit(&hot_worlds[slot], memory_order_acquire); /* partner: hot_world_publish */
  if (HOT_UNLIKELY(!w)) return GSHMEM_ESTALE;
  hot_announce(*t_out, w);
  if (HOT_UNLIKELY(atomic_load_explicit(known ? &w->known : &w->handle, memory_order_acquire) != handle)) {
    hot_leave(*t_out);
    return GSHMEM_ESTALE;
  }
  *w_out = w;
  return HOT_OK;
}

/* On HOT_OK this thread is inside *w_out until hot_leave(*t_out). */
HOT_INLINE int32_t hot_enter(uint64_t handle, hot_world **w_out, hot_thread **t_out) { return hot_enter_as(handle, 0, w_out, t_out); }

/* The same for who asks what became of a world: also after an abort, until it is closed. */
HOT_INLINE int32_t hot_enter_known(uint64_t handle, hot_world **w_out, hot_thread **t_out) { return hot_enter_as(handle, 1, w_out, t_out); }

/* The same by a team's handle: inside the team's world. Only team->busy and team->handle may be touched before busy is taken. */
HOT_INLINE int32_t hot_enter_team(uint64_t handle, hot_team **team_out, hot_thread **t_out) {
  int32_t rc = hot_self(t_out);
  if (HOT_UNLIKELY(rc)) return rc;
  uint32_t slot = (uint32_t)handle;
  if (HOT_UNLIKELY(slot >= HOT_MAX_TEAMS)) return GSHMEM_ESTALE;
  hot_team *team = atomic_load_explicit(&hot_teams[slot], memory_order_acquire); /* partner: hot_team_publish */
  if (HOT_UNLIKELY(!team)) return GSHMEM_ESTALE;
  hot_world *w = __atomic_load_n(&team->world, __ATOMIC_RELAXED);
  hot_announce(*t_out, w);
  /* A handle has one generation: if it is still the team's, `world` was read for this very team. */
  if (HOT_UNLIKELY(atomic_load_explicit(&team->handle, memory_order_acquire) != handle) ||
      HOT_UNLIKELY(!atomic_load_explicit(&w->handle, memory_order_acquire))) {
    hot_leave(*t_out);
    return GSHMEM_ESTALE;
  }
  *team_out = team;
  return HOT_OK;
}

/* How many ranges there are; one may be added while others look. Partner: hot_world_device. */
HOT_INLINE uint32_t hot_segments(const hot_world *w) { return __atomic_load_n(&w->nseg, __ATOMIC_ACQUIRE); }

/* 1 when an address of the caller's own may be a device's: then it is not followed here. */
HOT_INLINE int hot_elsewhere(const hot_world *w, const void *local) {
  return HOT_UNLIKELY((uint64_t)((uintptr_t)local - w->device_low) < w->device_span);
}

/* ---- finding the place ---------------------------------------------------------------------------------------- */

uint8_t *hot_find_slow(hot_world *w, const void *addr, uint64_t nbytes, int32_t pe, int32_t *rc);

/* hot_address, inline for the heap. *rc must be HOT_OK before. */
HOT_INLINE uint8_t *hot_find(hot_world *w, const void *addr, uint64_t nbytes, int32_t pe, int32_t *rc) {
  if (HOT_UNLIKELY((uint32_t)pe >= (uint32_t)w->n)) {
    *rc = GSHMEM_EPE;
    return NULL;
  }
  const hot_seg *s = &w->seg[0];
  uint64_t off = (uint64_t)((uintptr_t)addr - s->low); /* wraps to something huge below the heap */
  if (HOT_LIKELY(off <= s->length && nbytes <= s->length - off)) {
    uint8_t *base = __atomic_load_n(&s->base[pe], __ATOMIC_RELAXED); /* partner: hot_world_mark_dead */
    if (HOT_LIKELY(base != NULL)) return base + off;
  }
  return hot_find_slow(w, addr, nbytes, pe, rc);
}

HOT_INLINE uint8_t *hot_not_here(int32_t *rc) {
  *rc = HOT_SLOW;
  return NULL;
}

/* After a signal, `p` or atomic to a PE: one relaxed look, no fence. A look that comes too early costs the sleeper its bound. */
HOT_INLINE void hot_ring_pe(hot_world *w, int32_t pe) {
  hot_header *h = (hot_header *)(void *)__atomic_load_n(&w->whole[pe], __ATOMIC_RELAXED);
  if (HOT_UNLIKELY(h && atomic_load_explicit(&h->waiters, memory_order_relaxed))) hot_ring(h);
}

/* ---- short copies, single values, atomics ---------------------------------------------------------------------- */

HOT_INLINE void hot_move(void *dst, const void *src, uint64_t nbytes) {
  if (HOT_LIKELY(nbytes == 8))
    *(hot_u64 *)dst = *(const hot_u64 *)src;
  else if (nbytes == 4)
    *(hot_u32 *)dst = *(const hot_u32 *)src;
  else
    hot_copy(dst, src, nbytes);
}

/* Stores one value; whole (not torn) when aligned, with release so that a waiter sees what this thread put before. */
HOT_INLINE int32_t hot_store(void *p, uint64_t v, int width) {
  int whole = ((uintptr_t)p & (uintptr_t)(width - 1)) == 0;
  switch (width) {
    case 8: whole ? __atomic_store_n((uint64_t *)p, v, __ATOMIC_RELEASE) : (void)(*(hot_u64 *)p = v); return HOT_OK;
    case 4: whole ? __atomic_store_n((uint32_t *)p, (uint32_t)v, __ATOMIC_RELEASE) : (void)(*(hot_u32 *)p = (uint32_t)v); return HOT_OK;
    case 2: whole ? __atomic_store_n((uint16_t *)p, (uint16_t)v, __ATOMIC_RELEASE) : (void)(*(hot_u16 *)p = (uint16_t)v); return HOT_OK;
    case 1: __atomic_store_n((uint8_t *)p, (uint8_t)v, __ATOMIC_RELEASE); return HOT_OK;
    default: return GSHMEM_EINVAL;
  }
}

HOT_INLINE int32_t hot_load(const void *p, int width, uint64_t *v) {
  int whole = ((uintptr_t)p & (uintptr_t)(width - 1)) == 0;
  switch (width) {
    case 8: *v = whole ? __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE) : *(const hot_u64 *)p; return HOT_OK;
    case 4: *v = whole ? __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE) : *(const hot_u32 *)p; return HOT_OK;
    case 2: *v = whole ? __atomic_load_n((const uint16_t *)p, __ATOMIC_ACQUIRE) : *(const hot_u16 *)p; return HOT_OK;
    case 1: *v = __atomic_load_n((const uint8_t *)p, __ATOMIC_ACQUIRE); return HOT_OK;
    default: return GSHMEM_EINVAL;
  }
}

/* One atomic update; seq_cst except a plain set (release) and fetch (acquire). want: the old value is asked for. */
#define HOT_RMW(NAME, T)                                                                                      \
  HOT_INLINE int32_t NAME(int op, T *p, T v, T cmp, int want, T *old) {                                       \
    switch (op) {                                                                                             \
      case HOT_A_SET:                                                                                         \
        if (!want) { __atomic_store_n(p, v, __ATOMIC_RELEASE); return HOT_OK; }                               \
        *old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); return HOT_OK;                                    \
      case HOT_A_FETCH: *old = __atomic_load_n(p, __ATOMIC_ACQUIRE); return HOT_OK;                           \
      case HOT_A_SWAP: *old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); return HOT_OK;                     \
      case HOT_A_CSWAP:                                                                                       \
        __atomic_compare_exchange_n(p, &cmp, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                       \
        *old = cmp; return HOT_OK;                                                                            \
      case HOT_A_ADD: *old = __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); return HOT_OK;                       \
      case HOT_A_INC: *old = __atomic_fetch_add(p, (T)1, __ATOMIC_SEQ_CST); return HOT_OK;                    \
      case HOT_A_AND: *old = __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); return HOT_OK;                       \
      case HOT_A_OR: *old = __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); return HOT_OK;                         \
      case HOT_A_XOR: *old = __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); return HOT_OK;                       \
      default: return GSHMEM_EINVAL;                                                                          \
    }                                                                                                         \
  }
HOT_RMW(hot_rmw8, uint64_t)
HOT_RMW(hot_rmw4, uint32_t)
#undef HOT_RMW

HOT_INLINE int32_t hot_atomic_inline(hot_world *w, int op, int width, void *target, uint64_t operand, uint64_t compare, int32_t pe,
                                     uint64_t *old_out) {
  if (HOT_UNLIKELY(width != 8 && width != 4)) return GSHMEM_EINVAL;
  int32_t rc = HOT_OK;
  uint8_t *p = hot_find(w, target, (uint64_t)width, pe, &rc);
  if (HOT_UNLIKELY(!p)) return rc;
  if (HOT_UNLIKELY((uintptr_t)p & (uintptr_t)(width - 1))) return GSHMEM_EALIGN;
  uint64_t old = 0;
  if (width == 8) {
    rc = hot_rmw8(op, (uint64_t *)(void *)p, operand, compare, old_out != NULL, &old);
  } else {
    uint32_t o = 0;
    rc = hot_rmw4(op, (uint32_t *)(void *)p, (uint32_t)operand, (uint32_t)compare, old_out != NULL, &o);
    old = o;
  }
  if (HOT_UNLIKELY(rc)) return rc;
  if (old_out) *old_out = old;
  if (op != HOT_A_FETCH) hot_ring_pe(w, pe);
  return HOT_OK;
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* Both alarms as one number that only moves forward. */
HOT_INLINE uint32_t hot_alarms(hot_world *w) {
  uint32_t a = atomic_load_explicit(&w->alarm, memory_order_acquire);
  return w->self ? a + atomic_load_explicit(&w->self->alarm, memory_order_acquire) : a; /* partner: hot_raise */
}

HOT_INLINE uint32_t hot_spin(hot_world *w) { return atomic_load_explicit(&w->spin, memory_order_relaxed); }

/* hot_wait_turn with its spinning part inline. */
HOT_INLINE int32_t hot_wait_spin(hot_world *w, hot_wait *s, int64_t until_ns) {
  if (HOT_LIKELY(s->rounds < hot_spin(w) && until_ns != 0)) {
    s->rounds++;
    hot_pause();
    return HOT_OK;
  }
  return hot_wait_turn(w, s, until_ns);
}

/* Call when something that was waited for has happened and the same state goes on to wait for the next: it spins again first. */
HOT_INLINE void hot_wait_progress(hot_wait *s) {
  s->rounds = 0;
  s->armed = 0;
  s->started_ns = 0;
  s->attentive_ns = 0;
}

/* 1 when a compares to b; cmp may carry HOT_CMP_SIGNED, then both must be sign-extended. */
HOT_INLINE int hot_compare(int cmp, uint64_t a, uint64_t b) {
  int64_t x = (int64_t)a, y = (int64_t)b;
  switch (cmp) {
    case HOT_CMP_EQ: case HOT_CMP_EQ | HOT_CMP_SIGNED: return a == b;
    case HOT_CMP_NE: case HOT_CMP_NE | HOT_CMP_SIGNED: return a != b;
    case HOT_CMP_GT: return a > b;
    case HOT_CMP_GE: return a >= b;
    case HOT_CMP_LT: return a < b;
    case HOT_CMP_LE: return a <= b;
    case HOT_CMP_GT | HOT_CMP_SIGNED: return x > y;
    case HOT_CMP_GE | HOT_CMP_SIGNED: return x >= y;
    case HOT_CMP_LT | HOT_CMP_SIGNED: return x < y;
    default: return x <= y;
  }
}

/* ---- by handle ---------------------------------------------------------------------------------------------------- */

HOT_INLINE int32_t hot_h_put(uint64_t world, void *dst, const void *src, uint64_t nbytes, int32_t pe) {
  hot_world *w;
  hot_thread *t;
  int32_t rc = hot_enter(world, &w, &t);
  if (HOT_UNLIKELY(rc)) return rc;
  uint8_t *to = hot_elsewhere(w, src) ? hot_not_here(&rc) : hot_find(w, dst, nbytes, pe, &rc);
  if (HOT_LIKELY(to != NULL)) hot_move(to, src, nbytes);
  hot_leave(t);
  return rc;
}

HOT_INLINE int32_t hot_h_get(uint64_t world, void *dst, const void *src, uint64_t nbytes, int32_t pe) {
  hot_world *w;
  hot_thread *t;
  int32_t rc = hot_enter(world, &w, &t);
  if (HOT_UNLIKELY(rc)) return rc;
  const uint8_t *from = hot_elsewhere(w, dst) ? hot_not_here(&rc) : hot_find(w, src, nbytes, pe, &rc);
  if (HOT_LIKELY(from != NULL)) hot_move(dst, from, nbytes);
  hot_leave(t);
  return rc;
}

HOT_INLINE int32_t hot_p_inline(hot_world *w, void *dst, uint64_t value, int width, int32_t pe) {
  int32_t rc = HOT_OK;
  uint8_t *to = hot_find(w, dst, (uint64_t)width | (width == 0), pe, &rc);
  if (HOT_UNLIKELY(!to)) return rc;
  rc = hot_store(to, value, width);
  if (HOT_LIKELY(!rc)) hot_ring_pe(w, pe);
  return rc;
}

HOT_INLINE int32_t hot_g_inline(hot_world *w, const void *src, int width, int32_t pe, uint64_t *value_out) {
  int32_t rc = HOT_OK;
  const uint8_t *from = hot_find(w, src, (uint64_t)width | (width == 0), pe, &rc);
  if (HOT_UNLIKELY(!from)) return rc;
  return hot_load(from, width, value_out);
}

#define HOT_BY_HANDLE(CALL)                    \
  hot_world *w;                                \
  hot_thread *t;                               \
  int32_t rc = hot_enter(world, &w, &t);       \
  if (HOT_UNLIKELY(rc)) return rc;             \
  rc = (CALL);                                 \
  hot_leave(t);                                \
  return rc

HOT_INLINE int32_t hot_h_p(uint64_t world, void *dst, uint64_t value, int width, int32_t pe) {
  HOT_BY_HANDLE(hot_p_inline(w, dst, value, width, pe));
}
HOT_INLINE int32_t hot_h_g(uint64_t world, const void *src, int width, int32_t pe, uint64_t *value_out) {
  HOT_BY_HANDLE(hot_g_inline(w, src, width, pe, value_out));
}
HOT_INLINE int32_t hot_h_atomic(uint64_t world, int op, int width, void *target, uint64_t operand, uint64_t compare, int32_t pe,
                                uint64_t *old_out) {
  HOT_BY_HANDLE(hot_atomic_inline(w, op, width, target, operand, compare, pe, old_out));
}
HOT_INLINE int32_t hot_h_put_signal(uint64_t world, void *dst, const void *src, uint64_t nbytes, uint64_t *sig, uint64_t value, int sigop,
                                    int32_t pe) {
  HOT_BY_HANDLE(hot_put_signal(w, dst, src, nbytes, sig, value, sigop, pe));
}
HOT_INLINE int32_t hot_h_iput(uint64_t world, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count,
                              int32_t pe) {
  HOT_BY_HANDLE(hot_iput(w, dst, src, dst_stride, src_stride, elem, count, pe));
}
HOT_INLINE int32_t hot_h_iget(uint64_t world, void *dst, const void *src, int64_t dst_stride, int64_t src_stride, uint64_t elem, uint64_t count,
                              int32_t pe) {
  HOT_BY_HANDLE(hot_iget(w, dst, src, dst_stride, src_stride, elem, count, pe));
}
HOT_INLINE int32_t hot_h_put_many(uint64_t world, void *const *dst, const void *const *src, const uint64_t *nbytes, const int32_t *pe,
                                  uint64_t n, uint64_t *done_out) {
  HOT_BY_HANDLE(hot_put_many(w, dst, src, nbytes, pe, n, done_out));
}
HOT_INLINE int32_t hot_h_get_many(uint64_t world, void *const *dst, const void *const *src, const uint64_t *nbytes, const int32_t *pe,
                                  uint64_t n, uint64_t *done_out) {
  HOT_BY_HANDLE(hot_get_many(w, dst, src, nbytes, pe, n, done_out));
}
HOT_INLINE int32_t hot_h_fence(uint64_t world) { HOT_BY_HANDLE(hot_fence(w)); }
HOT_INLINE int32_t hot_h_quiet(uint64_t world) { HOT_BY_HANDLE(hot_quiet(w)); }

/* The waits check that the word is in this PE's own symmetric memory, which stays mapped while this thread is inside. */
int32_t hot_own_word_slow(hot_world *w, const void *word, int width);

HOT_INLINE int32_t hot_own_word(hot_world *w, const void *word, int width) {
  uint64_t off = (uint64_t)((uintptr_t)word - w->seg[0].low), length = w->seg[0].length;
  if (HOT_LIKELY(off < length && (uint64_t)width <= length - off)) return HOT_OK;
  return hot_own_word_slow(w, word, width);
}

HOT_INLINE int32_t hot_h_wait_until(uint64_t world, const void *word, int width, int cmp, uint64_t value, hot_wait *s, int64_t until_ns) {
  HOT_BY_HANDLE((rc = hot_own_word(w, word, width)) ? rc : hot_wait_until(w, word, width, cmp, value, s, until_ns));
}
HOT_INLINE int32_t hot_h_test(uint64_t world, const void *word, int width, int cmp, uint64_t value, int32_t *true_out) {
  HOT_BY_HANDLE((rc = hot_own_word(w, word, width)) ? rc : hot_test(word, width, cmp, value, true_out));
}

#endif
