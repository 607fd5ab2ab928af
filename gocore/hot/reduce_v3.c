/* reduce_v3.c - the reductions for x86-64-v3 (AVX2). */
#if defined(__x86_64__)
#include "number.h"
#include "reduce.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt,movbe"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt,movbe")
#endif
#define KERNELS hot_kernels_v3
#include "reduce_kernels.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
