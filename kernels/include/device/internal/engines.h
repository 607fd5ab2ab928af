// engines.h: the selection rule among the transfer engines.
//
// A PE may be reachable by several; the first usable of SDMA, UDMA, MTE, RoCE carries plain puts and
// gets. Strided forms, put_signal and signals always use MTE.
#ifndef GSHMEM_DEVICE_ENGINES_H
#define GSHMEM_DEVICE_ENGINES_H

#include "device/internal/amo.h"

namespace gshmem {

ACLSHMEM_DEVICE uint8_t topology(int pe)
{
    return load_constant<uint8_t>(context().state + offsetof(gshmem_device_state_t, topo_list) + static_cast<uint64_t>(pe));
}

// True when another engine than MTE took the transfer.
ACLSHMEM_DEVICE bool engine_put(uint64_t, uint64_t, uint64_t, int) { return false; }
ACLSHMEM_DEVICE bool engine_get(uint64_t, uint64_t, uint64_t, int) { return false; }
ACLSHMEM_DEVICE void engine_quiet(int) { quiet(); }

// All transfers of this core to any member of the team are complete.
ACLSHMEM_DEVICE void settle(const Team&) { quiet(); }

} // namespace gshmem
#endif
