// shmem_device_rma.h: put, get and their strided and non-blocking forms.
//
// Sizes are elements for typed and BITS forms, bytes for mem forms. dst of a put and src of a get
// are symmetric addresses of this PE. Blocking forms are complete on return, also at the target;
// _nbi forms after aclshmem_quiet(). Blocks: each call is one core's own; share the work yourself.
// They stage through the UB window of aclshmemx_set_mte_config (16 KiB at offset 0, event id 0,
// unless set): a kernel that uses that UB itself moves the window first.
#ifndef ACLSHMEM_DEVICE_RMA_H
#define ACLSHMEM_DEVICE_RMA_H

#include "device/internal/rma.h"

// Moves the staging window of this core: `offset` 32-byte aligned, ub_size at least 32 (64 and more
// are used as two halves), event ids MTE2_MTE3, MTE3_MTE2 and S_MTE3 number sync_id.
ACLSHMEM_DEVICE void aclshmemx_set_mte_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id)
{
    gshmem::context().mte = gshmem::Window{static_cast<uint32_t>(offset), ub_size, sync_id};
}
ACLSHMEM_DEVICE void aclshmemx_set_udma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id)
{
    gshmem::context().udma = gshmem::Window{static_cast<uint32_t>(offset), ub_size, sync_id};
}

#define GSHMEM_A(p) reinterpret_cast<uint64_t>(p)
#define GSHMEM_TA(t) reinterpret_cast<uint64_t>((t).GetPhyAddr(0))

#define GSHMEM_RMA(NAME, TYPE) \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_p(__gm__ TYPE* dst, const TYPE value, int pe) { gshmem::store_value<TYPE>(gshmem::peer_address(GSHMEM_A(dst), pe), value); } \
    ACLSHMEM_DEVICE TYPE aclshmem_##NAME##_g(__gm__ TYPE* src, int32_t pe) { return gshmem::load_value<TYPE>(gshmem::peer_address(GSHMEM_A(src), pe)); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get(__gm__ TYPE* dst, __gm__ TYPE* src, uint32_t elem_size, int32_t pe) { gshmem::get<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put(__gm__ TYPE* dst, __gm__ TYPE* src, uint32_t elem_size, int32_t pe) { gshmem::put<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_iget(__gm__ TYPE* dest, __gm__ TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { gshmem::iget<TYPE>(GSHMEM_A(dest), GSHMEM_A(source), dst, sst, nelems, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_iput(__gm__ TYPE* dest, __gm__ TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { gshmem::iput<TYPE>(GSHMEM_A(dest), GSHMEM_A(source), dst, sst, nelems, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(__gm__ TYPE* dst, __gm__ TYPE* src, uint32_t elem_size, int32_t pe) { gshmem::get_nbi<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(__gm__ TYPE* dst, __gm__ TYPE* src, const non_contiguous_copy_param& copy_params, int32_t pe) { gshmem::get_rows_nbi<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), copy_params, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(AscendC::GlobalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, uint32_t elem_size, int pe) { gshmem::get_nbi<TYPE>(GSHMEM_TA(dst), GSHMEM_TA(src), elem_size, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_get_nbi(AscendC::GlobalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, const non_contiguous_copy_param& copy_params, int pe) { gshmem::get_rows_nbi<TYPE>(GSHMEM_TA(dst), GSHMEM_TA(src), copy_params, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(__gm__ TYPE* dst, __gm__ TYPE* src, uint32_t elem_size, int32_t pe) { gshmem::put_nbi<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(__gm__ TYPE* dst, __gm__ TYPE* src, const non_contiguous_copy_param& copy_params, int32_t pe) { gshmem::put_rows_nbi<TYPE>(GSHMEM_A(dst), GSHMEM_A(src), copy_params, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(AscendC::GlobalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, uint32_t elem_size, int pe) { gshmem::put_nbi<TYPE>(GSHMEM_TA(dst), GSHMEM_TA(src), elem_size, pe); } \
    ACLSHMEM_DEVICE void aclshmem_##NAME##_put_nbi(AscendC::GlobalTensor<TYPE> dst, AscendC::GlobalTensor<TYPE> src, const non_contiguous_copy_param& copy_params, int pe) { gshmem::put_rows_nbi<TYPE>(GSHMEM_TA(dst), GSHMEM_TA(src), copy_params, pe); }
GSHMEM_RMA_TYPES(GSHMEM_RMA)
#undef GSHMEM_RMA

ACLSHMEM_DEVICE void aclshmem_getmem(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::get<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); }
ACLSHMEM_DEVICE void aclshmem_putmem(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::put<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); }
ACLSHMEM_DEVICE void aclshmem_getmem_nbi(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::get_nbi<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); }
ACLSHMEM_DEVICE void aclshmem_putmem_nbi(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::put_nbi<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), elem_size, pe); }

#define GSHMEM_RMA_BITS(BITS, SIZE) \
    ACLSHMEM_DEVICE void aclshmem_get##BITS(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::get<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), static_cast<uint64_t>(elem_size) * SIZE, pe); } \
    ACLSHMEM_DEVICE void aclshmem_put##BITS(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::put<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), static_cast<uint64_t>(elem_size) * SIZE, pe); } \
    ACLSHMEM_DEVICE void aclshmem_get##BITS##_nbi(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::get_nbi<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), static_cast<uint64_t>(elem_size) * SIZE, pe); } \
    ACLSHMEM_DEVICE void aclshmem_put##BITS##_nbi(__gm__ void* dst, __gm__ void* src, uint32_t elem_size, int32_t pe) { gshmem::put_nbi<uint8_t>(GSHMEM_A(dst), GSHMEM_A(src), static_cast<uint64_t>(elem_size) * SIZE, pe); } \
    ACLSHMEM_DEVICE void aclshmem_iget##BITS(__gm__ void* dest, __gm__ void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { gshmem::icopy_bytes(GSHMEM_A(dest), gshmem::peer_address(GSHMEM_A(source), pe), SIZE, dst * SIZE, sst * SIZE, nelems); } \
    ACLSHMEM_DEVICE void aclshmem_iput##BITS(__gm__ void* dest, __gm__ void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { gshmem::icopy_bytes(gshmem::peer_address(GSHMEM_A(dest), pe), GSHMEM_A(source), SIZE, dst * SIZE, sst * SIZE, nelems); }
GSHMEM_BITS(GSHMEM_RMA_BITS)
#undef GSHMEM_RMA_BITS

#endif
