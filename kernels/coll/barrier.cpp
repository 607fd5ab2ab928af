// barrier.cpp: every PE of the team arrives before any leaves.
// 1 round for up to 8 PEs, 2 up to 64; 7 stores of 4 bytes per round and PE.
#include "kernel_entry.h"

extern "C" GSHMEM_ENTRY void gshmem_k_barrier(GM_ADDR state, uint64_t team)
{
    aclshmemx_set_state(state);
    aclshmem_barrier(static_cast<aclshmem_team_t>(team));
}
