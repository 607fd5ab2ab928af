/*
 * shmem_host_init.h - coming up, leaving, instances, and what an instance is.
 *
 * int results are 0 or a code of aclshmem_error_code_t; gshmem_last_error() of gshmem.h has the words, which also go to the log.
 */
#ifndef SHMEM_HOST_INIT_H
#define SHMEM_HOST_INIT_H

#include "../shmem_host_def.h"
#include "../../host_device/shmem_common_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Comes up as attributes->my_pe of n_pes and makes the instance current. Threads: any. Collective: over the instance. Blocks: at most
   shm_init_timeout seconds. */
ACLSHMEM_HOST_API int aclshmemx_init_attr(aclshmemx_bootstrap_t bootstrap_flags, aclshmemx_init_attr_t *attributes);
/* A value of aclshmemx_init_status_t for the current instance. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API int aclshmemx_init_status(void);
/* Makes the id of a new job; the caller listens for it from now on. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t *uid);
/* Fills the attributes for init with a unique id; *uid must live until init has returned. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size, aclshmemx_uniqueid_t *uid,
                                                       aclshmemx_init_attr_t *aclshmem_attr);

/* Connections are always encrypted and authenticated. enable: the key set below is the job's secret (equal on all PEs); else
   SHMEM_SECRET is, or a private file on one host. Before init. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API int32_t aclshmemx_set_conf_store_tls(bool enable, const char *tls_info, const uint32_t tls_info_len);
/* The key, and its password, which the handler (null: none needed) decrypts during init on the calling thread. Texts are copied. */
ACLSHMEM_HOST_API int32_t aclshmemx_set_config_store_tls_key(const char *tls_pk, const uint32_t tls_pk_len, const char *tls_pk_pw,
                                                             const uint32_t tls_pk_pw_len, const aclshmem_decrypt_handler decrypt_handler);

/* Leaves the current instance. 0 also when there is none. Threads: any. Collective: over the instance. Blocks: until all leave. */
ACLSHMEM_HOST_API int aclshmem_finalize(void);
ACLSHMEM_HOST_API int aclshmemx_finalize(uint64_t instance_id);

/* Ends all PEs of the current instance with this exit status, this process included. Does not return after init; does nothing
   before. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API void aclshmem_global_exit(int status);

/* -1 before init. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API int aclshmem_my_pe(void);
ACLSHMEM_HOST_API int aclshmem_n_pes(void);
ACLSHMEM_HOST_API void aclshmem_info_get_version(int *major, int *minor);
/* name holds ACLSHMEM_MAX_NAME_LEN characters. */
ACLSHMEM_HOST_API void aclshmem_info_get_name(char *name);

/* Which instance the other calls mean, for the whole process. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API aclshmem_instance_ctx *aclshmemx_instance_ctx_get(void);
ACLSHMEM_HOST_API int aclshmemx_instance_ctx_set(uint64_t instance_id);

#ifdef __cplusplus
}
#endif

#endif
