// shmem_device_mte.h: transfers by the core's own copy engines, and the atomics they carry.
#ifndef ACLSHMEM_DEVICE_GM2GM_MTE_H
#define ACLSHMEM_DEVICE_GM2GM_MTE_H

#include "device/internal/amo.h"

// The address of a symmetric object on `pe`, usable by this core's engines; null when it is not
// symmetric, pe does not exist or is not mapped.
ACLSHMEM_DEVICE __gm__ void* aclshmem_ptr(__gm__ void* ptr, int pe)
{
    return reinterpret_cast<__gm__ void*>(gshmem::peer_address(reinterpret_cast<uint64_t>(ptr), pe));
}

// Starts a copy of elem_size elements from `pe` through `buf` (ub_size bytes, at least 32; 64 or
// more are used as two halves). Event ids MTE2_MTE3 and MTE3_MTE2 number sync_id are used and free
// again on return. The copy is complete after aclshmemx_mte_quiet() or a flag from MTE3.
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t ub_size, uint32_t elem_size, int pe, uint32_t sync_id)
{
    gshmem::copy_gm<T>(gshmem::addr_of(dst), gshmem::peer_address(gshmem::addr_of(src), pe), static_cast<uint64_t>(elem_size) * sizeof(T),
                       static_cast<uint32_t>(reinterpret_cast<uint64_t>(buf)), ub_size, sync_id);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t ub_size,
                                           const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    gshmem::copy_gm_rows<T>(gshmem::addr_of(dst), gshmem::peer_address(gshmem::addr_of(src), pe), copy_params,
                            static_cast<uint32_t>(reinterpret_cast<uint64_t>(buf)), ub_size, sync_id);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T> buf,
                                           uint32_t elem_size, int pe, uint32_t sync_id)
{
    gshmem::copy_gm<T>(gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::peer_address(gshmem::addr_of(src.GetPhyAddr(0)), pe),
                       static_cast<uint64_t>(elem_size) * sizeof(T), gshmem::ub_of(buf), buf.GetSize() * sizeof(T), sync_id);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T> buf,
                                           const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    gshmem::copy_gm_rows<T>(gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::peer_address(gshmem::addr_of(src.GetPhyAddr(0)), pe), copy_params,
                            gshmem::ub_of(buf), buf.GetSize() * sizeof(T), sync_id);
}

// The same towards `pe`.
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t ub_size, uint32_t elem_size, int pe, uint32_t sync_id)
{
    gshmem::copy_gm<T>(gshmem::peer_address(gshmem::addr_of(dst), pe), gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T),
                       static_cast<uint32_t>(reinterpret_cast<uint64_t>(buf)), ub_size, sync_id);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t ub_size,
                                           const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    gshmem::copy_gm_rows<T>(gshmem::peer_address(gshmem::addr_of(dst), pe), gshmem::addr_of(src), copy_params,
                            static_cast<uint32_t>(reinterpret_cast<uint64_t>(buf)), ub_size, sync_id);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T> buf,
                                           uint32_t elem_size, int pe, uint32_t sync_id)
{
    gshmem::copy_gm<T>(gshmem::peer_address(gshmem::addr_of(dst.GetPhyAddr(0)), pe), gshmem::addr_of(src.GetPhyAddr(0)),
                       static_cast<uint64_t>(elem_size) * sizeof(T), gshmem::ub_of(buf), buf.GetSize() * sizeof(T), sync_id);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T> buf,
                                           const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    gshmem::copy_gm_rows<T>(gshmem::peer_address(gshmem::addr_of(dst.GetPhyAddr(0)), pe), gshmem::addr_of(src.GetPhyAddr(0)), copy_params,
                            gshmem::ub_of(buf), buf.GetSize() * sizeof(T), sync_id);
}

// All of this core's MTE transfers and scalar stores are complete at their targets.
ACLSHMEM_DEVICE void aclshmemx_mte_quiet() { gshmem::quiet(); }

// Atomics on a symmetric word of `pe`. add works for int8, int16, half, bfloat16, int32 and float
// on every chip, and is complete on return; the rest needs a 950 and does not compile elsewhere.
template <typename T> ACLSHMEM_DEVICE void aclshmemx_mte_atomic_add(__gm__ T* dst, T value, int32_t pe) { gshmem::atomic_add<T>(gshmem::addr_of(dst), value, pe); }
template <typename T> ACLSHMEM_DEVICE void aclshmemx_mte_atomic_inc(__gm__ T* dst, int32_t pe) { gshmem::atomic_add<T>(gshmem::addr_of(dst), static_cast<T>(1), pe); }
template <typename T> ACLSHMEM_DEVICE T aclshmemx_mte_atomic_fetch(__gm__ T* src, int32_t pe) { return gshmem::atomic_fetch<T>(gshmem::addr_of(src), pe); }
template <typename T> ACLSHMEM_DEVICE void aclshmemx_mte_atomic_set(__gm__ T* dst, T value, int32_t pe) { (void)gshmem::atomic_swap<T>(gshmem::addr_of(dst), value, pe); }
template <typename T> ACLSHMEM_DEVICE T aclshmemx_mte_atomic_swap(__gm__ T* dst, T value, int32_t pe) { return gshmem::atomic_swap<T>(gshmem::addr_of(dst), value, pe); }
template <typename T> ACLSHMEM_DEVICE T aclshmemx_mte_atomic_compare_swap(__gm__ T* dst, T cond, T value, int32_t pe) { return gshmem::atomic_compare_swap<T>(gshmem::addr_of(dst), cond, value, pe); }
template <typename T> ACLSHMEM_DEVICE T aclshmemx_mte_atomic_fetch_add(__gm__ T* dst, T value, int32_t pe) { return gshmem::atomic_fetch_add<T>(gshmem::addr_of(dst), value, pe); }
template <typename T> ACLSHMEM_DEVICE T aclshmemx_mte_atomic_fetch_inc(__gm__ T* dst, int32_t pe) { return gshmem::atomic_fetch_add<T>(gshmem::addr_of(dst), static_cast<T>(1), pe); }

#endif
