// shmem_device_mo.h: memory ordering.
#ifndef ACLSHMEM_DEVICE_MO_H
#define ACLSHMEM_DEVICE_MO_H

#include "device/shmem_def.h"

// All this core's transfers and stores, to any PE, are complete when it returns. Blocks: own only.
ACLSHMEM_DEVICE void aclshmem_quiet(void) { gshmem::quiet(); }
// Transfers before it are visible at their target before those after it; here as strong as quiet.
ACLSHMEM_DEVICE void aclshmem_fence(void) { gshmem::quiet(); }

#endif
