// shmem_device_cc.h: barriers. Collective over the team; blocks: all of the launch call them.
#ifndef ACLSHMEM_DEVICE_CC_H
#define ACLSHMEM_DEVICE_CC_H

#include "device/internal/barrier.h"

// The address hardware block synchronisation needs on 910; our barriers use flags in memory.
ACLSHMEM_DEVICE void util_set_ffts_config(uint64_t config)
{
#ifndef GSHMEM_CPU_MODEL
    if (config) AscendC::SetSyncBaseAddr(config);
#else
    (void)config;
#endif
}

// Every write that any block of any member made before is visible to all after. A PE that is not a
// member, or a team that does not exist, returns at once.
ACLSHMEM_DEVICE void aclshmem_barrier(aclshmem_team_t team) { gshmem::team_barrier(gshmem::team_of(team)); }
ACLSHMEM_DEVICE void aclshmem_barrier_all(void) { aclshmem_barrier(0); }
ACLSHMEM_DEVICE void aclshmemx_barrier_vec(aclshmem_team_t team) { aclshmem_barrier(team); }
ACLSHMEM_DEVICE void aclshmemx_barrier_all_vec(void) { aclshmem_barrier(0); }
ACLSHMEM_DEVICE void aclshmem_sync(aclshmem_team_t team) { aclshmem_barrier(team); }
ACLSHMEM_DEVICE void aclshmem_sync_all(void) { aclshmem_barrier(0); }

#endif
