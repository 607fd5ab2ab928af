// barrier.h: the barrier among the PEs of a team, and among all their blocks.
#ifndef GSHMEM_DEVICE_BARRIER_H
#define GSHMEM_DEVICE_BARRIER_H

#include "device/internal/engines.h"

namespace gshmem {

// Stores a flag on pe: by a scalar store where its memory is mapped, else by RDMA.
struct FlagWriter {
    Engine engine;   // MTE: where that is possible; else the one that must be used
    Scratch scratch; // for entries

    ACLSHMEM_DEVICE void store(uint64_t flag, int32_t count, int pe) const
    {
        if (engine == ENGINE_MTE && is_mapped(pe)) store_shared<int32_t>(peer_address(flag, pe), count);
        else engine_set(engine == ENGINE_MTE ? ENGINE_RDMA : engine, flag, static_cast<uint32_t>(count), 4, pe, scratch);
    }
};

ACLSHMEM_DEVICE FlagWriter any_writer() { return FlagWriter{ENGINE_MTE, default_scratch(ENGINE_RDMA)}; }

// All PEs of the team, by one block each: dissemination with 7 partners a round, so up to 8 PEs
// need one round. A flag counts barriers; its only writer is one partner.
ACLSHMEM_DEVICE void pe_barrier(const Team& t, const FlagWriter& w)
{
    const uint64_t state = context().state;
    const uint64_t counter = load_constant<uint64_t>(state + offsetof(gshmem_device_state_t, sync_counter)) +
                             static_cast<uint64_t>(t.index) * GSHMEM_SYNC_LINE;
    uint64_t flags = load_constant<uint64_t>(state + offsetof(gshmem_device_state_t, sync_pool)) +
                     static_cast<uint64_t>(t.index) * GSHMEM_TEAM_SYNC_BYTES;
    const int32_t count = load_shared<int32_t>(counter) + 1;
    for (int64_t distance = 1; distance < t.n; distance *= GSHMEM_SYNC_FANOUT, flags += GSHMEM_SYNC_FANOUT * GSHMEM_SYNC_LINE) {
        for (int64_t j = 1; j < GSHMEM_SYNC_FANOUT && j * distance < t.n; j++)
            w.store(flags + static_cast<uint64_t>(j) * GSHMEM_SYNC_LINE, count, t.pe(static_cast<int32_t>(around(t.me + j * distance, t.n))));
        for (int64_t j = 1; j < GSHMEM_SYNC_FANOUT && j * distance < t.n; j++)
            if (!wait_reached(flags + static_cast<uint64_t>(j) * GSHMEM_SYNC_LINE, count)) return;
    }
    store_shared<int32_t>(counter, count);
}

// All blocks of all PEs of the team. What any of them wrote before, by whatever engine, is visible
// to all after. A PE that is not in the team returns at once.
ACLSHMEM_DEVICE void team_barrier(const Team& t, const FlagWriter& w, bool complete)
{
    if (t.me < 0) return;
    if (complete) drain_engines(t);
    core_barrier(t);
    if (AscendC::GetBlockIdx() == 0 && !aborted()) pe_barrier(t, w);
    core_barrier(t);
}
ACLSHMEM_DEVICE void team_barrier(const Team& t) { team_barrier(t, any_writer(), true); }

} // namespace gshmem
#endif
