// What one chip can and cannot do. The process emulates the chip that ACLEMU_SOC names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emu {

struct Profile {
    const char* key;          // value of ACLEMU_SOC
    const char* soc;          // what aclrtGetSocName answers
    bool fabric_handles;      // shareable handles that cross servers
    bool chosen_address;      // aclrtReserveMemAddress takes an expected address
    bool copy_needs_peer;     // aclrtMemcpy between devices needs EnablePeerAccess
    bool scalar_atomics;      // AtomicAdd and friends on global memory
    bool huge1g_plain;        // ACL_MEM_HUGE1G is served
    bool huge1g_p2p;          // ACL_MEM_P2P_HUGE1G is served
    bool link_choice;         // aclrtIpcMemSetAttr may choose SIO or HCCS
    bool reach_by_eight;      // only devices of the same group of eight reach each other
    uint32_t notify_limit;    // per device
    int64_t vector_cores;
    int64_t cube_cores;
    int64_t ub_bytes;         // unified buffer of one vector core
    int64_t l2_bytes;
    int64_t npu_arch;
    uint64_t memory;          // device memory in bytes
};

// Sizes and settings that come from the environment, read once.
struct Settings {
    Profile profile;
    uint32_t devices;       // ACLEMU_DEVICES, default 8
    uint64_t memory;        // ACLEMU_MEMORY per device, default the chip's
    bool late;              // ACLEMU_SCHEDULE: "late" (default) or "eager"
    uint64_t seed;          // ACLEMU_SEED, default 1
    uint32_t late_us;       // ACLEMU_LATE_US: the longest a task is held back, default 500
    const char* cann;       // ACLEMU_CANN: version text, default 8.5.0
    const char* driver;     // ACLEMU_DRIVER: version text, default 25.5.0
    const char* kernels;    // ACLEMU_KERNELS: path of the CPU-model kernel library, or null
    const char* fail;       // ACLEMU_FAIL: failures to inject
    const char* trace;      // ACLEMU_TRACE: file that gets one line per call
    int log_level;          // ACLEMU_LOG: 0 debug .. 3 error, 4 (default) silent
};

const Settings& settings();

}  // namespace emu
