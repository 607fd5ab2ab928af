// shmem_device_mo.h: memory ordering.
#ifndef ACLSHMEM_DEVICE_MO_H
#define ACLSHMEM_DEVICE_MO_H

#include "device/internal/engines.h"

// All this core's transfers and stores, to any PE and by any engine, are complete when it returns.
// One look at the topology per PE. Blocks: own only.
ACLSHMEM_DEVICE void aclshmem_quiet(void) { gshmem::quiet_all(); }
// Transfers before it are visible at their target before those after it; here as strong as quiet.
ACLSHMEM_DEVICE void aclshmem_fence(void) { gshmem::quiet_all(); }

#endif
