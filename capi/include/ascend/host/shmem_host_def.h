/*
 * shmem_host_def.h - what a host program hands to init, and the codes it gets back.
 */
#ifndef SHMEM_HOST_DEF_H
#define SHMEM_HOST_DEF_H

#include <limits.h>
#include <stdint.h>

#include "../host_device/shmem_common_types.h"
#include "../host_device/shmem_common_macros.h"

#define ACLSHMEM_UNIQUE_ID_LENGTH 124
#ifdef __cplusplus
constexpr uint16_t ACLSHMEM_UNIQUE_ID_INNER_LEN = ACLSHMEM_UNIQUE_ID_LENGTH;
constexpr int DEFAULT_TIMEOUT = 120; /* seconds */
constexpr int32_t ACLSHMEM_UNIQUEID_VERSION = (1 << 16) + 136;
constexpr uint64_t ACLSHMEM_HEAP_ALIGNMENT_SIZE = 1UL << 30;
#else
#define ACLSHMEM_UNIQUE_ID_INNER_LEN ((uint16_t)ACLSHMEM_UNIQUE_ID_LENGTH)
#define DEFAULT_TIMEOUT 120
#define ACLSHMEM_UNIQUEID_VERSION ((1 << 16) + 136)
#define ACLSHMEM_HEAP_ALIGNMENT_SIZE ((uint64_t)1 << 30)
#endif

typedef int32_t Result;

typedef ACLSHMEM_ENUM(aclshmem_error_code_t, int) {
  ACLSHMEM_SUCCESS = 0,
  ACLSHMEM_INVALID_PARAM = -1,
  ACLSHMEM_INVALID_VALUE = -2,
  ACLSHMEM_SMEM_ERROR = -3,
  ACLSHMEM_INNER_ERROR = -4,
  ACLSHMEM_NOT_INITED = -5,
  ACLSHMEM_BOOTSTRAP_ERROR = -6,
  ACLSHMEM_TIMEOUT_ERROR = -7,
  ACLSHMEM_MALLOC_FAILED = -8,
  ACLSHMEM_DL_FUNC_FAILED = -9,
  ACLSHMEM_INNER_TIMEOUT = -10,
  ACLSHMEM_UNDER_API_UNLOAD = -11,
  ACLSHMEM_NOT_SUPPORTED = -100
} aclshmem_error_code_t;

/* How the PEs meet: through attributes.ip_port, MPI, or a unique id. */
#ifdef __cplusplus
typedef enum aclshmemx_bootstrap_t : unsigned int {
  ACLSHMEMX_INIT_WITH_DEFAULT = 1,
  ACLSHMEMX_INIT_WITH_MPI = 2,
  ACLSHMEMX_INIT_WITH_UNIQUEID = 8,
  ACLSHMEMX_INIT_MAX = 0x80000000u
} aclshmemx_bootstrap_t;
#else
typedef unsigned int aclshmemx_bootstrap_t;
enum { ACLSHMEMX_INIT_WITH_DEFAULT = 1, ACLSHMEMX_INIT_WITH_MPI = 2, ACLSHMEMX_INIT_WITH_UNIQUEID = 8 };
#define ACLSHMEMX_INIT_MAX 0x80000000u /* no int of C holds it */
#endif

typedef enum aclshmemx_init_status_t {
  ACLSHMEM_STATUS_NOT_INITIALIZED = 0,
  ACLSHMEM_STATUS_SHM_CREATED = 1,
  ACLSHMEM_STATUS_IS_INITIALIZED = 2,
  ACLSHMEM_STATUS_INVALID = INT_MAX
} aclshmemx_init_status_t;

typedef struct {
  int version;
  data_op_engine_type_t data_op_engine_type;
  uint32_t shm_init_timeout;          /* seconds for coming up */
  uint32_t shm_create_timeout;        /* seconds; part of coming up here */
  uint32_t control_operation_timeout; /* seconds for allocations and frees */
  int32_t sockFd;                     /* not used: a unique id brings its socket along */
} aclshmem_init_optional_attr_t;

/* In C, begin with ACLSHMEMX_INIT_ATTR_INITIALIZER: it gives the defaults that C++ gives by itself. */
#ifdef __cplusplus
typedef struct aclshmemx_init_attr_t {
  int my_pe;
  int n_pes;
  char ip_port[ACLSHMEM_MAX_IP_PORT_LEN] = {}; /* "tcp://host:port" or "tcp6://[address]:port" of PE 0 */
  uint64_t local_mem_size;
  aclshmem_init_optional_attr_t option_attr = {(1 << 16) + static_cast<int>(sizeof(aclshmem_init_optional_attr_t)), ACLSHMEM_DATA_OP_MTE,
                                               DEFAULT_TIMEOUT, DEFAULT_TIMEOUT, DEFAULT_TIMEOUT, 0};
  void *comm_args = nullptr; /* a unique id, or a pointer to an MPI_Comm */
  uint64_t instance_id = 0;
} aclshmemx_init_attr_t;
#else
typedef struct aclshmemx_init_attr_t {
  int my_pe;
  int n_pes;
  char ip_port[ACLSHMEM_MAX_IP_PORT_LEN];
  uint64_t local_mem_size;
  aclshmem_init_optional_attr_t option_attr;
  void *comm_args;
  uint64_t instance_id;
} aclshmemx_init_attr_t;
#define ACLSHMEMX_INIT_ATTR_INITIALIZER                                                                        \
  {0, 0, {0}, 0, {(1 << 16) + (int)sizeof(aclshmem_init_optional_attr_t), ACLSHMEM_DATA_OP_MTE, DEFAULT_TIMEOUT, \
                  DEFAULT_TIMEOUT, DEFAULT_TIMEOUT, 0}, NULL, 0}
#endif

/* Opaque; copy all of it to the other PEs. It holds the job's secret. */
typedef struct aclshmemx_uniqueid_t {
  int32_t version;
  int my_pe;
  int n_pes;
  char internal[ACLSHMEM_UNIQUE_ID_LENGTH];
} aclshmemx_uniqueid_t;

#define ACLSHMEM_UNIQUEID_INITIALIZER {ACLSHMEM_UNIQUEID_VERSION, 0, 0, {0}}

/* Decrypts a password. plainTextLen: in the room, out the length. 0 is success. (The same machine interface in both languages.) */
#ifdef __cplusplus
typedef int (*aclshmem_decrypt_handler)(const char *cipherText, size_t cipherTextLen, char *plainText, size_t &plainTextLen);
#else
typedef int (*aclshmem_decrypt_handler)(const char *cipherText, size_t cipherTextLen, char *plainText, size_t *plainTextLen);
#endif

#include "../shmem_aliases.h"

#endif
