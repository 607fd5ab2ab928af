/*
 * shmem_common_macros.h - sizes, limits and list macros of the Ascend interface.
 *
 * The three lists (sizes here, types in shmem_common_types.h and host/data_plane/shmem_host_rma.h) are the one table from which the
 * families are declared and, in the library, defined.
 */
#ifndef SHMEM_MACROS_H
#define SHMEM_MACROS_H

#include <stdint.h>

#if defined(__GNUC__)
#define ACLSHMEM_HOST_API __attribute__((visibility("default")))
#else
#define ACLSHMEM_HOST_API
#endif

/* For device compilers only; a host compiler never sees them expanded. */
#ifndef ACLSHMEM_DEVICE
#define ACLSHMEM_DEVICE __attribute__((always_inline)) __aicore__ __inline__
#endif
#ifndef ACLSHMEM_GLOBAL
#define ACLSHMEM_GLOBAL __global__ __aicore__
#endif
#ifndef ACLSHMEM_GLOBAL_VECTOR
#define ACLSHMEM_GLOBAL_VECTOR __global__ __vector__
#endif

/* Values that C++ has as constants and defaults that C does not have. */
#ifdef __cplusplus
#define ACLSHMEM_DEFAULT(value) = value
#else
#define ACLSHMEM_DEFAULT(value)
#endif

#define ACLSHMEM_MAJOR_VERSION 1
#define ACLSHMEM_MINOR_VERSION 1
#define ACLSHMEM_VENDOR_MAJOR_VER 1
#define ACLSHMEM_VENDOR_MINOR_VER 1
#define ACLSHMEM_VENDOR_PATCH_VER 1
#define ACLSHMEM_MAX_NAME_LEN 256
#define ACLSHMEM_MAX_IP_PORT_LEN 64

#define ACLSHMEM_MAX_PES 16384
#define ACLSHMEM_MAX_TEAMS 2048
#define ACLSHMEM_MAX_LOCAL_SIZE (40UL * 1024 * 1024 * 1024)
#define TEAM_CONFIG_PADDING 48

#define SCALAR_DATA_CACHELINE_SIZE 64
#define L2_CACHELINE_SIZE 512
#define ACLSHMEM_PAGE_SIZE (1024UL * 1024UL * 2)
#define ACLSHMEM_SIGNAL_SIZE 8

#define ACLSHMEM_STARS_NOTIFY_ADDR_OFFSET 14336
#define ACLSHMEM_SDMA_FLAG_LENGTH 64
#define ACLSHMEM_UDMA_MTE_STAGING_UB_SIZE 128U
#define ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE 128U

/* Round up to a multiple. */
#define ALIGN_TO(size, page) (((size) + (page)-1) / (page) * (page))
#define ALIGH_TO(size, page) ALIGN_TO(size, page)
#ifndef ALIGN_UP
#define ALIGN_UP(val, al) (((val) + ((al)-1)) & ~((al)-1))
#endif

/* Synchronisation area of a PE, in bytes. */
#define ACLSHMEM_SYNCBIT_SIZE SCALAR_DATA_CACHELINE_SIZE
#define ACLSHMEMI_SYNCBIT_SIZE ACLSHMEM_SYNCBIT_SIZE
#define SYNC_LOG_MAX_PES 5
#define ACLSHMEM_BARRIER_TG_DISSEM_KVAL 8
#define SYNC_ARRAY_SIZE (ACLSHMEM_SYNCBIT_SIZE * SYNC_LOG_MAX_PES * ACLSHMEM_BARRIER_TG_DISSEM_KVAL)
#define SYNC_COUNTER_SIZE ACLSHMEM_SYNCBIT_SIZE
#define SYNC_POOL_SIZE (SYNC_ARRAY_SIZE * ACLSHMEM_MAX_TEAMS)
#define SYNC_COUNTERS_SIZE (SYNC_COUNTER_SIZE * ACLSHMEM_MAX_TEAMS)
#define ACLSHMEM_MAX_AIV_PER_NPU 48
#define ACLSHMEM_LOG_MAX_AIV_PER_NPU 6
#define ACLSHMEM_CORE_SYNC_POOL_SIZE (ACLSHMEM_MAX_AIV_PER_NPU * ACLSHMEM_LOG_MAX_AIV_PER_NPU * ACLSHMEM_SYNCBIT_SIZE)
#define ACLSHMEM_CORE_SYNC_COUNTER_SIZE ACLSHMEM_SYNCBIT_SIZE
#define ACLSHMEM_EXTRA_SIZE_UNALIGNED SYNC_POOL_SIZE
#define ACLSHMEM_EXTRA_SIZE_UNALIGHED ACLSHMEM_EXTRA_SIZE_UNALIGNED
#define ACLSHMEM_EXTRA_SIZE ALIGN_TO(ACLSHMEM_EXTRA_SIZE_UNALIGNED, ACLSHMEM_PAGE_SIZE)

#define ACLSHMEM_CYCLE_PROF_MAX_BLOCK 64
#define ACLSHMEM_CYCLE_PROF_FRAME_CNT 1024

/* Element sizes in bits of the untyped families. */
#define ACLSHMEM_SIZE_FUNC(F) \
  F(8);                       \
  F(16);                      \
  F(32);                      \
  F(64);                      \
  F(128)

#endif
