// Physical memory handles, shared by the files that make, map and export them.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "memory.h"

namespace emu {

using Handle = std::shared_ptr<Block>;
using Lock = std::unique_lock<std::shared_mutex>;

// Handles is guarded by Space::mutex.
struct Handles {
    std::map<void*, Handle> live;
    std::map<void*, uint64_t> shared;  // handle -> shareable handle given out

    static Handles& get();
    Handle find(aclrtDrvMemHandle handle) const;
};

// What Block::prop.handleType says of memory that came by a fabric handle; never shown to callers.
constexpr auto kFabric = static_cast<aclrtMemHandleType>(-1);

}  // namespace emu
