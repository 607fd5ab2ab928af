// sync.h: teams, and the barrier among the blocks of a launch. The one among PEs is barrier.h.
#ifndef GSHMEM_DEVICE_SYNC_H
#define GSHMEM_DEVICE_SYNC_H

#include "device/internal/spin.h"

namespace gshmem {

// A team as the state struct describes it; address 0: no such team. me is -1 then, and on a PE outside.
struct Team {
    uint64_t address;
    int32_t index, me, n;
    uint64_t stop; // its stop words, 0: none

    ACLSHMEM_DEVICE int32_t pe(int32_t member) const
    {
        return load_constant<int32_t>(address + offsetof(gshmem_team_state_t, pe_mapping) + 4 * static_cast<uint64_t>(member));
    }
};

ACLSHMEM_DEVICE Team team_of(int32_t index)
{
    Team t{0, index, -1, 0, 0};
    if (index < 0 || index >= GSHMEM_MAX_TEAMS) return t;
    const Context& c = context();
    t.address = load_constant<uint64_t>(c.state + offsetof(gshmem_device_state_t, team_pools) + 8 * static_cast<uint64_t>(index));
    if (!t.address) return t;
    t.me = load_constant<int32_t>(t.address + offsetof(gshmem_team_state_t, mype));
    t.n = load_constant<int32_t>(t.address + offsetof(gshmem_team_state_t, size));
    t.stop = load_constant<uint64_t>(t.address + offsetof(gshmem_team_state_t, stop));
    return t;
}

// From now on this core waits on behalf of a team, or of none: its waits end when the team is stopped.
ACLSHMEM_DEVICE void wait_for_team(const Team& t) { context().stop = t.stop; }

// The same for a wait for a signal alone. What others of the team may still send must not be cut off by the end of its collectives.
ACLSHMEM_DEVICE void wait_for_signal_of(const Team& t) { context().stop = t.stop ? t.stop + 4 : 0; }

// i modulo n for i below 2 n: the scalar unit divides 64 bits slowly, and barriers are on everybody's path.
ACLSHMEM_DEVICE int64_t around(int64_t i, int64_t n) { return i < n ? i : i - n; }

struct CoreSync {
    uint64_t flags, counter;
};

ACLSHMEM_DEVICE CoreSync core_sync_of(const Team& t)
{
    const Context& c = context();
    const uint64_t own = t.address ? load_constant<uint64_t>(t.address + offsetof(gshmem_team_state_t, core_sync)) : 0;
    if (own) return CoreSync{own, own + GSHMEM_CORE_SYNC_BYTES};
    return CoreSync{load_constant<uint64_t>(c.state + offsetof(gshmem_device_state_t, core_sync_pool)),
                    load_constant<uint64_t>(c.state + offsetof(gshmem_device_state_t, core_sync_counter))};
}

// All blocks of the launch: dissemination, ceil(log2 blocks) rounds. Each flag has one writer. quiet()
// empties the data cache before this block arrives, and only constants are read until it leaves, so that
// what the others wrote before they arrived is read afresh.
// The count lives in the counter line between kernels; a block reads it once, before it signals
// anybody, and block 0 advances it after everybody signalled, so nobody reads a newer one.
ACLSHMEM_DEVICE void core_barrier(const Team& t)
{
    const int64_t blocks = AscendC::GetBlockNum(), me = AscendC::GetBlockIdx();
    wait_for_team(t);
    quiet();
    // An aborted block must not let the others pass: they would take a failed barrier for a good one.
    if (blocks <= 1 || aborted()) return;
    const CoreSync s = core_sync_of(t);
    Context& c = context();
    if (c.core_pool != s.flags) {
        c.core_pool = s.flags;
        c.core_count = load_shared<int32_t>(s.counter);
    }
    const int32_t count = ++c.core_count;
    int32_t round = 0;
    for (int64_t distance = 1; distance < blocks; distance *= 2, round++) {
        const uint64_t row = s.flags + static_cast<uint64_t>(round) * GSHMEM_MAX_CORES * GSHMEM_SYNC_LINE;
        store_shared<int32_t>(row + static_cast<uint64_t>(around(me + distance, blocks)) * GSHMEM_SYNC_LINE, count);
        if (!wait_reached(row + static_cast<uint64_t>(me) * GSHMEM_SYNC_LINE, count)) return;
        AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
    }
    if (me == 0) store_shared<int32_t>(s.counter, count);
}

} // namespace gshmem
#endif
