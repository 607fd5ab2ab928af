/*
 * shmem_host_cc.h - barriers. A barrier completes all puts of its members first; a sync only makes them meet.
 *
 * Threads: any, in the same order on all members of a team. Collective: over the team. Blocks: until all members came; the
 * forms on a stream only queue it.
 */
#ifndef _HOST_DATA_PLANE_ACLSHMEM_HOST_CC_H_
#define _HOST_DATA_PLANE_ACLSHMEM_HOST_CC_H_

#ifdef ACLSHMEM_HAVE_ACL_ON_PATH
#include "acl/acl.h"
#else
#include "../../acl/acl.h"
#endif
#include "../shmem_host_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Team -1 (a PE that is no member has it) does nothing but complete the default stream. */
ACLSHMEM_HOST_API void aclshmem_barrier(aclshmem_team_t team);
ACLSHMEM_HOST_API void aclshmem_barrier_all(void);
ACLSHMEM_HOST_API void aclshmem_sync(aclshmem_team_t team);
ACLSHMEM_HOST_API void aclshmem_sync_all(void);
ACLSHMEM_HOST_API void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream);
ACLSHMEM_HOST_API void aclshmemx_barrier_all_on_stream(aclrtStream stream);

/* An opaque number that kernels take; 0 where there is none, as on hosts. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API uint64_t util_get_ffts_config(void);

#ifdef __cplusplus
}
#endif

#endif
