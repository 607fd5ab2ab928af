/*
 * shmem_host_rma.h - one-sided access. dst of a put and src of a get are symmetric; the other side is any memory.
 *
 * The forms without _nbi return when the transfer is complete at the target. The _nbi forms are complete after a barrier or a quiet. All
 * come after what was queued on the library's default stream before (stream 0), and wait for it. Failures are logged;
 * gshmem_last_error() has the words. Threads: any. Collective: no. Blocks: for the transfer.
 */
#ifndef SHMEM_HOST_RMA_H
#define SHMEM_HOST_RMA_H

#ifdef ACLSHMEM_HAVE_ACL_ON_PATH
#include "acl/acl.h"
#else
#include "../../acl/acl.h"
#endif
#include "../shmem_host_def.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aclshmem_block_mode_t { NO_NBI = 0, NBI = 1 } aclshmem_block_mode_t;

#define ACLSHMEM_TYPE_FUNC(F) \
  F(float, float);            \
  F(double, double);          \
  F(int8, int8_t);            \
  F(int16, int16_t);          \
  F(int32, int32_t);          \
  F(int64, int64_t);          \
  F(uint8, uint8_t);          \
  F(uint16, uint16_t);        \
  F(uint32, uint32_t);        \
  F(uint64, uint64_t);        \
  F(char, char)

/* A peer's copy of ptr as an address here; null when it is out of the heap, or that peer's memory is not mapped. Blocks: no. */
ACLSHMEM_HOST_API void *aclshmem_ptr(void *ptr, int pe);

/* For kernels: pieces of the unified buffer. 0, or ACLSHMEM_INVALID_VALUE when an engine needs more. Blocks: no. */
ACLSHMEM_HOST_API int aclshmemx_set_mte_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id);
ACLSHMEM_HOST_API int aclshmemx_set_sdma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id);
ACLSHMEM_HOST_API int aclshmemx_set_rdma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id);
ACLSHMEM_HOST_API int aclshmemx_set_udma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id);

/* elem_size bytes. */
ACLSHMEM_HOST_API void aclshmem_putmem(void *dst, void *src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmem_getmem(void *dst, void *src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmem_putmem_nbi(void *dst, void *src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmem_getmem_nbi(void *dst, void *src, size_t elem_size, int32_t pe);
ACLSHMEM_HOST_API void aclshmemx_putmem_on_stream(void *dst, void *src, size_t elem_size, int32_t pe, aclrtStream stream);
ACLSHMEM_HOST_API void aclshmemx_getmem_on_stream(void *dst, void *src, size_t elem_size, int32_t pe, aclrtStream stream);

/* nelems elements; strides dst and sst count elements. */
#define ACLSHMEM_TYPED_RMA(NAME, TYPE)                                                                                             \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_put(TYPE *dest, TYPE *source, size_t nelems, int pe);                                  \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_put_nbi(TYPE *dest, TYPE *source, size_t nelems, int pe);                              \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_get(TYPE *dest, TYPE *source, size_t nelems, int pe);                                  \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_get_nbi(TYPE *dest, TYPE *source, size_t nelems, int pe);                              \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_iput(TYPE *dest, TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);   \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_iget(TYPE *dest, TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);   \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_p(TYPE *dst, const TYPE value, int pe);                                                \
  ACLSHMEM_HOST_API TYPE aclshmem_##NAME##_g(TYPE *src, int32_t pe)
ACLSHMEM_TYPE_FUNC(ACLSHMEM_TYPED_RMA);
#undef ACLSHMEM_TYPED_RMA

/* elem_size elements of BITS bits. */
#define ACLSHMEM_SIZED_RMA(BITS)                                                                                                  \
  ACLSHMEM_HOST_API void aclshmem_put##BITS(void *dst, void *src, uint32_t elem_size, int32_t pe);                                \
  ACLSHMEM_HOST_API void aclshmem_put##BITS##_nbi(void *dst, void *src, uint32_t elem_size, int32_t pe);                          \
  ACLSHMEM_HOST_API void aclshmem_get##BITS(void *dst, void *src, uint32_t elem_size, int32_t pe);                                \
  ACLSHMEM_HOST_API void aclshmem_get##BITS##_nbi(void *dst, void *src, uint32_t elem_size, int32_t pe);                          \
  ACLSHMEM_HOST_API void aclshmem_iput##BITS(void *dest, void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);      \
  ACLSHMEM_HOST_API void aclshmem_iget##BITS(void *dest, void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)
ACLSHMEM_SIZE_FUNC(ACLSHMEM_SIZED_RMA);
#undef ACLSHMEM_SIZED_RMA

#ifdef __cplusplus
}
#endif

#endif
