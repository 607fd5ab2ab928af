// shmem_device.h: the whole device API. shmem.h includes it when a kernel is compiled.
#ifndef ACLSHMEM_DEVICE_ALL_H
#define ACLSHMEM_DEVICE_ALL_H

#include "device/shmem_def.h"
#include "device/gm2gm/engine/shmem_device_mte.h"
#include "device/gm2gm/engine/shmem_device_rdma.h"
#include "device/gm2gm/engine/shmem_device_sdma.h"
#include "device/gm2gm/engine/shmem_device_udma.h"
#include "device/gm2gm/shmem_device_amo.h"
#include "device/gm2gm/shmem_device_cc.h"
#include "device/gm2gm/shmem_device_mo.h"
#include "device/gm2gm/shmem_device_p2p_sync.h"
#include "device/gm2gm/shmem_device_rma.h"
#include "device/gm2gm/shmem_device_so.h"
#include "device/team/shmem_device_team.h"
#include "device/ub2gm/engine/shmem_device_mte.h"
#include "device/ub2gm/shmem_device_rma.h"

#endif
