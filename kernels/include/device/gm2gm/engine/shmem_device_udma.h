// shmem_device_udma.h: transfers and atomics by UDMA queues (950 only; elsewhere a use traps).
//
// buf, sync_id: as for RDMA. relay forms travel over relay_pe's links. WQE_PIPE names the pipe that
// writes the queue entry; only PIPE_MTE3 is offered.
#ifndef ACLSHMEM_DEVICE_UDMA_H
#define ACLSHMEM_DEVICE_UDMA_H

#include "device/internal/engine_sync.h"

#define GSHMEM_UDMA(WHAT, CALL) \
    template <typename T, pipe_t WQE_PIPE = PIPE_MTE3> ACLSHMEM_DEVICE void aclshmemx_udma_##WHAT##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t elem_size, int pe, uint32_t sync_id = 0) \
    { \
        static_assert(WQE_PIPE == PIPE_MTE3, "queue entries are written by MTE3"); \
        gshmem::CALL(gshmem::ENGINE_UDMA, gshmem::addr_of(dst), gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::scratch_at(buf, sync_id)); \
    } \
    template <typename T, pipe_t WQE_PIPE = PIPE_MTE3> ACLSHMEM_DEVICE void aclshmemx_udma_##WHAT##_nbi(const AscendC::GlobalTensor<T>& dst, const AscendC::GlobalTensor<T>& src, const AscendC::LocalTensor<T>& buf, uint32_t elem_size, int pe, uint32_t sync_id = 0) \
    { \
        static_assert(WQE_PIPE == PIPE_MTE3, "queue entries are written by MTE3"); \
        gshmem::CALL(gshmem::ENGINE_UDMA, gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::addr_of(src.GetPhyAddr(0)), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::Scratch{gshmem::ub_of(buf), sync_id}); \
    } \
    template <typename T, pipe_t WQE_PIPE = PIPE_MTE3> ACLSHMEM_DEVICE void aclshmemx_udma_relay_##WHAT##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t elem_size, int pe, int relay_pe, uint32_t sync_id = 0) \
    { \
        static_assert(WQE_PIPE == PIPE_MTE3, "queue entries are written by MTE3"); \
        gshmem::CALL(gshmem::ENGINE_UDMA, gshmem::addr_of(dst), gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::scratch_at(buf, sync_id), 1 + static_cast<uint64_t>(relay_pe)); \
    } \
    template <typename T, pipe_t WQE_PIPE = PIPE_MTE3> ACLSHMEM_DEVICE void aclshmemx_udma_relay_##WHAT##_nbi(const AscendC::GlobalTensor<T>& dst, const AscendC::GlobalTensor<T>& src, const AscendC::LocalTensor<T>& buf, uint32_t elem_size, int pe, int relay_pe, uint32_t sync_id = 0) \
    { \
        static_assert(WQE_PIPE == PIPE_MTE3, "queue entries are written by MTE3"); \
        gshmem::CALL(gshmem::ENGINE_UDMA, gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::addr_of(src.GetPhyAddr(0)), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::Scratch{gshmem::ub_of(buf), sync_id}, 1 + static_cast<uint64_t>(relay_pe)); \
    }
GSHMEM_UDMA(put, engine_write)
GSHMEM_UDMA(get, engine_read)
#undef GSHMEM_UDMA

// The 64-bit signal is stored after the data is complete, because the queue works in order.
template <typename T, pipe_t WQE_PIPE = PIPE_MTE3>
ACLSHMEM_DEVICE void aclshmemx_udma_put_signal_nbi(__gm__ T* dst, __gm__ T* src, uint32_t elem_size, __gm__ uint64_t* sig_addr, uint64_t signal, int pe,
                                                   __ubuf__ uint8_t* buf, uint32_t sync_id = 0)
{
    static_assert(WQE_PIPE == PIPE_MTE3, "queue entries are written by MTE3");
    const gshmem::Scratch s = gshmem::scratch_at(buf, sync_id);
    gshmem::engine_write(gshmem::ENGINE_UDMA, gshmem::addr_of(dst), gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T), pe, s);
    gshmem::engine_set(gshmem::ENGINE_UDMA, gshmem::addr_of(sig_addr), signal, 8, pe, s);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_udma_put_signal_nbi(__gm__ T* dst, __gm__ T* src, uint32_t elem_size, __gm__ uint64_t* sig_addr, uint64_t signal, int pe)
{
    const gshmem::Window& w = gshmem::context().udma;
    aclshmemx_udma_put_signal_nbi<T, PIPE_MTE3>(dst, src, elem_size, sig_addr, signal, pe, reinterpret_cast<__ubuf__ uint8_t*>(static_cast<uint64_t>(w.offset)), w.event);
}

// Everything this core posted to pe is complete there.
ACLSHMEM_DEVICE void aclshmemx_udma_quiet(int pe)
{
    gshmem::engine_drain(gshmem::ENGINE_UDMA, pe);
    gshmem::quiet();
}

GSHMEM_ENGINE_ATOMICS(udma, gshmem::ENGINE_UDMA)

#endif
