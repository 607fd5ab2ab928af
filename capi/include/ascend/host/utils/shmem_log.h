/*
 * shmem_log.h - messages and the profiler.
 *
 * Messages of at least the level go to standard error; to standard output with SHMEM_LOG_TO_STDOUT=1; to files in SHMEM_LOG_PATH when
 * that is set. Levels: 0 debug, 1 info, 2 warn, 3 error, 4 fatal. Threads: any. Collective: no. Blocks: no.
 */
#ifndef SHMEM_HOST_LOG_H
#define SHMEM_HOST_LOG_H

#include "../../host_device/shmem_common_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* func gets every message of every level from then on, on the thread it comes from, and nothing is written elsewhere. Only the first
   function that is not null is kept. Always 0. */
ACLSHMEM_HOST_API int32_t aclshmemx_set_extern_logger(void (*func)(int level, const char *msg));
/* SHMEM_LOG_LEVEL wins. ACLSHMEM_INVALID_VALUE for a level that is none. */
ACLSHMEM_HOST_API int32_t aclshmemx_set_log_level(int level);

/* Times of this PE's operations when SHMEM_CYCLE_PROF_PE names it at init; elsewhere nothing happens. Block 0 holds the host's operations,
   one frame each (docs/ascend-differences.md), in ticks of 20 ns. *out_profs stays the library's. verbose prints the table. */
ACLSHMEM_HOST_API void aclshmemx_get_prof(aclshmem_prof_pe_t **out_profs, bool verbose);
ACLSHMEM_HOST_API void aclshmemx_show_prof(void);

#ifdef __cplusplus
}
#endif

#include "../../shmem_aliases.h"

#endif
