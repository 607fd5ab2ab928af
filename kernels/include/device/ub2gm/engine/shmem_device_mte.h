// shmem_device_mte.h (ub2gm): transfers between this core's unified buffer and another PE.
// Asynchronous on MTE2 (get) and MTE3 (put): the caller orders them by flags; sync_id is not used.
// Rows of a non-contiguous copy start at 32-byte blocks in UB.
#ifndef ACLSHMEM_DEVICE_UB2GM_MTE_H
#define ACLSHMEM_DEVICE_UB2GM_MTE_H

#include "device/internal/amo.h"

namespace gshmem {

template <typename T> ACLSHMEM_DEVICE void get_ub(uint32_t ub, uint64_t src, uint32_t elems, int pe)
{
    if (elems) load_rows<T>(ub, peer_address(src, pe), 1, elems * static_cast<uint32_t>(sizeof(T)), 0);
}
template <typename T> ACLSHMEM_DEVICE void put_ub(uint64_t dst, uint32_t ub, uint32_t elems, int pe)
{
    if (elems) store_rows<T>(peer_address(dst, pe), ub, 1, elems * static_cast<uint32_t>(sizeof(T)), 0);
}
template <typename T> ACLSHMEM_DEVICE uint32_t ub_addr(__ubuf__ T* p) { return static_cast<uint32_t>(reinterpret_cast<uint64_t>(p)); }

} // namespace gshmem

template <typename T> ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(__ubuf__ T* dst, __gm__ T* src, uint32_t elem_size, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::get_ub<T>(gshmem::ub_addr(dst), gshmem::addr_of(src), elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(AscendC::LocalTensor<T> dst, AscendC::GlobalTensor<T> src, uint32_t elem_size, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::get_ub<T>(gshmem::ub_of(dst), gshmem::addr_of(src.GetPhyAddr(0)), elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(__ubuf__ T* dst, __gm__ T* src, const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::load_ub<T>(gshmem::ub_addr(dst), gshmem::peer_address(gshmem::addr_of(src), pe), copy_params);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(AscendC::LocalTensor<T> dst, AscendC::GlobalTensor<T> src, const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::load_ub<T>(gshmem::ub_of(dst), gshmem::peer_address(gshmem::addr_of(src.GetPhyAddr(0)), pe), copy_params);
}
template <typename T> ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(__gm__ T* dst, __ubuf__ T* src, uint32_t elem_size, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::put_ub<T>(gshmem::addr_of(dst), gshmem::ub_addr(src), elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(AscendC::GlobalTensor<T> dst, AscendC::LocalTensor<T> src, uint32_t elem_size, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::put_ub<T>(gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::ub_of(src), elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(__gm__ T* dst, __ubuf__ T* src, const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::store_ub<T>(gshmem::peer_address(gshmem::addr_of(dst), pe), gshmem::ub_addr(src), copy_params);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(AscendC::GlobalTensor<T> dst, AscendC::LocalTensor<T> src, const non_contiguous_copy_param& copy_params, int pe, uint32_t sync_id)
{
    (void)sync_id;
    gshmem::store_ub<T>(gshmem::peer_address(gshmem::addr_of(dst.GetPhyAddr(0)), pe), gshmem::ub_of(src), copy_params);
}

#endif
