/*
 * openshmem_atomic.c - atomic operations of every type, under their present and their older names.
 *
 * One body per operation and width holds the inlined hot path. An nbi form stores the old value before it returns, which is
 * earlier than the next quiet asks for.
 */
#include "openshmem.h"

OSH_COLD static uint64_t slow(int op, int width, void *target, uint64_t operand, uint64_t compare, int pe) {
  uint64_t old = 0;
  osh_check("atomic", gshmem_atomic(osh.world, op, width, osh_twin(target), operand, compare, pe, &old));
  return old;
}

/* with: the old value is asked for; alone: it is not, so the call need not wait for it. */
#define BODY(W, NAME, OP)                                                                                      \
  OSH_SHARED static uint64_t with_##NAME##W(void *target, uint64_t operand, uint64_t compare, int pe) {        \
    uint64_t old = 0;                                                                                          \
    if (HOT_LIKELY(hot_h_atomic(osh.world, OP, W, osh_near(target), operand, compare, pe, &old) == HOT_OK)) return old;  \
    return slow(OP, W, target, operand, compare, pe);                                                          \
  }
#define BODY_ALONE(W, NAME, OP)                                                                                \
  OSH_SHARED static void alone_##NAME##W(void *target, uint64_t operand, int pe) {                             \
    if (HOT_LIKELY(hot_h_atomic(osh.world, OP, W, osh_near(target), operand, 0, pe, NULL) == HOT_OK)) return;            \
    osh_check("atomic", gshmem_atomic(osh.world, OP, W, osh_twin(target), operand, 0, pe, NULL));              \
  }
#define BODIES(NAME, OP) \
  BODY(4, NAME, OP)      \
  BODY(8, NAME, OP)
#define BODIES_ALONE(NAME, OP) \
  BODY_ALONE(4, NAME, OP)      \
  BODY_ALONE(8, NAME, OP)
BODIES(fetch, GSHMEM_A_FETCH)
BODIES(swap, GSHMEM_A_SWAP)
BODIES(cswap, GSHMEM_A_CSWAP)
BODIES(add, GSHMEM_A_ADD)
BODIES(and, GSHMEM_A_AND)
BODIES(or, GSHMEM_A_OR)
BODIES(xor, GSHMEM_A_XOR)
BODIES_ALONE(set, GSHMEM_A_SET)
BODIES_ALONE(add, GSHMEM_A_ADD)
BODIES_ALONE(and, GSHMEM_A_AND)
BODIES_ALONE(or, GSHMEM_A_OR)
BODIES_ALONE(xor, GSHMEM_A_XOR)

#define WITH(T, NAME, target, operand, compare, pe) \
  OSH_VALUE(T, sizeof(T) == 8 ? with_##NAME##8(target, operand, compare, pe) : with_##NAME##4(target, operand, compare, pe))
#define ALONE(T, NAME, target, operand, pe) (sizeof(T) == 8 ? alone_##NAME##8(target, operand, pe) : alone_##NAME##4(target, operand, pe))

/* fetch, set, swap */
#define FETCHES(N, T)                                                                                                     \
  T shmem_##N##_atomic_fetch(const T *source, int pe) { return WITH(T, fetch, (void *)source, 0, 0, pe); }                \
  T shmem_ctx_##N##_atomic_fetch(shmem_ctx_t ctx, const T *source, int pe) { return WITH(T, fetch, (void *)source, 0, 0, osh_ctx_pe(ctx, pe)); } \
  void shmem_##N##_atomic_fetch_nbi(T *fetch, const T *source, int pe) { *fetch = WITH(T, fetch, (void *)source, 0, 0, pe); } \
  void shmem_ctx_##N##_atomic_fetch_nbi(shmem_ctx_t ctx, T *fetch, const T *source, int pe) {                             \
    *fetch = WITH(T, fetch, (void *)source, 0, 0, osh_ctx_pe(ctx, pe));                                                   \
  }                                                                                                                       \
  void shmem_##N##_atomic_set(T *dest, T value, int pe) { ALONE(T, set, dest, OSH_BITS(value), pe); }                     \
  void shmem_ctx_##N##_atomic_set(shmem_ctx_t ctx, T *dest, T value, int pe) { ALONE(T, set, dest, OSH_BITS(value), osh_ctx_pe(ctx, pe)); } \
  T shmem_##N##_atomic_swap(T *dest, T value, int pe) { return WITH(T, swap, dest, OSH_BITS(value), 0, pe); }             \
  T shmem_ctx_##N##_atomic_swap(shmem_ctx_t ctx, T *dest, T value, int pe) { return WITH(T, swap, dest, OSH_BITS(value), 0, osh_ctx_pe(ctx, pe)); } \
  void shmem_##N##_atomic_swap_nbi(T *fetch, T *dest, T value, int pe) { *fetch = WITH(T, swap, dest, OSH_BITS(value), 0, pe); } \
  void shmem_ctx_##N##_atomic_swap_nbi(shmem_ctx_t ctx, T *fetch, T *dest, T value, int pe) {                             \
    *fetch = WITH(T, swap, dest, OSH_BITS(value), 0, osh_ctx_pe(ctx, pe));                                                \
  }                                                                                                                       \
  T shmem_##N##_fetch(const T *source, int pe) { return shmem_##N##_atomic_fetch(source, pe); }                           \
  void shmem_##N##_set(T *dest, T value, int pe) { shmem_##N##_atomic_set(dest, value, pe); }                             \
  T shmem_##N##_swap(T *dest, T value, int pe) { return shmem_##N##_atomic_swap(dest, value, pe); }
OPENSHMEM_AMO_ALL(FETCHES)

/* fetch_op with an operand, its nbi form and the form without an answer */
#define UPDATES(N, T, OP)                                                                                                 \
  T shmem_##N##_atomic_fetch_##OP(T *dest, T value, int pe) { return WITH(T, OP, dest, OSH_BITS(value), 0, pe); }         \
  T shmem_ctx_##N##_atomic_fetch_##OP(shmem_ctx_t ctx, T *dest, T value, int pe) { return WITH(T, OP, dest, OSH_BITS(value), 0, osh_ctx_pe(ctx, pe)); } \
  void shmem_##N##_atomic_fetch_##OP##_nbi(T *fetch, T *dest, T value, int pe) { *fetch = WITH(T, OP, dest, OSH_BITS(value), 0, pe); } \
  void shmem_ctx_##N##_atomic_fetch_##OP##_nbi(shmem_ctx_t ctx, T *fetch, T *dest, T value, int pe) {                     \
    *fetch = WITH(T, OP, dest, OSH_BITS(value), 0, osh_ctx_pe(ctx, pe));                                                  \
  }                                                                                                                       \
  void shmem_##N##_atomic_##OP(T *dest, T value, int pe) { ALONE(T, OP, dest, OSH_BITS(value), pe); }                     \
  void shmem_ctx_##N##_atomic_##OP(shmem_ctx_t ctx, T *dest, T value, int pe) { ALONE(T, OP, dest, OSH_BITS(value), osh_ctx_pe(ctx, pe)); }

#define NUMBERS(N, T)                                                                                                     \
  UPDATES(N, T, add)                                                                                                      \
  T shmem_##N##_atomic_compare_swap(T *dest, T cond, T value, int pe) { return WITH(T, cswap, dest, OSH_BITS(value), OSH_BITS(cond), pe); } \
  T shmem_ctx_##N##_atomic_compare_swap(shmem_ctx_t ctx, T *dest, T cond, T value, int pe) {                              \
    return WITH(T, cswap, dest, OSH_BITS(value), OSH_BITS(cond), osh_ctx_pe(ctx, pe));                                    \
  }                                                                                                                       \
  void shmem_##N##_atomic_compare_swap_nbi(T *fetch, T *dest, T cond, T value, int pe) {                                  \
    *fetch = WITH(T, cswap, dest, OSH_BITS(value), OSH_BITS(cond), pe);                                                   \
  }                                                                                                                       \
  void shmem_ctx_##N##_atomic_compare_swap_nbi(shmem_ctx_t ctx, T *fetch, T *dest, T cond, T value, int pe) {             \
    *fetch = WITH(T, cswap, dest, OSH_BITS(value), OSH_BITS(cond), osh_ctx_pe(ctx, pe));                                  \
  }                                                                                                                       \
  T shmem_##N##_atomic_fetch_inc(T *dest, int pe) { return WITH(T, add, dest, 1, 0, pe); }                                \
  T shmem_ctx_##N##_atomic_fetch_inc(shmem_ctx_t ctx, T *dest, int pe) { return WITH(T, add, dest, 1, 0, osh_ctx_pe(ctx, pe)); } \
  void shmem_##N##_atomic_fetch_inc_nbi(T *fetch, T *dest, int pe) { *fetch = WITH(T, add, dest, 1, 0, pe); }             \
  void shmem_ctx_##N##_atomic_fetch_inc_nbi(shmem_ctx_t ctx, T *fetch, T *dest, int pe) { *fetch = WITH(T, add, dest, 1, 0, osh_ctx_pe(ctx, pe)); } \
  void shmem_##N##_atomic_inc(T *dest, int pe) { ALONE(T, add, dest, 1, pe); }                                            \
  void shmem_ctx_##N##_atomic_inc(shmem_ctx_t ctx, T *dest, int pe) { ALONE(T, add, dest, 1, osh_ctx_pe(ctx, pe)); }      \
  T shmem_##N##_cswap(T *dest, T cond, T value, int pe) { return shmem_##N##_atomic_compare_swap(dest, cond, value, pe); } \
  T shmem_##N##_finc(T *dest, int pe) { return shmem_##N##_atomic_fetch_inc(dest, pe); }                                  \
  void shmem_##N##_inc(T *dest, int pe) { shmem_##N##_atomic_inc(dest, pe); }                                             \
  T shmem_##N##_fadd(T *dest, T value, int pe) { return shmem_##N##_atomic_fetch_add(dest, value, pe); }                  \
  void shmem_##N##_add(T *dest, T value, int pe) { shmem_##N##_atomic_add(dest, value, pe); }
OPENSHMEM_AMO(NUMBERS)

#define BITWISE(N, T) \
  UPDATES(N, T, and)  \
  UPDATES(N, T, or)   \
  UPDATES(N, T, xor)
OPENSHMEM_AMO_BITS(BITWISE)
