/* reduce_base.c - the reductions for every machine of the architecture (SSE2, or NEON on aarch64). */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2,tree-vectorize") /* for machines older than AVX2: a quarter less code */
#endif
#define KERNELS hot_kernels_base
#include "reduce_kernels.h"
