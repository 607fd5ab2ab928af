// shmem_device_rdma.h: transfers and atomics by RDMA queues that the core drives itself.
//
// Each core has a queue to each PE (shmem_state.h). buf is UB scratch for one queue entry: 64 bytes,
// 32-byte aligned; sync_id a free event id of S_MTE3 and MTE3_S. Forms without sync_id use the
// state's. Both sides of a transfer must be symmetric memory. nbi forms are complete after quiet.
#ifndef ACLSHMEM_DEVICE_RDMA_H
#define ACLSHMEM_DEVICE_RDMA_H

#include "device/internal/engine_sync.h"

// The address that the RDMA engine uses for a symmetric object on `pe`; null when there is none.
ACLSHMEM_DEVICE __gm__ void* aclshmem_roce_ptr(__gm__ void* ptr, int pe)
{
    return reinterpret_cast<__gm__ void*>(gshmem::engine_address(gshmem::ENGINE_RDMA, reinterpret_cast<uint64_t>(ptr), pe));
}

#define GSHMEM_ROCE(WHAT, CALL) \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_##WHAT##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t elem_size, int pe, uint32_t sync_id) \
    { \
        gshmem::CALL(gshmem::ENGINE_RDMA, gshmem::addr_of(dst), gshmem::addr_of(src), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::scratch_at(buf, sync_id)); \
    } \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_##WHAT##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T* buf, uint32_t elem_size, int pe) \
    { \
        aclshmemx_roce_##WHAT##_nbi<T>(dst, src, buf, elem_size, pe, gshmem::context().rdma.event); \
    } \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_##WHAT##_nbi(AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T> buf, uint32_t elem_size, int pe, uint32_t sync_id) \
    { \
        gshmem::CALL(gshmem::ENGINE_RDMA, gshmem::addr_of(dst.GetPhyAddr(0)), gshmem::addr_of(src.GetPhyAddr(0)), static_cast<uint64_t>(elem_size) * sizeof(T), pe, gshmem::Scratch{gshmem::ub_of(buf), sync_id}); \
    } \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_##WHAT##_nbi(AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T> buf, uint32_t elem_size, int pe) \
    { \
        aclshmemx_roce_##WHAT##_nbi<T>(dst, src, buf, elem_size, pe, gshmem::context().rdma.event); \
    }
GSHMEM_ROCE(put, engine_write)
GSHMEM_ROCE(get, engine_read)
#undef GSHMEM_ROCE

// Everything this core posted to pe is complete there.
template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_quiet(uint32_t pe, __ubuf__ T*, uint32_t)
{
    gshmem::engine_drain(gshmem::ENGINE_RDMA, static_cast<int>(pe));
    gshmem::quiet();
}

// Barriers whose flags travel by RDMA. Collective over the team; blocks: all of the launch. sync
// orders nothing but arrival; barrier completes every core's RDMA work first. 0, or -1 for a null
// team. team is an entry of the state's team_pools.
template <typename T> ACLSHMEM_DEVICE int aclshmemx_roce_team_sync(aclshmemx_team_t* team, __ubuf__ T* buf, uint32_t sync_id)
{
    return gshmem::engine_barrier(gshmem::ENGINE_RDMA, reinterpret_cast<uint64_t>(team), gshmem::scratch_at(buf, sync_id), false);
}
ACLSHMEM_DEVICE int aclshmemx_roce_team_sync(aclshmemx_team_t* team)
{
    return gshmem::engine_barrier(gshmem::ENGINE_RDMA, reinterpret_cast<uint64_t>(team), gshmem::default_scratch(gshmem::ENGINE_RDMA), false);
}
template <typename T> ACLSHMEM_DEVICE int aclshmemx_roce_barrier(aclshmemx_team_t* team, __ubuf__ T* buf, uint32_t sync_id)
{
    return gshmem::engine_barrier(gshmem::ENGINE_RDMA, reinterpret_cast<uint64_t>(team), gshmem::scratch_at(buf, sync_id), true);
}
ACLSHMEM_DEVICE int aclshmemx_roce_barrier(aclshmemx_team_t* team)
{
    return gshmem::engine_barrier(gshmem::ENGINE_RDMA, reinterpret_cast<uint64_t>(team), gshmem::default_scratch(gshmem::ENGINE_RDMA), true);
}
template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_sync_all(__ubuf__ T* buf, uint32_t sync_id)
{
    (void)gshmem::engine_barrier(gshmem::ENGINE_RDMA, gshmem::team_of(0).address, gshmem::scratch_at(buf, sync_id), false);
}
ACLSHMEM_DEVICE void aclshmemx_roce_sync_all()
{
    (void)gshmem::engine_barrier(gshmem::ENGINE_RDMA, gshmem::team_of(0).address, gshmem::default_scratch(gshmem::ENGINE_RDMA), false);
}
template <typename T> ACLSHMEM_DEVICE void aclshmemx_roce_barrier_all(__ubuf__ T* buf, uint32_t sync_id)
{
    (void)gshmem::engine_barrier(gshmem::ENGINE_RDMA, gshmem::team_of(0).address, gshmem::scratch_at(buf, sync_id), true);
}
ACLSHMEM_DEVICE void aclshmemx_roce_barrier_all()
{
    (void)gshmem::engine_barrier(gshmem::ENGINE_RDMA, gshmem::team_of(0).address, gshmem::default_scratch(gshmem::ENGINE_RDMA), true);
}

GSHMEM_ENGINE_ATOMICS(roce, gshmem::ENGINE_RDMA)

#endif
