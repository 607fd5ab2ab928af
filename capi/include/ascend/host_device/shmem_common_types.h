/*
 * shmem_common_types.h - types of the Ascend interface, with the sizes and values that upstream's have.
 */
#ifndef SHMEM_TYPES_H
#define SHMEM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include("acl/acl_rt.h")
#define ACLSHMEM_HAVE_ACL_ON_PATH
#endif
#endif
#ifdef ACLSHMEM_HAVE_ACL_ON_PATH
#include "acl/acl_rt.h"
#else
#include "../acl/acl_rt.h"
#endif

#include "shmem_common_macros.h"

#ifdef __cplusplus
#define ACLSHMEM_ENUM(name, type) enum name : type
#else
#define ACLSHMEM_ENUM(name, type) enum name
#endif

/* Types of point-to-point synchronisation. */
#define ACLSHMEM_P2P_SYNC_TYPE_FUNC(F) \
  F(float, float);                     \
  F(int8, int8_t);                     \
  F(int16, int16_t);                   \
  F(int32, int32_t);                   \
  F(int64, int64_t);                   \
  F(uint8, uint8_t);                   \
  F(uint16, uint16_t);                 \
  F(uint32, uint32_t);                 \
  F(uint64, uint64_t);                 \
  F(char, char)

/* How peers are reached; a bit each. */
#ifdef __cplusplus
enum aclshmem_transport_t : uint8_t {
#else
typedef uint8_t aclshmem_transport_t;
enum {
#endif
  ACLSHMEM_TRANSPORT_MTE = 1,
  ACLSHMEM_TRANSPORT_ROCE = 2,
  ACLSHMEM_TRANSPORT_SDMA = 4,
  ACLSHMEM_TRANSPORT_UDMA = 8
};

typedef enum aclshmem_team_index_t { ACLSHMEM_TEAM_INVALID = -1, ACLSHMEM_TEAM_WORLD = 0 } aclshmem_team_index_t;

typedef enum data_op_engine_type_t {
  ACLSHMEM_DATA_OP_MTE = 1,
  ACLSHMEM_DATA_OP_SDMA = 2,
  ACLSHMEM_DATA_OP_ROCE = 4,
  ACLSHMEM_DATA_OP_UDMA = 8,
  ACLSHMEM_DATA_OP_MAX = 8
} data_op_engine_type_t;

typedef enum aclshmem_mem_type_t { HOST_SIDE = 0, DEVICE_SIDE = 1 } aclshmem_mem_type_t;

typedef enum aclshmem_signal_op_type_t { ACLSHMEM_SIGNAL_SET = 0, ACLSHMEM_SIGNAL_ADD = 1 } aclshmem_signal_op_type_t;

typedef enum aclshmem_cmp_op_type_t {
  ACLSHMEM_CMP_EQ = 0,
  ACLSHMEM_CMP_NE = 1,
  ACLSHMEM_CMP_GT = 2,
  ACLSHMEM_CMP_GE = 3,
  ACLSHMEM_CMP_LT = 4,
  ACLSHMEM_CMP_LE = 5
} aclshmem_cmp_op_type_t;

typedef int aclshmem_team_t;
typedef uint64_t aclshmemx_team_uniqueid_t;
typedef int32_t aclshmemx_sync_bit[ACLSHMEM_SYNCBIT_SIZE / sizeof(int32_t)];

typedef struct aclshmem_team_config_t {
  int32_t version;
  int32_t num_contexts;
  aclshmemx_team_uniqueid_t uniqueid;
  char padding[TEAM_CONFIG_PADDING];
} aclshmem_team_config_t;

/* What handle_wait waits for: everything that was queued for the members of a team. */
typedef struct aclshmem_handle_t {
  aclshmem_team_t team_id;
} aclshmem_handle_t;

typedef struct aclshmem_instance_ctx {
  uint64_t id;
  void *instance; /* reserved, always null */
} aclshmem_instance_ctx;

/* A piece of a core's unified buffer, for kernels. */
typedef struct aclshmem_ub_config_t {
  int64_t aclshmem_ub;
  uint32_t ub_size;
  uint32_t sync_id;
} aclshmem_ub_config_t;
typedef aclshmem_ub_config_t aclshmem_mte_config_t;
typedef aclshmem_ub_config_t aclshmem_sdma_config_t;
typedef aclshmem_ub_config_t aclshmem_rdma_config_t;
typedef aclshmem_ub_config_t aclshmem_udma_config_t;

typedef struct aclshmem_prof_block_t {
  int64_t ccount[ACLSHMEM_CYCLE_PROF_FRAME_CNT];
  int64_t cycles[ACLSHMEM_CYCLE_PROF_FRAME_CNT];
} aclshmem_prof_block_t;

typedef struct aclshmem_prof_pe_t {
  int32_t pe_id;
  aclshmem_prof_block_t block_prof[ACLSHMEM_CYCLE_PROF_MAX_BLOCK];
} aclshmem_prof_pe_t;

/* A team as kernels see it: pe_mapping[i] is the world PE of member i; pe_mapping[ACLSHMEM_MAX_PES + w] the member index of PE w. */
typedef struct aclshmemx_team_t {
  int mype, start, stride, size, team_idx;
  aclshmem_team_config_t config;
  int32_t pe_mapping[2 * ACLSHMEM_MAX_PES];
} aclshmemx_team_t;

/* The state that kernels read. */
typedef struct aclshmem_device_host_state_t {
  int version, mype, npes;
  void *heap_base;
  void *host_heap_base;
  void **p2p_device_heap_base;
  void **rdma_device_heap_base;
  void **sdma_device_heap_base;
  void **p2p_host_heap_base;
  void **rdma_host_heap_base;
  void **sdma_host_heap_base;
  uint8_t topo_list[ACLSHMEM_MAX_PES];
  size_t heap_size;
  aclshmemx_team_t *team_pools[ACLSHMEM_MAX_TEAMS];
  uint64_t sync_pool, sync_counter, core_sync_pool, core_sync_counter;
  bool is_aclshmem_initialized, is_aclshmem_created;
  aclshmem_mte_config_t mte_config;
  aclshmem_sdma_config_t sdma_config;
  aclshmem_rdma_config_t rdma_config;
  aclshmem_udma_config_t udma_config;
  uint64_t qp_info, sdma_workspace_addr;
  aclshmem_prof_pe_t *profs;
  uint64_t signal_addr;
} aclshmem_device_host_state_t;

typedef struct aclshmem_host_state_t {
  void *default_stream;
  int8_t default_event_id;
  uint32_t default_block_num;
  void *notify_arr[ACLSHMEM_MAX_AIV_PER_NPU];
} aclshmem_host_state_t;

#endif
