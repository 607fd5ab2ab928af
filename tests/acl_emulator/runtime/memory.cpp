#include "memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>

#include "profile.h"

namespace emu {
namespace {

constexpr uint64_t kMagic = 0x61636c656d753031;
constexpr uint64_t kTicketSize = 64 << 10;  // a multiple of every page size
constexpr uint64_t kPoisonLimit = 32 << 20;
constexpr int kPoison = 0xA5;

std::atomic<uint64_t> used[64];

uint64_t random_word() {
    static std::random_device device;
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    return (static_cast<uint64_t>(device()) << 32) | device();
}

Ticket* map_ticket(int fd, uint64_t size) {
    void* at = mmap(nullptr, kTicketSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(size));
    return at == MAP_FAILED ? nullptr : static_cast<Ticket*>(at);
}

// poison makes new device memory anything but zero, as it is on a device; large blocks only at both ends.
void poison(int fd, uint64_t size) {
    auto fill = [&](uint64_t offset, uint64_t bytes) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
        if (at == MAP_FAILED) return;
        memset(at, kPoison, bytes);
        munmap(at, bytes);
    };
    if (size <= kPoisonLimit) return fill(0, size);
    fill(0, kHugePage);
    fill((size - kHugePage) & ~(kHugePage - 1), kHugePage);
}

}  // namespace

uint64_t memory_used(int32_t device) { return used[device]; }

Block::~Block() {
    if (ticket) {
        if (!imported) ticket->revoked = 1;
        munmap(ticket, kTicketSize);
    }
    if (fd >= 0) close(fd);
    if (charged) used[device] -= size;
}

std::shared_ptr<Block> make_block(uint64_t size, int32_t device) {
    auto block = std::make_shared<Block>();
    block->size = size;
    block->device = device;
    if (device >= 0) {
        if (used[device].fetch_add(size) + size > settings().memory) {
            used[device] -= size;
            return nullptr;
        }
        block->charged = true;
    }
    block->fd = memfd_create("acl-emulator", MFD_CLOEXEC);
    if (block->fd < 0 || ftruncate(block->fd, static_cast<off_t>(size + kTicketSize))) return nullptr;
    block->ticket = map_ticket(block->fd, size);
    if (!block->ticket) return nullptr;
    Ticket& t = *block->ticket;
    t.magic = kMagic;
    t.nonce = random_word() & kNonceMask;
    t.size = size;
    t.owner = getpid();
    t.device = device;
    t.validate = 1;
    if (device >= 0) poison(block->fd, size);
    return block;
}

std::string passport_text(const Passport& p) {
    char text[65];
    snprintf(text, sizeof text, "%x:%x:%lx:%lx:%lx", p.pid, p.fd, static_cast<unsigned long>(p.nonce),
             static_cast<unsigned long>(p.offset), static_cast<unsigned long>(p.size));
    return text;
}

bool passport_read(const char* text, Passport* out) {
    unsigned pid, fd;
    unsigned long nonce, offset, size;
    if (sscanf(text, "%x:%x:%lx:%lx:%lx", &pid, &fd, &nonce, &offset, &size) != 5) return false;
    *out = {static_cast<int32_t>(pid), static_cast<int32_t>(fd), nonce, offset, size};
    return true;
}

std::shared_ptr<Block> open_block(const Passport& p) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", p.pid, p.fd);
    auto block = std::make_shared<Block>();
    block->imported = true;
    block->fd = open(path, O_RDWR | O_CLOEXEC);
    if (block->fd < 0) return nullptr;
    off_t length = lseek(block->fd, 0, SEEK_END);
    if (length < static_cast<off_t>(kTicketSize)) return nullptr;
    block->size = static_cast<uint64_t>(length) - kTicketSize;
    block->ticket = map_ticket(block->fd, block->size);
    if (!block->ticket) return nullptr;
    const Ticket& t = *block->ticket;
    if (t.magic != kMagic || t.nonce != p.nonce || t.owner != p.pid || t.revoked) {
        return nullptr;
    }
    block->device = t.device;
    block->prop.memAttr = static_cast<aclrtMemAttr>(t.attribute);
    return block;
}

bool may_import(const Ticket& t) {
    return !t.validate || std::count(t.pids, t.pids + t.pid_count, static_cast<int32_t>(getpid()));
}

Space& Space::get() {
    static Space& one = *new Space;
    return one;
}

std::vector<Range> arena_holes;

Space::Space() {
    free_[kArenaLow] = kArenaHigh - kArenaLow;
    arena_holes = reserve(kArenaLow, kArenaHigh);
    for (const Range& hole : arena_holes) lose(hole.low, hole.high);
    for (const Range& hole : reserve(kArenaLow + kShadow, kArenaHigh + kShadow)) lose(hole.low - kShadow, hole.high - kShadow);
    // Processes hand out different addresses, so that a pointer sent to a peer unchanged does not work by luck.
    start_ = kArenaLow + (1 + random_word() % 4096) * kGiB;
}

// lose takes the 2 MiB pages that touch a range out of what can be handed out.
void Space::lose(uint64_t low, uint64_t high) {
    for (uint64_t page = low / kHugePage * kHugePage; page < high; page += kHugePage) take_exact(page, kHugePage);
}

uint64_t Space::take_range(uint64_t size, uint64_t align) {
    for (int turn = 0; turn < 2; turn++) {
        for (auto [base, room] : free_) {
            uint64_t low = std::max(base, turn ? kArenaLow : start_);
            uint64_t at = (low + align - 1) / align * align;
            if (at + size <= base + room && take_exact(at, size)) return at;
        }
    }
    return 0;
}

bool Space::take_exact(uint64_t base, uint64_t size) {
    auto next = free_.upper_bound(base);
    if (next == free_.begin()) return false;
    auto at = std::prev(next);
    uint64_t low = at->first, high = low + at->second;
    if (base + size > high) return false;
    free_.erase(at);
    if (base > low) free_[low] = base - low;
    if (high > base + size) free_[base + size] = high - base - size;
    return true;
}

void Space::give_range(uint64_t base, uint64_t size) {
    auto next = free_.lower_bound(base);
    if (next != free_.end() && next->first == base + size) {
        size += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == base) {
            before->second += size;
            return;
        }
    }
    free_[base] = size;
}

// show maps pages into the shadow, and for host memory at the address itself too: it is the host's to use.
bool Space::show(uint64_t base, const Block& block, uint64_t offset, uint64_t size, bool to_host) {
    auto map = [&](uint64_t at) {
        return mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block.fd,
                    static_cast<off_t>(offset)) != MAP_FAILED;
    };
    return map(base + kShadow) && (!to_host || map(base));
}

void Space::hide(uint64_t base, uint64_t size, bool from_host) {
    auto cover = [&](uint64_t at) {
        mmap(reinterpret_cast<void*>(at), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    };
    cover(base + kShadow);
    if (from_host) cover(base);
}

Region* Space::put(Region region) {
    region.serial = ++serial_;
    if (in_arena(region.base) && region.kind != Kind::malloc && region.kind != Kind::window &&
        !show(region.base, *region.block, region.block_offset, region.size, region.device < 0)) {
        return nullptr;
    }
    return &(regions_[region.base] = std::move(region));
}

void Space::remove(uint64_t base) {
    auto at = regions_.find(base);
    const Region& r = at->second;
    if (in_arena(base) && r.kind != Kind::malloc && r.kind != Kind::window) hide(base, r.size, r.device < 0);
    regions_.erase(at);
}

Region* Space::find(uint64_t address) {
    auto next = regions_.upper_bound(address);
    if (next == regions_.begin()) return nullptr;
    Region& r = std::prev(next)->second;
    return address < r.base + r.size ? &r : nullptr;
}

uint64_t Space::count(Kind kind) {
    uint64_t n = 0;
    for (const auto& entry : regions_) n += entry.second.kind == kind;
    return n;
}

}  // namespace emu

using namespace emu;

// aclemu_shadow gives the accessible alias of device memory, or null when [address, address + bytes) is not all
// allocated or mapped.
extern "C" void* aclemu_shadow(const void* pointer, size_t bytes) {
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    uint64_t at = reinterpret_cast<uint64_t>(pointer), end = at + bytes;
    for (uint64_t next = at; next < end || next == at;) {
        Region* r = space.find(next);
        if (!r) return nullptr;
        next = r->base + r->size;
    }
    return shadow_of(at);
}

// aclemu_live counts what the process holds: "malloc", "map", "ipc", "pinned" or "registered".
extern "C" uint64_t aclemu_live(const char* what) {
    static const std::pair<const char*, Kind> kinds[] = {{"malloc", Kind::malloc}, {"map", Kind::vmm},
        {"ipc", Kind::ipc}, {"pinned", Kind::pinned}, {"registered", Kind::registered}};
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    for (const auto& kind : kinds) {
        if (!strcmp(kind.first, what)) return space.count(kind.second);
    }
    return UINT64_MAX;
}
