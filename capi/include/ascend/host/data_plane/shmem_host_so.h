/*
 * shmem_host_so.h - puts with a signal, and signals. The signal is an aligned word of four bytes, whatever the pointer's type.
 *
 * Whoever sees the signal sees the data. sig_op is a value of aclshmem_signal_op_type_t; zero bytes still signal.
 * Threads: any. Collective: no. Blocks: for the transfer.
 */
#ifndef SHMEM_HOST_SO_H
#define SHMEM_HOST_SO_H

#include "shmem_host_rma.h"

#ifdef __cplusplus
extern "C" {
#endif

ACLSHMEM_HOST_API void aclshmemx_putmem_signal(void *dst, void *src, size_t elem_size, void *sig_addr, int32_t signal, int sig_op, int pe);
ACLSHMEM_HOST_API void aclshmemx_putmem_signal_nbi(void *dst, void *src, size_t elem_size, void *sig_addr, int32_t signal, int sig_op, int pe);

#define ACLSHMEM_TYPED_PUT_SIGNAL(NAME, TYPE)                                                                                      \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_put_signal(TYPE *dst, TYPE *src, size_t elem_size, uint8_t *sig_addr, int32_t signal,  \
                                                      int sig_op, int pe);                                                        \
  ACLSHMEM_HOST_API void aclshmem_##NAME##_put_signal_nbi(TYPE *dst, TYPE *src, size_t elem_size, uint8_t *sig_addr,              \
                                                          int32_t signal, int sig_op, int pe)
ACLSHMEM_TYPE_FUNC(ACLSHMEM_TYPED_PUT_SIGNAL);
#undef ACLSHMEM_TYPED_PUT_SIGNAL

#define ACLSHMEM_SIZED_PUT_SIGNAL(BITS)                                                                                            \
  ACLSHMEM_HOST_API void aclshmem_put##BITS##_signal(void *dst, void *src, size_t nelems, int32_t *sig_addr, int32_t signal,      \
                                                     int sig_op, int pe);                                                         \
  ACLSHMEM_HOST_API void aclshmem_put##BITS##_signal_nbi(void *dst, void *src, size_t nelems, int32_t *sig_addr, int32_t signal,  \
                                                         int sig_op, int pe)
ACLSHMEM_SIZE_FUNC(ACLSHMEM_SIZED_PUT_SIGNAL);
#undef ACLSHMEM_SIZED_PUT_SIGNAL

/* Updates a signal at pe, in order on the stream. Blocks: no. */
ACLSHMEM_HOST_API void aclshmemx_signal_op_on_stream(int32_t *sig_addr, int32_t signal, int sig_op, int pe, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
