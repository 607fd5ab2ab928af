/*
 * acl_rt.h - stand-in for CANN's header of this name on hosts without an NPU.
 *
 * The types and calls that programs around SHMEM use, so that they compile and run unchanged. Device memory is memory; a stream is
 * a thread that runs what is queued to it in order. With CANN installed put its include directory first: this file is then not read. Every
 * other call of CANN is missing here on purpose, so that a program needing it does not compile instead of doing nothing.
 */
#ifndef ACLSHMEM_STAND_IN_ACL_RT_H
#define ACLSHMEM_STAND_IN_ACL_RT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ACLSHMEM_STAND_IN_ACL 1

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;

#define ACL_SUCCESS 0
#define ACL_ERROR_NONE 0
#define ACL_ERROR_INVALID_PARAM 100000
#define ACL_ERROR_BAD_ALLOC 200000
#define ACL_ERROR_RT_FAILURE 500003

typedef enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2
} aclrtMemMallocPolicy;

/* What the library gives for this. A stream is 0 (the library's default stream) or comes from stream_create. Results are 0, or
   ACL_ERROR_*; stream_wait also gives the first failure of what ran on the stream since the last wait, as a gshmem status. */
__attribute__((visibility("default"))) int aclshmem_cpu_stream_create(void **stream_out);
__attribute__((visibility("default"))) int aclshmem_cpu_stream_destroy(void *stream); /* finishes its work first */
__attribute__((visibility("default"))) int aclshmem_cpu_stream_wait(void *stream);
__attribute__((visibility("default"))) int aclshmem_cpu_stream_idle(void *stream, int *idle_out);
__attribute__((visibility("default"))) int aclshmem_cpu_stream_call(void *stream, void (*function)(void *), void *argument);
__attribute__((visibility("default"))) int aclshmem_cpu_stream_copy(void *stream, void *dst, const void *src, size_t count);
__attribute__((visibility("default"))) int aclshmem_cpu_stream_fill(void *stream, void *dst, int32_t value, size_t count);
__attribute__((visibility("default"))) int aclshmem_cpu_device_wait(void); /* every stream of the process */
__attribute__((visibility("default"))) int aclshmem_cpu_on_device(const void *address); /* whether it is symmetric memory of a device, which the CPU must not follow */
__attribute__((visibility("default"))) int aclshmem_cpu_last_status(void);  /* first failure of this thread's calls without a result; clears it */
__attribute__((visibility("default"))) const char *aclshmem_cpu_last_error(void);

/* ---- device ---- */
static inline aclError aclrtSetDevice(int32_t deviceId) { return deviceId < 0 ? ACL_ERROR_INVALID_PARAM : ACL_SUCCESS; }
static inline aclError aclrtResetDevice(int32_t deviceId) { return deviceId < 0 ? ACL_ERROR_INVALID_PARAM : ACL_SUCCESS; }
/* One per process: PEs of one host take the numbers they like. */
static inline aclError aclrtGetDeviceCount(uint32_t *count) {
  *count = 1;
  return ACL_SUCCESS;
}
static inline const char *aclrtGetSocName(void) { return "host"; }
static inline aclError aclrtSynchronizeDevice(void) { return aclshmem_cpu_device_wait(); }

/* ---- streams ---- */
static inline aclError aclrtCreateStream(aclrtStream *stream) { return aclshmem_cpu_stream_create(stream); }
static inline aclError aclrtDestroyStream(aclrtStream stream) { return aclshmem_cpu_stream_destroy(stream); }
static inline aclError aclrtSynchronizeStream(aclrtStream stream) { return aclshmem_cpu_stream_wait(stream); }
typedef void (*aclrtHostFunc)(void *args);
static inline aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) { return aclshmem_cpu_stream_call(stream, fn, args); }

/* ---- memory ---- */
static inline aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
  (void)policy;
  if (!devPtr || !size) return ACL_ERROR_INVALID_PARAM;
  *devPtr = malloc(size);
  return *devPtr ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC;
}
static inline aclError aclrtFree(void *devPtr) {
  free(devPtr);
  return ACL_SUCCESS;
}
static inline aclError aclrtMallocHost(void **hostPtr, size_t size) { return aclrtMalloc(hostPtr, size, ACL_MEM_MALLOC_HUGE_FIRST); }
static inline aclError aclrtFreeHost(void *hostPtr) { return aclrtFree(hostPtr); }
static inline aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
  if (count > maxCount || (!devPtr && count)) return ACL_ERROR_INVALID_PARAM;
  if (count) memset(devPtr, value, count);
  return ACL_SUCCESS;
}
static inline aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  if (count > maxCount || (!devPtr && count)) return ACL_ERROR_INVALID_PARAM;
  return aclshmem_cpu_stream_fill(stream, devPtr, value, count);
}
static inline aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
  (void)kind; /* as in CANN: the direction follows from the addresses */
  if (count > destMax || ((!dst || !src) && count)) return ACL_ERROR_INVALID_PARAM;
  if (count) memmove(dst, src, count);
  return ACL_SUCCESS;
}
static inline aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream) {
  (void)kind;
  if (count > destMax || ((!dst || !src) && count)) return ACL_ERROR_INVALID_PARAM;
  return aclshmem_cpu_stream_copy(stream, dst, src, count);
}

#ifdef __cplusplus
}
#endif

#endif
