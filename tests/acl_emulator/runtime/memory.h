// Memory: blocks of pages (memfds), and the addresses at which they are seen.
//
// Every device address lies in one range, the arena, which is never accessible: host code that follows a device
// pointer faults. What is mapped at address a in the arena is mapped again, readable and writable, at
// a + kShadow; the emulator, the operators and the kernel model work there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "../interface/acl.h"

namespace emu {

constexpr uint64_t kTiB = 1ull << 40;
constexpr uint64_t kGiB = 1ull << 30;
// The documented range for chosen addresses starts at 16T, where AddressSanitizer's shadow ends; the race detector of
// Go has 32T..50T. So the arena starts a little later, and its second mapping lies at 65T..72T.
constexpr uint64_t kArenaLow = 17 * kTiB;
constexpr uint64_t kArenaHigh = 24 * kTiB;
constexpr uint64_t kShadow = 48 * kTiB;
constexpr uint64_t kHugePage = 2ull << 20;
constexpr uint64_t kSmallPage = 4096;

constexpr uint64_t kNonceMask = (1u << 22) - 1;  // what fits beside a pid and a descriptor in 64 bits

// Ticket is the page behind a block's data that other processes read when they import it.
struct Ticket {
    uint64_t magic;
    uint64_t nonce;       // proves that a descriptor number still means the block that was exported
    uint64_t size;
    int32_t owner;        // pid of the process that made the block
    int32_t device;       // -1 for host memory
    int32_t validate;     // 1: only processes in `pids` may import
    int32_t pid_count;
    int32_t revoked;      // 1: the owner has taken the export back
    int32_t attribute;    // aclrtMemAttr
    int32_t pids[512];
};

// Block is a piece of physical memory; its pages live as long as anybody, in any process, maps them.
struct Block {
    ~Block();
    int fd = -1;
    uint64_t size = 0;
    int32_t device = 0;    // -1: host memory
    bool charged = false;  // counts against the device's memory
    bool imported = false;
    bool exported = false;
    aclrtPhysicalMemProp prop{};
    Ticket* ticket = nullptr;
};

// make_block takes memory from a device (device >= 0) or from the host. Null when the device has too little left.
std::shared_ptr<Block> make_block(uint64_t size, int32_t device);

// Passport names a block to another process: 48 hexadecimal digits at most.
struct Passport {
    int32_t pid;
    int32_t fd;
    uint64_t nonce;
    uint64_t offset;
    uint64_t size;
};
std::string passport_text(const Passport& p);
bool passport_read(const char* text, Passport* out);

// open_block imports the block that a passport names; null when its owner has died or taken it back.
std::shared_ptr<Block> open_block(const Passport& p);

bool may_import(const Ticket& ticket);

// window: where kernels see registered memory.
enum class Kind { malloc, vmm, ipc, pinned, registered, window };

// Region is a range of addresses with one kind of memory behind it.
struct Region {
    uint64_t base;
    uint64_t size;
    Kind kind;
    int32_t device;  // -1: host
    std::shared_ptr<Block> block;
    uint64_t block_offset = 0;
    uint64_t serial = 0;   // tells a range from a later one at the same address
    uint64_t page = kSmallPage;
    bool device_access = true;  // host memory: has a device been given access
    uint64_t twin = 0;     // registered: its window; window: what it shows
};

// Space is the process's address map. Copies hold the mutex shared while they touch memory, so that nothing is
// unmapped under them.
class Space {
public:
    static Space& get();

    std::shared_mutex mutex;

    // All of these need the mutex: take_range, put, remove exclusively, find at least shared.
    uint64_t take_range(uint64_t size, uint64_t align);        // 0 when the arena is full
    bool take_exact(uint64_t base, uint64_t size);
    void give_range(uint64_t base, uint64_t size);
    Region* put(Region region);                                 // maps its pages, unless aclrtMalloc already did
    void remove(uint64_t base);
    bool show(uint64_t base, const Block& block, uint64_t offset, uint64_t size, bool to_host);
    void hide(uint64_t base, uint64_t size, bool from_host);
    Region* find(uint64_t address);

    uint64_t count(Kind kind);

private:
    Space();
    void lose(uint64_t low, uint64_t high);
    std::map<uint64_t, Region> regions_;
    std::map<uint64_t, uint64_t> free_;  // base -> size of unreserved arena ranges
    uint64_t start_;                     // where this process begins to hand out addresses
    uint64_t serial_ = 0;
};

// What the process itself had in the arena before: the host's, and never handed out.
struct Range {
    uint64_t low, high;
};
extern std::vector<Range> arena_holes;

// reserve takes a range of addresses without what is mapped there already, which it gives back. It ends the process when it cannot.
std::vector<Range> reserve(uint64_t low, uint64_t high);

inline bool in_arena(uint64_t a) {
    if (a < kArenaLow || a >= kArenaHigh) return false;
    for (const Range& hole : arena_holes) {
        if (a >= hole.low && a < hole.high) return false;
    }
    return true;
}
// Where the emulator itself works on a region's bytes.
inline void* shadow_of(uint64_t a) { return reinterpret_cast<void*>(in_arena(a) ? a + kShadow : a); }

uint64_t memory_used(int32_t device);

}  // namespace emu
