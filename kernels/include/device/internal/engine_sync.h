// engine_sync.h: what RDMA and UDMA share: scratch, barriers and atomics through queues.
#ifndef GSHMEM_DEVICE_ENGINE_SYNC_H
#define GSHMEM_DEVICE_ENGINE_SYNC_H

#include "device/internal/barrier.h"

namespace gshmem {

template <typename T> ACLSHMEM_DEVICE Scratch scratch_at(__ubuf__ T* buf, uint32_t event)
{
    return Scratch{static_cast<uint32_t>(reinterpret_cast<uint64_t>(buf)), event};
}

ACLSHMEM_DEVICE Team team_at(uint64_t address)
{
    Team t{address, -1, -1, 0, 0};
    if (!address) return t;
    t.index = load_constant<int32_t>(address + offsetof(gshmem_team_state_t, team_idx));
    t.me = load_constant<int32_t>(address + offsetof(gshmem_team_state_t, mype));
    t.n = load_constant<int32_t>(address + offsetof(gshmem_team_state_t, size));
    t.stop = load_constant<uint64_t>(address + offsetof(gshmem_team_state_t, stop));
    return t;
}

// All blocks of all members, flags by the engine. `complete`: this core's work in the engine's
// queues is done first.
ACLSHMEM_DEVICE int engine_barrier(Engine e, uint64_t team, const Scratch& s, bool complete)
{
    const Team t = team_at(team);
    if (t.me < 0) return -1;
    for (int32_t i = 0; complete && i < t.n; i++) engine_drain(e, t.pe(i));
    team_barrier(t, FlagWriter{e, s}, false);
    return 0;
}

} // namespace gshmem

// Atomics on a symmetric word of 4 or 8 bytes of `pe`, complete on return.
#define GSHMEM_ENGINE_ATOMICS(NAME, ENGINE) \
    template <typename T> ACLSHMEM_DEVICE T aclshmemx_##NAME##_atomic_fetch(__gm__ T* src, int32_t pe) { return gshmem::engine_atomic<T>(ENGINE, GSHMEM_OP_ADD, gshmem::addr_of(src), T{}, T{}, pe); } \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_##NAME##_atomic_set(__gm__ T* dst, T value, int32_t pe) { (void)gshmem::engine_atomic<T>(ENGINE, GSHMEM_OP_SWAP, gshmem::addr_of(dst), value, T{}, pe); } \
    template <typename T> ACLSHMEM_DEVICE T aclshmemx_##NAME##_atomic_compare_swap(__gm__ T* dst, T cond, T value, int32_t pe) { return gshmem::engine_atomic<T>(ENGINE, GSHMEM_OP_CAS, gshmem::addr_of(dst), value, cond, pe); } \
    template <typename T> ACLSHMEM_DEVICE T aclshmemx_##NAME##_atomic_swap(__gm__ T* dst, T value, int32_t pe) { return gshmem::engine_atomic<T>(ENGINE, GSHMEM_OP_SWAP, gshmem::addr_of(dst), value, T{}, pe); } \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_##NAME##_atomic_inc(__gm__ T* dst, int32_t pe) { (void)gshmem::engine_atomic<T>(ENGINE, GSHMEM_OP_ADD, gshmem::addr_of(dst), static_cast<T>(1), T{}, pe); } \
    template <typename T> ACLSHMEM_DEVICE T aclshmemx_##NAME##_atomic_fetch_inc(__gm__ T* dst, int32_t pe) { return gshmem::engine_atomic<T>(ENGINE, GSHMEM_OP_ADD, gshmem::addr_of(dst), static_cast<T>(1), T{}, pe); } \
    GSHMEM_ENGINE_ATOMIC(NAME, ENGINE, add, GSHMEM_OP_ADD) GSHMEM_ENGINE_ATOMIC(NAME, ENGINE, and, GSHMEM_OP_AND) \
    GSHMEM_ENGINE_ATOMIC(NAME, ENGINE, or, GSHMEM_OP_OR) GSHMEM_ENGINE_ATOMIC(NAME, ENGINE, xor, GSHMEM_OP_XOR)
#define GSHMEM_ENGINE_ATOMIC(NAME, ENGINE, WHAT, OP) \
    template <typename T> ACLSHMEM_DEVICE void aclshmemx_##NAME##_atomic_##WHAT(__gm__ T* dst, T value, int32_t pe) { (void)gshmem::engine_atomic<T>(ENGINE, OP, gshmem::addr_of(dst), value, T{}, pe); } \
    template <typename T> ACLSHMEM_DEVICE T aclshmemx_##NAME##_atomic_fetch_##WHAT(__gm__ T* dst, T value, int32_t pe) { return gshmem::engine_atomic<T>(ENGINE, OP, gshmem::addr_of(dst), value, T{}, pe); }

#endif
