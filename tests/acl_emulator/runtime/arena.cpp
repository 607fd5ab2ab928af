// The two ranges of addresses that the emulator needs, taken around whatever the process has there already: the heap of
// a Go runtime begins at a random address, for one.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "memory.h"

namespace emu {
namespace {

bool take(uint64_t low, uint64_t high) {
    void* want = reinterpret_cast<void*>(low);
    void* got = mmap(want, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    return got == want;
}

// What is mapped between low and high now, in order.
std::vector<Range> mapped(uint64_t low, uint64_t high) {
    std::vector<Range> found;
    FILE* maps = fopen("/proc/self/maps", "re");
    if (!maps) return found;
    char line[512];
    unsigned long from, to;
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to <= low || from >= high) continue;
        if (!found.empty() && found.back().high == from) {
            found.back().high = to;
        } else {
            found.push_back({from, to});
        }
    }
    fclose(maps);
    return found;
}

}  // namespace

std::vector<Range> reserve(uint64_t low, uint64_t high) {
    std::vector<Range> holes = mapped(low, high);
    uint64_t at = low;
    for (const Range& hole : holes) {
        if (hole.low > at && !take(at, hole.low)) goto refused;
        at = std::max(at, hole.high);
    }
    if (at >= high || take(at, high)) return holes;
refused:
    fprintf(stderr, "acl emulator: cannot reserve the 7 TiB of addresses at 0x%llx (errno %d); is there an address space limit (ulimit -v)?\n",
            static_cast<unsigned long long>(low), errno);
    abort();
}

}  // namespace emu
