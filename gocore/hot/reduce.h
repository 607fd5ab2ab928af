/* reduce.h - between reduce.c, which checks and chooses, and the kernels, compiled once per instruction set. */
#ifndef GSHMEM_HOT_REDUCE_H
#define GSHMEM_HOT_REDUCE_H

#include "hot_inline.h"

typedef struct hot_reduction {
  void *const *dst;
  const void *const *src;
  int redop, ndst, nsrc;
  uint64_t count; /* of numbers: a complex one counts twice where its parts are independent */
  double scale;
  int divisor;
} hot_reduction;

typedef void (*hot_kernel)(const hot_reduction *);
typedef const hot_kernel hot_kernel_table[HOT_T_LIMIT][HOT_R_LIMIT];

extern hot_kernel_table hot_kernels_base;
#if defined(__x86_64__)
extern hot_kernel_table hot_kernels_v3, hot_kernels_v4;
#endif

#endif
