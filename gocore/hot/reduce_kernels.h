/*
 * reduce_kernels.h - the reductions, written once and compiled per instruction set by reduce_base.c, reduce_v3.c and
 * reduce_v4.c, each of which defines KERNELS (the table's name) and its target before including this. FLOATS_ONLY leaves integers out:
 * their table entries are NULL.
 *
 * A kernel works block by block: it accumulates all sources in order in a block that stays in L1, rounds once and stores the
 * result to every destination. The wide-spread ones have 2, 3 and 4 sources fused in registers. Every source block is read before any
 * destination block is written, so a destination may be a source. Multiplications and additions are never contracted: the
 * bits are the same in every clone.
 */
#include "number.h"
#include "reduce.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed" /* unoptimised builds vectorise nothing, as they should */
#define LOOP _Pragma("clang loop vectorize(assume_safety)") for
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#define LOOP _Pragma("GCC ivdep") for
#endif

#define BLOCK 1024 /* numbers; 8 KiB of accumulators at most */

typedef uint8_t __attribute__((may_alias)) s_u8;
typedef int8_t __attribute__((may_alias)) s_i8;
typedef hot_u16 s_u16;
typedef hot_u32 s_u32;
typedef hot_u64 s_u64;
typedef int16_t __attribute__((aligned(1), may_alias)) s_i16;
typedef int32_t __attribute__((aligned(1), may_alias)) s_i32;
typedef int64_t __attribute__((aligned(1), may_alias)) s_i64;
typedef float __attribute__((aligned(1), may_alias)) s_f32;
typedef double __attribute__((aligned(1), may_alias)) s_f64;

/* The finished block is in dst[0]; the others get a copy while it is hot. */
static inline void spread(const hot_reduction *r, uint64_t at, uint64_t bytes) {
  for (int k = 1; k < r->ndst; k++)
    if (r->dst[k] != r->dst[0]) memcpy((uint8_t *)r->dst[k] + at, (const uint8_t *)r->dst[0] + at, bytes);
}

#define SRC(S, k) ((const S *)r->src[k] + done)

/* First input, each further one, and the end: any number of sources. */
#define BLOCKED(S, A, LD, ST, OP, PRE, FIN)                                        \
  A acc[BLOCK];                                                                    \
  const S *s = SRC(S, 0);                                                          \
  LOOP(uint64_t i = 0; i < len; i++) acc[i] = PRE(LD(s[i]));                       \
  for (int k = 1; k < r->nsrc; k++) {                                              \
    s = SRC(S, k);                                                                 \
    LOOP(uint64_t i = 0; i < len; i++) acc[i] = OP(acc[i], PRE(LD(s[i])));         \
  }                                                                                \
  LOOP(uint64_t i = 0; i < len; i++) d[i] = ST(FIN(acc[i]));

#define KERNEL_HEAD(NAME, S)                                                  \
  static void NAME(const hot_reduction *r) {                                  \
    for (uint64_t done = 0, len; done < r->count; done += len) {              \
      len = r->count - done < BLOCK ? r->count - done : BLOCK;                \
      S *d = (S *)r->dst[0] + done;
#define KERNEL_TAIL(S)                                                        \
      spread(r, done * sizeof(S), len * sizeof(S));                           \
    }                                                                         \
  }

#define KERNEL(NAME, S, A, LD, ST, OP, PRE, FIN) \
  KERNEL_HEAD(NAME, S) BLOCKED(S, A, LD, ST, OP, PRE, FIN) KERNEL_TAIL(S)

/* One pass over n sources (named a, b, c, e) and as many destinations as STORE names. */
#define PASS_2(S, A, LD, ST, OP, PRE, FIN, STORE)                   \
  LOOP(uint64_t i = 0; i < len; i++) {                              \
    A x = PRE(LD(a[i]));                                            \
    x = OP(x, PRE(LD(b[i])));                                       \
    S y = ST(FIN(x));                                               \
    STORE;                                                          \
  }
#define PASS_3(S, A, LD, ST, OP, PRE, FIN, STORE)                   \
  LOOP(uint64_t i = 0; i < len; i++) {                              \
    A x = PRE(LD(a[i]));                                            \
    x = OP(x, PRE(LD(b[i])));                                       \
    x = OP(x, PRE(LD(c[i])));                                       \
    S y = ST(FIN(x));                                               \
    STORE;                                                          \
  }
#define PASS_4(S, A, LD, ST, OP, PRE, FIN, STORE)                   \
  LOOP(uint64_t i = 0; i < len; i++) {                              \
    A x = PRE(LD(a[i]));                                            \
    x = OP(x, PRE(LD(b[i])));                                       \
    x = OP(x, PRE(LD(c[i])));                                       \
    x = OP(x, PRE(LD(e[i])));                                       \
    S y = ST(FIN(x));                                               \
    STORE;                                                          \
  }
#define DST(S, k) ((S *)r->dst[k] + done)

/* 2, 3 and 4 sources in registers; where every source has a destination (an all_reduce in place of the peers' memory), all are
   stored at once. */
#define FUSED(NAME, S, A, LD, ST, OP, PRE, FIN)                                                              \
  KERNEL_HEAD(NAME, S)                                                                                       \
  const S *a = SRC(S, 0), *b = r->nsrc > 1 ? SRC(S, 1) : a, *c = r->nsrc > 2 ? SRC(S, 2) : a;                \
  const S *e = r->nsrc > 3 ? SRC(S, 3) : a;                                                                  \
  if (r->nsrc == 2 && r->ndst == 2) {                                                                        \
    S *d1 = DST(S, 1);                                                                                       \
    PASS_2(S, A, LD, ST, OP, PRE, FIN, d[i] = d1[i] = y)                                                     \
    continue;                                                                                                \
  }                                                                                                          \
  if (r->nsrc == 4 && r->ndst == 4) {                                                                        \
    S *d1 = DST(S, 1), *d2 = DST(S, 2), *d3 = DST(S, 3);                                                     \
    PASS_4(S, A, LD, ST, OP, PRE, FIN, d[i] = d1[i] = d2[i] = d3[i] = y)                                     \
    continue;                                                                                                \
  }                                                                                                          \
  if (r->nsrc == 2) {                                                                                        \
    PASS_2(S, A, LD, ST, OP, PRE, FIN, d[i] = y)                                                             \
  } else if (r->nsrc == 3) {                                                                                 \
    PASS_3(S, A, LD, ST, OP, PRE, FIN, d[i] = y)                                                             \
  } else if (r->nsrc == 4) {                                                                                 \
    PASS_4(S, A, LD, ST, OP, PRE, FIN, d[i] = y)                                                             \
  } else {                                                                                                   \
    BLOCKED(S, A, LD, ST, OP, PRE, FIN)                                                                      \
  }                                                                                                          \
  KERNEL_TAIL(S)

#if defined(HALF_WIDTH)
/* The processor converts HALF_WIDTH halves at once (HALF_LOAD, HALF_STORE); the rest goes one by one. */
static void halves_load(float *restrict to, const void *restrict source, uint64_t n) {
  const s_u16 *from = source;
  uint64_t i = 0;
  for (; i + HALF_WIDTH <= n; i += HALF_WIDTH) HALF_LOAD(to + i, from + i);
  for (; i < n; i++) to[i] = num_from_f16(from[i]);
}

static void halves_store(void *restrict target, const float *restrict from, uint64_t n) {
  s_u16 *to = target;
  uint64_t i = 0;
  for (; i + HALF_WIDTH <= n; i += HALF_WIDTH) HALF_STORE(to + i, from + i);
  for (; i < n; i++) to[i] = num_to_f16(from[i]);
}
#else
static void halves_load(float *restrict to, const void *restrict source, uint64_t n) {
  const s_u16 *from = source;
  LOOP(uint64_t i = 0; i < n; i++) to[i] = num_from_f16(from[i]);
}

static void halves_store(void *restrict target, const float *restrict from, uint64_t n) {
  s_u16 *to = target;
  LOOP(uint64_t i = 0; i < n; i++) to[i] = num_to_f16(from[i]);
}
#endif

/* ---- operators. Integers wrap: they are computed unsigned and at least 32 bits wide. ----------------------------- */

#define AS_IS(x) (x)
#define O_ADD(a, b) ((a) + (b))
#define O_MUL(a, b) ((a) * (b))
#define O_UMUL(a, b) ((a) * 1u * (b)) /* uint16_t would be multiplied as int */
#define O_AND(a, b) ((a) & (b))
#define O_OR(a, b) ((a) | (b))
#define O_XOR(a, b) ((a) ^ (b))
#define O_MIN(a, b) ((b) < (a) ? (b) : (a))
#define O_MAX(a, b) ((b) > (a) ? (b) : (a))
/* NaN wins, on either side; of equal ones (also -0 and 0) the earlier rank's stays. */
#define O_FMIN(a, b) (((int)((b) < (a)) | (int)((b) != (b))) ? (b) : (a))
#define O_FMAX(a, b) (((int)((b) > (a)) | (int)((b) != (b))) ? (b) : (a))
#define TRUTH(x) ((uint8_t)((x) != 0))
#define DIV_F32(x) ((x) / (float)r->divisor)
#define DIV_F64(x) ((x) / (double)r->divisor)
#define SCALE_F32(x) ((x) * (float)r->scale)
#define SCALE_F64(x) ((x) * r->scale)

#if !defined(FLOATS_ONLY)
#define INTEGER(W, S, A, FORM)                             \
  FORM(k_sum_##W, S, A, (A), AS_IS, O_ADD, AS_IS, AS_IS)   \
  KERNEL(k_prod_##W, S, A, (A), AS_IS, O_UMUL, AS_IS, AS_IS) \
  KERNEL(k_and_##W, S, S, AS_IS, AS_IS, O_AND, AS_IS, AS_IS) \
  KERNEL(k_or_##W, S, S, AS_IS, AS_IS, O_OR, AS_IS, AS_IS) \
  KERNEL(k_xor_##W, S, S, AS_IS, AS_IS, O_XOR, AS_IS, AS_IS)
INTEGER(u8, s_u8, uint8_t, KERNEL)
INTEGER(u16, s_u16, uint16_t, KERNEL)
INTEGER(u32, s_u32, uint32_t, FUSED)
INTEGER(u64, s_u64, uint64_t, FUSED)

#define EXTREMES(W, S, A)                                            \
  KERNEL(k_min_##W, S, A, AS_IS, AS_IS, O_MIN, AS_IS, AS_IS)         \
  KERNEL(k_max_##W, S, A, AS_IS, AS_IS, O_MAX, AS_IS, AS_IS)
EXTREMES(u8, s_u8, uint8_t)
EXTREMES(i8, s_i8, int8_t)
EXTREMES(u16, s_u16, uint16_t)
EXTREMES(i16, s_i16, int16_t)
EXTREMES(u32, s_u32, uint32_t)
EXTREMES(i32, s_i32, int32_t)
EXTREMES(u64, s_u64, uint64_t)
EXTREMES(i64, s_i64, int64_t)

KERNEL(k_or_bool, s_u8, uint8_t, TRUTH, AS_IS, O_OR, AS_IS, AS_IS)
KERNEL(k_and_bool, s_u8, uint8_t, TRUTH, AS_IS, O_AND, AS_IS, AS_IS)
KERNEL(k_xor_bool, s_u8, uint8_t, TRUTH, AS_IS, O_XOR, AS_IS, AS_IS)
#endif

#define FLOATING(W, S, A, LD, ST, DIV, SCALE, FORM)        \
  FORM(k_sum_##W, S, A, LD, ST, O_ADD, AS_IS, AS_IS)       \
  KERNEL(k_prod_##W, S, A, LD, ST, O_MUL, AS_IS, AS_IS)    \
  KERNEL(k_min_##W, S, A, LD, ST, O_FMIN, AS_IS, AS_IS)    \
  KERNEL(k_max_##W, S, A, LD, ST, O_FMAX, AS_IS, AS_IS)    \
  FORM(k_avg_##W, S, A, LD, ST, O_ADD, AS_IS, DIV)         \
  KERNEL(k_premul_##W, S, A, LD, ST, O_ADD, SCALE, AS_IS)
FLOATING(f32, s_f32, float, AS_IS, AS_IS, DIV_F32, SCALE_F32, FUSED)
FLOATING(f64, s_f64, double, AS_IS, AS_IS, DIV_F64, SCALE_F64, FUSED)
FUSED(k_sum_bf16, s_u16, float, num_from_bf16, num_to_bf16, O_ADD, AS_IS, AS_IS)
FUSED(k_avg_bf16, s_u16, float, num_from_bf16, num_to_bf16, O_ADD, AS_IS, DIV_F32)

/*
 * The formats that cost most to convert are converted in bulk: one load a source into float32, plain loops there, one store. The
 * loads, the stores and the loops are functions of their own, so that the formats share the loops and no operator has a conversion of its own:
 * the code is a fifth of one kernel for each pair, and a call per 1024 numbers costs nothing.
 */
typedef struct bulk_format {
  uint64_t size;
  void (*load)(float *restrict to, const void *restrict from, uint64_t n);
  void (*store)(void *restrict to, const float *restrict from, uint64_t n);
} bulk_format;

typedef void bulk_fold(float *restrict acc, const float *restrict in, uint64_t n);

#define FOLD(NAME, OP) \
  static void NAME(float *restrict acc, const float *restrict in, uint64_t n) { LOOP(uint64_t i = 0; i < n; i++) acc[i] = OP(acc[i], in[i]); }
FOLD(fold_sum, O_ADD)
FOLD(fold_prod, O_MUL)
FOLD(fold_min, O_FMIN)
FOLD(fold_max, O_FMAX)

/* Each input times the scale, or the result by the divisor. */
static void bulk_times(float *acc, float by, uint64_t n) {
  LOOP(uint64_t i = 0; i < n; i++) acc[i] *= by;
}

static void bulk_divide(float *acc, float by, uint64_t n) {
  LOOP(uint64_t i = 0; i < n; i++) acc[i] /= by;
}

#define BULK(W, S, LD, ST)                                                                                   \
  static void load_##W(float *restrict to, const void *restrict from, uint64_t n) {                          \
    const S *s = from;                                                                                       \
    LOOP(uint64_t i = 0; i < n; i++) to[i] = LD(s[i]);                                                       \
  }                                                                                                          \
  static void store_##W(void *restrict to, const float *restrict from, uint64_t n) {                         \
    S *d = to;                                                                                               \
    LOOP(uint64_t i = 0; i < n; i++) d[i] = ST(from[i]);                                                     \
  }                                                                                                          \
  static const bulk_format bulk_##W = {sizeof(S), load_##W, store_##W};
BULK(bf16, s_u16, num_from_bf16, num_to_bf16)
BULK(e4m3fn, s_u8, num_from_e4m3fn, num_to_e4m3fn)
BULK(e5m2, s_u8, num_from_e5m2, num_to_e5m2)
BULK(e4m3fnuz, s_u8, num_from_e4m3fnuz, num_to_e4m3fnuz)
BULK(e5m2fnuz, s_u8, num_from_e5m2fnuz, num_to_e5m2fnuz)
static const bulk_format bulk_f16 = {sizeof(s_u16), halves_load, halves_store};

/* Not cloned for each format or operator: that is what this is for. */
#if defined(__clang__)
#define ONCE __attribute__((noinline))
#else
#define ONCE __attribute__((noinline, noclone))
#endif
static ONCE void bulk(const hot_reduction *r, const bulk_format *f, bulk_fold *fold) {
  float acc[BLOCK], in[BLOCK];
  for (uint64_t done = 0, len; done < r->count; done += len) {
    len = r->count - done < BLOCK ? r->count - done : BLOCK;
    for (int k = 0; k < r->nsrc; k++) {
      float *to = k ? in : acc;
      f->load(to, (const uint8_t *)r->src[k] + done * f->size, len);
      if (r->redop == HOT_R_PREMUL) bulk_times(to, (float)r->scale, len);
      if (k) fold(acc, in, len);
    }
    if (r->redop == HOT_R_AVG) bulk_divide(acc, (float)r->divisor, len);
    f->store((uint8_t *)r->dst[0] + done * f->size, acc, len);
    spread(r, done * f->size, len * f->size);
  }
}

#define BULK_REST(W)                                                                      \
  static void k_prod_##W(const hot_reduction *r) { bulk(r, &bulk_##W, fold_prod); }       \
  static void k_min_##W(const hot_reduction *r) { bulk(r, &bulk_##W, fold_min); }         \
  static void k_max_##W(const hot_reduction *r) { bulk(r, &bulk_##W, fold_max); }         \
  static void k_premul_##W(const hot_reduction *r) { bulk(r, &bulk_##W, fold_sum); }
#define BULK_ALL(W)                                                                       \
  BULK_REST(W)                                                                            \
  static void k_sum_##W(const hot_reduction *r) { bulk(r, &bulk_##W, fold_sum); }         \
  static void k_avg_##W(const hot_reduction *r) { bulk(r, &bulk_##W, fold_sum); }
BULK_REST(bf16)
BULK_ALL(f16)
BULK_ALL(e4m3fn)
BULK_ALL(e5m2)
BULK_ALL(e4m3fnuz)
BULK_ALL(e5m2fnuz)

/* ---- products of complex numbers: parts interleaved, count is in complex numbers ------------------------------------ */

#define COMPLEX_PROD(NAME, S, A, LD, ST)                                                    \
  static void NAME(const hot_reduction *r) {                                                \
    A re[BLOCK], im[BLOCK];                                                                 \
    for (uint64_t done = 0, len; done < r->count; done += len) {                            \
      len = r->count - done < BLOCK ? r->count - done : BLOCK;                              \
      for (int k = 0; k < r->nsrc; k++) {                                                   \
        const S *s = (const S *)r->src[k] + 2 * done;                                       \
        LOOP(uint64_t i = 0; i < len; i++) {                                                \
          A c = LD(s[2 * i]), d = LD(s[2 * i + 1]);                                         \
          A a = k ? re[i] : c, b = k ? im[i] : d;                                           \
          re[i] = k ? a * c - b * d : c;                                                    \
          im[i] = k ? a * d + b * c : d;                                                    \
        }                                                                                   \
      }                                                                                     \
      S *d = (S *)r->dst[0] + 2 * done;                                                     \
      LOOP(uint64_t i = 0; i < len; i++) {                                                  \
        d[2 * i] = ST(re[i]);                                                               \
        d[2 * i + 1] = ST(im[i]);                                                           \
      }                                                                                     \
      spread(r, 2 * done * sizeof(S), 2 * len * sizeof(S));                                 \
    }                                                                                       \
  }
COMPLEX_PROD(k_prod_c64, s_f32, float, AS_IS, AS_IS)
COMPLEX_PROD(k_prod_c128, s_f64, double, AS_IS, AS_IS)
COMPLEX_PROD(k_prod_c32, s_u16, float, num_from_f16, num_to_f16)

/* ---- the table: NULL where torch has no such reduction --------------------------------------------------------------- */

#define ROW_INT(W, M) \
  {[HOT_R_SUM] = k_sum_##W, [HOT_R_PROD] = k_prod_##W, [HOT_R_MIN] = k_min_##M, [HOT_R_MAX] = k_max_##M, \
   [HOT_R_BAND] = k_and_##W, [HOT_R_BOR] = k_or_##W, [HOT_R_BXOR] = k_xor_##W}
#define ROW_FLOAT(W) \
  {[HOT_R_SUM] = k_sum_##W, [HOT_R_PROD] = k_prod_##W, [HOT_R_MIN] = k_min_##W, [HOT_R_MAX] = k_max_##W, \
   [HOT_R_AVG] = k_avg_##W, [HOT_R_PREMUL] = k_premul_##W}
#define ROW_COMPLEX(W, PART) \
  {[HOT_R_SUM] = k_sum_##PART, [HOT_R_PROD] = k_prod_##W, [HOT_R_AVG] = k_avg_##PART, [HOT_R_PREMUL] = k_premul_##PART}

hot_kernel_table KERNELS = {
#if !defined(FLOATS_ONLY)
  [HOT_T_U8] = ROW_INT(u8, u8), [HOT_T_I8] = ROW_INT(u8, i8), [HOT_T_U16] = ROW_INT(u16, u16), [HOT_T_I16] = ROW_INT(u16, i16),
  [HOT_T_U32] = ROW_INT(u32, u32), [HOT_T_I32] = ROW_INT(u32, i32), [HOT_T_U64] = ROW_INT(u64, u64), [HOT_T_I64] = ROW_INT(u64, i64),
  [HOT_T_BOOL] = {[HOT_R_SUM] = k_or_bool, [HOT_R_PROD] = k_and_bool, [HOT_R_MIN] = k_and_bool, [HOT_R_MAX] = k_or_bool,
                  [HOT_R_BAND] = k_and_bool, [HOT_R_BOR] = k_or_bool, [HOT_R_BXOR] = k_xor_bool},
#endif
  [HOT_T_F16] = ROW_FLOAT(f16), [HOT_T_BF16] = ROW_FLOAT(bf16), [HOT_T_F32] = ROW_FLOAT(f32), [HOT_T_F64] = ROW_FLOAT(f64),
  [HOT_T_C64] = ROW_COMPLEX(c64, f32), [HOT_T_C128] = ROW_COMPLEX(c128, f64), [HOT_T_C32] = ROW_COMPLEX(c32, f16),
  [HOT_T_F8E4M3FN] = ROW_FLOAT(e4m3fn), [HOT_T_F8E5M2] = ROW_FLOAT(e5m2),
  [HOT_T_F8E4M3FNUZ] = ROW_FLOAT(e4m3fnuz), [HOT_T_F8E5M2FNUZ] = ROW_FLOAT(e5m2fnuz),
};
