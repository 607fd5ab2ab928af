/* reduce_v4.c - the reductions for x86-64-v4 (AVX-512 F, BW, CD, DQ, VL), with full-width vectors. */
#if defined(__x86_64__)
#include "number.h"
#include "reduce.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi,bmi2,prefer-vector-width=512")
#endif
#define KERNELS hot_kernels_v4
#include "reduce_kernels.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
