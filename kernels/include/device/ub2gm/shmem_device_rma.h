// shmem_device_rma.h (ub2gm): typed transfers between UB and another PE; see engine/shmem_device_mte.h.
#ifndef ACLSHMEM_DEVICE_UB2GM_RMA_H
#define ACLSHMEM_DEVICE_UB2GM_RMA_H

#include "device/ub2gm/engine/shmem_device_mte.h"

#define GSHMEM_UB_RMA(NAME, TYPE) \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(__ubuf__ TYPE* dst, __gm__ TYPE* src, uint32_t elem_size, int pe) { aclshmemx_mte_get_nbi<TYPE>(dst, src, elem_size, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(AscendC::LocalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, uint32_t elem_size, int pe) { aclshmemx_mte_get_nbi<TYPE>(dst, src, elem_size, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(__ubuf__ TYPE* dst, __gm__ TYPE* src, const non_contiguous_copy_param& copy_params, int pe) { aclshmemx_mte_get_nbi<TYPE>(dst, src, copy_params, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(AscendC::LocalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, const non_contiguous_copy_param& copy_params, int pe) { aclshmemx_mte_get_nbi<TYPE>(dst, src, copy_params, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(__gm__ TYPE* dst, __ubuf__ TYPE* src, uint32_t elem_size, int32_t pe) { aclshmemx_mte_put_nbi<TYPE>(dst, src, elem_size, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(AscendC::GlobalTensor<TYPE> dst, AscendC::LocalTensor<TYPE> src, uint32_t elem_size, int32_t pe) { aclshmemx_mte_put_nbi<TYPE>(dst, src, elem_size, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(__gm__ TYPE* dst, __ubuf__ TYPE* src, const non_contiguous_copy_param& copy_params, int32_t pe) { aclshmemx_mte_put_nbi<TYPE>(dst, src, copy_params, pe, 0); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(AscendC::GlobalTensor<TYPE> dst, AscendC::LocalTensor<TYPE> src, const non_contiguous_copy_param& copy_params, int32_t pe) { aclshmemx_mte_put_nbi<TYPE>(dst, src, copy_params, pe, 0); }
GSHMEM_RMA_TYPES(GSHMEM_UB_RMA)
#undef GSHMEM_UB_RMA

#endif
