/* reduce_base.c - the reductions for every machine of the architecture (SSE2, or NEON on aarch64). */
#define KERNELS hot_kernels_base
#include "reduce_kernels.h"
