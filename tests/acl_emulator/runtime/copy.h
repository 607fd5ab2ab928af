// Where the two ends of a copy are, and whether the rules allow it.
#pragma once

#include "memory.h"
#include "stream.h"

namespace emu {

// End is one side of a copy.
struct End {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool known = false;  // allocated, mapped, pinned or registered; otherwise pageable host memory
    int32_t device = -1;
    Kind kind = Kind::pinned;
    bool imported = false;
    uint64_t serial = 0;
    bool on_device() const { return device >= 0; }
};

// locate finds what [pointer, pointer + bytes) is; 0 or the code of the broken rule. Needs Space::mutex.
int locate(const char* role, const void* pointer, uint64_t bytes, End* out);

// still_there says whether memory that was located is unchanged. Needs Space::mutex.
bool still_there(const End& end);

}  // namespace emu
