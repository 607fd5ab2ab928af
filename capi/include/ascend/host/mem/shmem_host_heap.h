/*
 * shmem_host_heap.h - symmetric memory.
 *
 * Contents are zero. Device-side memory is the NPU's where every PE has one (then its addresses are the device's), else host memory;
 * host-side memory is host memory. Each side has local_mem_size.
 * All but the last are collective over the instance's PEs; sizes and order must be equal on all PEs, and an unequal request gives
 * null on every PE with the heap as it was. Null is also the answer for size 0, for want of memory, and without init.
 * Threads: any, in the same order on all PEs. Blocks: until all PEs have called, at most control_operation_timeout.
 */
#ifndef SHMEM_HOST_HEAP_H
#define SHMEM_HOST_HEAP_H

#include "../shmem_host_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device-side memory. Collective. calloc answers null alone (not collective) when a factor is 0 or the product overflows. */
ACLSHMEM_HOST_API void *aclshmem_malloc(size_t size);
ACLSHMEM_HOST_API void *aclshmem_calloc(size_t nmemb, size_t size);
/* alignment is a power of two; another gives null, alone. Collective. */
ACLSHMEM_HOST_API void *aclshmem_align(size_t alignment, size_t size);
/* Frees a whole block; null does nothing, alone. Another pointer is an error and leaves the heap as it is. Collective. */
ACLSHMEM_HOST_API void aclshmem_free(void *ptr);

/* The same for either side. The first host-side call of an instance sets that range up. Collective. */
ACLSHMEM_HOST_API void *aclshmemx_malloc(size_t size, aclshmem_mem_type_t mem_type ACLSHMEM_DEFAULT(DEVICE_SIDE));
ACLSHMEM_HOST_API void *aclshmemx_calloc(size_t count, size_t size, aclshmem_mem_type_t mem_type ACLSHMEM_DEFAULT(DEVICE_SIDE));
ACLSHMEM_HOST_API void *aclshmemx_align(size_t alignment, size_t size, aclshmem_mem_type_t mem_type ACLSHMEM_DEFAULT(DEVICE_SIDE));
ACLSHMEM_HOST_API void aclshmemx_free(void *ptr, aclshmem_mem_type_t mem_type ACLSHMEM_DEFAULT(DEVICE_SIDE));

/* First address of this PE's range; null when it is not set up. Threads: any. Collective: no. Blocks: no. */
ACLSHMEM_HOST_API void *aclshmemx_get_heap_base(aclshmem_mem_type_t mem_type ACLSHMEM_DEFAULT(DEVICE_SIDE));

#ifdef __cplusplus
}
#endif

#endif
