/*
 * shmem.h - the host interface of Ascend SHMEM, for C++11 and later and, beyond upstream, C11.
 *
 *   c++ -I<prefix>/include/ascend prog.cpp -lshmem
 *
 * Programs get acl/acl.h through it: a real one when it comes earlier on the include path, else the stand-in beside this file.
 * OpenSHMEM's header of the same name is in include/openshmem; a program uses one of the two.
 */
#ifndef SHMEM_API_H
#define SHMEM_API_H

#if defined(__CCE_AICORE__) || defined(__CCE_KT_TEST__)
#include "device/gm2gm/shmem_device_amo.h"
#include "device/gm2gm/shmem_device_cc.h"
#include "device/gm2gm/shmem_device_mo.h"
#include "device/gm2gm/shmem_device_p2p_sync.h"
#include "device/gm2gm/shmem_device_rma.h"
#include "device/gm2gm/shmem_device_so.h"
#include "device/gm2gm/engine/shmem_device_mte.h"
#include "device/gm2gm/engine/shmem_device_rdma.h"
#include "device/gm2gm/engine/shmem_device_sdma.h"
#include "device/gm2gm/engine/shmem_device_udma.h"
#include "device/shmem_def.h"
#include "device/team/shmem_device_team.h"
#include "device/ub2gm/engine/shmem_device_mte.h"
#include "device/ub2gm/shmem_device_rma.h"
#endif

#include "host/shmem_host_def.h"
#include "host/mem/shmem_host_heap.h"
#include "host/init/shmem_host_init.h"
#include "host/data_plane/shmem_host_rma.h"
#include "host/data_plane/shmem_host_so.h"
#include "host/data_plane/shmem_host_p2p_sync.h"
#include "host/data_plane/shmem_host_cc.h"
#include "host/team/shmem_host_team.h"
#include "host/utils/shmem_log.h"

#endif
