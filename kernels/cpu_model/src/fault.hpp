// fault.hpp: a group launch in which a PE dies, engines stop, and the host aborts, each at a chosen
// step of the run. For tests of this process; not part of launch.h.
#ifndef KM_FAULT_HPP
#define KM_FAULT_HPP

#include "../launch.h"
#include <functional>

namespace km {

struct Fault {
    static constexpr uint64_t NEVER = ~0ull;
    // Steps are accesses to memory by any block, in the order of the run; the same seed gives the same.
    uint64_t kill = NEVER;         // the blocks of PE number `victim` of the group end here, wherever they are
    uint32_t victim = 0;
    uint64_t stop_engines = NEVER; // no entry of any queue is served any more
    uint64_t abort = NEVER;        // the host acts here, and once more when no block can go on
    std::function<void(bool stuck)> host; // sets abort words

    uint64_t steps = 0;    // out: how long the run was
    bool host_ran = false; // out: the host acted
    bool stuck = false;    // out: because no block could go on
};

// As km_launch_group. KM_DEADLOCK: a block waits although the host acted on it.
int32_t launch_group(const char* kernel, uint32_t blocks, const void* const* args, size_t args_size, const km_device_t* const* devs,
                     uint32_t count, Fault& fault);

} // namespace km
#endif
