// shmem_device_sdma.h: transfers by the device's SDMA engine, and L2 prefetch.
//
// buf: UB scratch of 64 bytes, 32-byte aligned; sync_id: a free event id of S_MTE3 and MTE3_S.
// ub_size is checked to hold an entry. nbi forms are complete after aclshmemx_sdma_quiet().
#ifndef ACLSHMEM_DEVICE_SDMA_H
#define ACLSHMEM_DEVICE_SDMA_H

#include "device/internal/engine_sync.h"

enum ACLSHMEMCMOTYPE { CMO_TYPE_PREFETCH = 6, CMO_TYPE_WRITEBACK = 7, CMO_TYPE_INVALID = 8, CMO_TYPE_FLUSH = 9 };

// Where the forms without an own buffer build their entries.
ACLSHMEM_DEVICE void aclshmemx_set_sdma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id)
{
    gshmem::context().sdma = gshmem::Window{static_cast<uint32_t>(offset), ub_size, sync_id};
}

namespace gshmem {

ACLSHMEM_DEVICE void check_scratch(uint32_t bytes)
{
    if (bytes < sizeof(gshmem_wqe_t)) AscendC::Trap(); // an entry does not fit: it would overwrite the caller's UB
}

// Prefetch only: the other cache operations of the engine are not offered, and trap.
ACLSHMEM_DEVICE void prefetch(uint64_t src, uint64_t bytes, int type, const Scratch& s)
{
    if (type != CMO_TYPE_PREFETCH) AscendC::Trap();
    if (bytes) post(queue_to(ENGINE_SDMA, context().me), gshmem_wqe_t{GSHMEM_OP_PREFETCH, 0, src, 0, bytes, 0, 0, 0, 0}, s);
}

// SDMA queues lead to every PE; all of this core's are drained.
ACLSHMEM_DEVICE void sdma_quiet()
{
    const int n = context().n;
    for (int pe = 0; pe < n; pe++) engine_drain(ENGINE_SDMA, pe);
    quiet();
}

// Raises this core's word at the state's signal_addr once its SDMA work is complete; not when the wait
// for it was aborted.
ACLSHMEM_DEVICE void sdma_notify()
{
    const uint64_t words = load_constant<uint64_t>(context().state + offsetof(gshmem_device_state_t, signal_addr));
    if (!words) AscendC::Trap();
    sdma_quiet();
    if (!aborted()) store_shared<uint32_t>(words + 4 * static_cast<uint64_t>(AscendC::GetBlockIdx()), 1);
}

} // namespace gshmem

#define GSHMEM_SDMA(WHAT, CALL) \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_sdma_##WHAT##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t ub_size, uint32_t elem_size, int pe, uint32_t sync_id) \
    { \
        gshmem::check_scratch(ub_size); \
        gshmem::CALL(gshmem::ENGINE_SDMA, gshmem::addr_of(dst), gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::scratch_at(buf, sync_id)); \
    } \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_sdma_##WHAT##_nbi(AscendC::GlobalTensor<T>& dst, AscendC::GlobalTensor<T>& src, AscendC::LocalTensor<T>& buf, uint32_t elem_size, int pe, uint32_t sync_id) \
    { \
        gshmem::check_scratch(buf.GetSize() * sizeof(T)); \
        gshmem::CALL(gshmem::ENGINE_SDMA, gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::addr_of(src.GetPhyAddr(0)), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::Scratch{gshmem::ub_of(buf), sync_id}); \
    }
GSHMEM_SDMA(put, engine_write)
GSHMEM_SDMA(get, engine_read)
#undef GSHMEM_SDMA

template <typename T>
ACLSHMEM_DEVICE void aclshmemx_cmo_nbi(__gm__ T* src, uint32_t elem_size, ACLSHMEMCMOTYPE cmo_type, __ubuf__ T* buf, uint32_t ub_size, uint32_t sync_id)
{
    gshmem::check_scratch(ub_size);
    gshmem::prefetch(gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T), cmo_type, gshmem::scratch_at(buf, sync_id));
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_cmo_nbi(AscendC::GlobalTensor<T>& src, uint32_t elem_size, ACLSHMEMCMOTYPE cmo_type, AscendC::LocalTensor<T>& buf, uint32_t sync_id)
{
    gshmem::check_scratch(buf.GetSize() * sizeof(T));
    gshmem::prefetch(gshmem::addr_of(src.GetPhyAddr(0)), static_cast<uint64_t>(elem_size) * sizeof(T), cmo_type, gshmem::Scratch{gshmem::ub_of(buf), sync_id});
}

template <typename T> ACLSHMEM_DEVICE void aclshmemx_sdma_quiet(AscendC::LocalTensor<T>&, uint32_t) { gshmem::sdma_quiet(); }
template <typename T> ACLSHMEM_DEVICE void aclshmemx_sdma_quiet(__ubuf__ T*, uint32_t, uint32_t) { gshmem::sdma_quiet(); }
template <typename T> ACLSHMEM_DEVICE void aclshmemx_sdma_notify_record(AscendC::LocalTensor<T>&, uint32_t) { gshmem::sdma_notify(); }
template <typename T> ACLSHMEM_DEVICE void aclshmemx_sdma_notify_record(__ubuf__ T*, uint32_t, uint32_t) { gshmem::sdma_notify(); }

#endif
