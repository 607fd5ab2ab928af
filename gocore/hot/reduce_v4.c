/* reduce_v4.c - the reductions for x86-64-v4 (AVX-512 F, BW, CD, DQ, VL), with full-width vectors. Integers do not gain over v3:
   memory is the limit, and the code would be as long again. */
#if defined(__x86_64__)
#include "number.h"
#include "reduce.h"
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi,bmi2,prefer-vector-width=512")
#endif
#define HALF_WIDTH 16
#define HALF_LOAD(to, from) _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from))))
#define HALF_STORE(to, from) _mm256_storeu_si256((__m256i *)(void *)(to), _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#define KERNELS hot_kernels_v4
#define FLOATS_ONLY
#include "reduce_kernels.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
