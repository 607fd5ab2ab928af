/* reduce_v3.c - the reductions for x86-64-v3 (AVX2, F16C). */
#if defined(__x86_64__)
#include "number.h"
#include "reduce.h"
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt,movbe,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt,movbe,f16c")
#endif
#define HALF_WIDTH 8
#define HALF_LOAD(to, from) _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from))))
#define HALF_STORE(to, from) _mm_storeu_si128((__m128i *)(void *)(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#define KERNELS hot_kernels_v3
#include "reduce_kernels.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
