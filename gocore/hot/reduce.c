/* reduce.c - reductions: what is defined, and which instruction set does it. */
#include "reduce.h"

static const uint8_t sizes[HOT_T_LIMIT] = {
  [HOT_T_U8] = 1, [HOT_T_I8] = 1, [HOT_T_U16] = 2, [HOT_T_I16] = 2, [HOT_T_U32] = 4, [HOT_T_I32] = 4, [HOT_T_U64] = 8, [HOT_T_I64] = 8,
  [HOT_T_F16] = 2, [HOT_T_BF16] = 2, [HOT_T_F32] = 4, [HOT_T_F64] = 8, [HOT_T_BOOL] = 1, [HOT_T_C64] = 8, [HOT_T_C128] = 16,
  [HOT_T_C32] = 4, [HOT_T_F8E4M3FN] = 1, [HOT_T_F8E5M2] = 1, [HOT_T_F8E4M3FNUZ] = 1, [HOT_T_F8E5M2FNUZ] = 1,
};

uint32_t hot_dtype_size(int dtype) { return dtype > 0 && dtype < HOT_T_LIMIT ? sizes[dtype] : 0; }

int hot_reduce_supported(int dtype, int redop) {
  if (!hot_dtype_size(dtype) || redop <= 0 || redop >= HOT_R_LIMIT) return 0;
  return hot_kernels_base[dtype][redop] != NULL;
}

/* ---- instruction set: found out once, at load -------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler's __builtin_cpu_supports knows the name. */
static int has_f16c(void) {
  unsigned a, b, c = 0, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1u);
}
#endif

static int level_best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
    return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c()) return 1;
#endif
  return 0;
}

static int level_used;

__attribute__((constructor)) static void level_set(void) { level_used = level_best(); }

int hot_reduce_level(int level) {
  int best = level_best();
  level_used = level < 0 || level > best ? best : level;
  return level_used;
}

static hot_kernel kernel_for(int dtype, int redop) {
#if defined(__x86_64__)
  if (level_used == 2 && hot_kernels_v4[dtype][redop]) return hot_kernels_v4[dtype][redop];
  if (level_used >= 1) return hot_kernels_v3[dtype][redop];
#endif
  return hot_kernels_base[dtype][redop];
}

/* A sum, average or scaling of complex numbers is one of their parts. */
static int by_parts(int dtype, int redop) {
  return (dtype == HOT_T_C64 || dtype == HOT_T_C128 || dtype == HOT_T_C32) && redop != HOT_R_PROD;
}

int32_t hot_reduce(int dtype, int redop, void *const *dst, int ndst, const void *const *src, int nsrc, uint64_t count, double scale,
                   int divisor) {
  if (!hot_reduce_supported(dtype, redop)) return GSHMEM_EUNSUPPORTED;
  if (ndst < 1 || nsrc < 1 || (redop == HOT_R_AVG && divisor < 1)) return GSHMEM_EINVAL;
  if (count == 0) return HOT_OK;
  hot_reduction r = {.dst = dst, .src = src, .redop = redop, .ndst = ndst, .nsrc = nsrc, .scale = scale, .divisor = divisor};
  r.count = by_parts(dtype, redop) ? 2 * count : count;
  kernel_for(dtype, redop)(&r);
  return HOT_OK;
}
