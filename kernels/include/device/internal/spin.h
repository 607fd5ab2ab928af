// spin.h: every wait of the device headers. A wait ends when its condition holds or when the host
// set the abort word (a peer died, a timeout passed, abort() was called), or the stop word of the
// team that the core waits for (it was given up, while others go on).
#ifndef GSHMEM_DEVICE_SPIN_H
#define GSHMEM_DEVICE_SPIN_H

#include "device/internal/memory.h"

namespace gshmem {

constexpr uint32_t LOOKS_PER_ABORT_POLL = 8;

ACLSHMEM_DEVICE bool aborted() { return context().aborted != 0; }

ACLSHMEM_DEVICE bool poll_abort()
{
    Context& c = context();
    if (c.abort_addr && load_shared<int32_t>(c.abort_addr) != 0) c.aborted = 1;
    if (c.stop && load_shared<int32_t>(c.stop) != 0) {
        c.aborted = 1;
        store_shared<int32_t>(c.stop + GSHMEM_SYNC_LINE, 1); // the host tells by it whether results are missing
    }
    return aborted();
}

// Looks until done() holds. False: aborted, and the data waited for must not be used.
template <typename Condition> ACLSHMEM_DEVICE bool wait_until(Condition done)
{
    for (uint32_t looks = 0; !aborted(); looks++) {
        if (done()) return true;
        if (looks % LOOKS_PER_ABORT_POLL == 0 && poll_abort()) break;
    }
    return false;
}

// Monotonic 32-bit counters may wrap: compare by their distance.
ACLSHMEM_DEVICE bool reached(int32_t flag, int32_t count)
{
    return static_cast<int32_t>(static_cast<uint32_t>(flag) - static_cast<uint32_t>(count)) >= 0;
}

ACLSHMEM_DEVICE bool wait_reached(uint64_t flag, int32_t count)
{
    return wait_until([=] { return reached(load_shared<int32_t>(flag), count); });
}

template <typename T> ACLSHMEM_DEVICE bool compare(T a, int cmp, T b)
{
    switch (cmp) {
    case 0: return a == b;
    case 1: return a != b;
    case 2: return a > b;
    case 3: return a >= b;
    case 4: return a < b;
    case 5: return a <= b;
    default: return true; // an unknown comparison must not wait for ever
    }
}

} // namespace gshmem
#endif
