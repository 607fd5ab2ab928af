// shmem_device_so.h: put with a signal. The signal changes after the data is complete at the
// target, also for zero elements. By MTE whenever the peer is mapped, else by RDMA (contiguous forms). The signal word is int32; sig_op is
// ACLSHMEM_SIGNAL_SET or _ADD. Sizes as in shmem_device_rma.h.
#ifndef ACLSHMEM_DEVICE_SO_H
#define ACLSHMEM_DEVICE_SO_H

#include "device/gm2gm/shmem_device_rma.h"

namespace gshmem {

template <typename T>
ACLSHMEM_DEVICE void put_signal(uint64_t dst, uint64_t src, uint64_t elems, uint64_t sig, int32_t value, int op, int pe)
{
    put_before_signal<T>(dst, src, elems * sizeof(T), pe);
    signal(sig, value, op, pe);
}
template <typename T>
ACLSHMEM_DEVICE void put_rows_signal(uint64_t dst, uint64_t src, const non_contiguous_copy_param& p, uint64_t sig, int32_t value, int op, int pe)
{
    put_rows_nbi<T>(dst, src, p, pe);
    quiet();
    signal(sig, value, op, pe);
}

} // namespace gshmem

#define GSHMEM_PUT_SIGNAL(NAME, TYPE, SUFFIX) \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_##SUFFIX(__gm__ TYPE* dst, __gm__ TYPE* src, size_t elem_size, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe) { gshmem::put_signal<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, GSHMEM_A(sig_addr), signal, sig_op, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_##SUFFIX(AscendC::GlobalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, size_t elem_size, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe) { gshmem::put_signal<TYPE>(GSHMEM_TA(dst), GSHMEM_TA(src), elem_size, GSHMEM_A(sig_addr), signal, sig_op, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_##SUFFIX(__gm__ TYPE* dst, __gm__ TYPE* src, const non_contiguous_copy_param& copy_params, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe) { gshmem::put_rows_signal<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), copy_params, GSHMEM_A(sig_addr), signal, sig_op, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_##SUFFIX(AscendC::GlobalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, const non_contiguous_copy_param& copy_params, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe) { gshmem::put_rows_signal<TYPE>(GSHMEM_TA(dst), GSHMEM_TA(src), copy_params, GSHMEM_A(sig_addr), signal, sig_op, pe); }
#define GSHMEM_PUT_SIGNALS(NAME, TYPE) GSHMEM_PUT_SIGNAL(NAME, TYPE, put_signal) GSHMEM_PUT_SIGNAL(NAME, TYPE, put_signal_nbi)
GSHMEM_RMA_TYPES(GSHMEM_PUT_SIGNALS)
#undef GSHMEM_PUT_SIGNALS
#undef GSHMEM_PUT_SIGNAL

#define GSHMEM_PUT_SIGNAL_BITS(BITS, SIZE) \
    ACLSHMEM_DEVICE void aclshmem_put##BITS##_signal(__gm__ void* dst, __gm__ void* src, size_t nelems, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe) { gshmem::put_signal<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), nelems * SIZE, GSHMEM_A(sig_addr), signal, sig_op, pe); } \
    ACLSHMEM_DEVICE void aclshmem_put##BITS##_signal_nbi(__gm__ void* dst, __gm__ void* src, size_t nelems, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe) { gshmem::put_signal<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), nelems * SIZE, GSHMEM_A(sig_addr), signal, sig_op, pe); }
GSHMEM_BITS(GSHMEM_PUT_SIGNAL_BITS)
#undef GSHMEM_PUT_SIGNAL_BITS

ACLSHMEM_DEVICE void aclshmem_putmem_signal(__gm__ void* dst, __gm__ void* src, size_t elem_size, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe)
{
    gshmem::put_signal<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, GSHMEM_A(sig_addr), signal, sig_op, pe);
}
ACLSHMEM_DEVICE void aclshmem_putmem_signal_nbi(__gm__ void* dst, __gm__ void* src, size_t elem_size, __gm__ int32_t* sig_addr, int32_t signal, int sig_op, int pe)
{
    gshmem::put_signal<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, GSHMEM_A(sig_addr), signal, sig_op, pe);
}

#endif
