// aclrtMalloc and its relatives, pinned host memory, and what a pointer is.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <list>
#include <mutex>

#include "device.h"
#include "entry.h"
#include "memory.h"
#include "profile.h"

namespace emu {
namespace {

constexpr uint64_t kPiece = 512;             // alignment of small allocations
constexpr uint64_t kSmallLimit = 1ull << 20;  // below this, allocations share a block

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Chunk is a block from which small allocations are cut. Guarded by Space::mutex.
struct Chunk {
    uint64_t base;
    int32_t device;
    std::shared_ptr<Block> block;
    std::map<uint64_t, uint64_t> taken;  // offset -> size rounded to pieces
};

std::list<Chunk>& chunks() {
    static std::list<Chunk>& all = *new std::list<Chunk>;
    return all;
}

bool cut(Chunk& chunk, uint64_t size, uint64_t* offset) {
    // One piece stays free after each allocation, so that running over the end meets no neighbour.
    // Nothing starts at the chunk's own start: what is cut from a block never begins a page by luck.
    uint64_t need = round_up(size, kPiece) + kPiece, low = kPiece;
    for (auto [at, used] : chunk.taken) {
        if (at - low >= need) break;
        low = at + used;
    }
    if (low + need > chunk.block->size) return false;
    chunk.taken[low] = need;
    *offset = low;
    return true;
}

Chunk* new_chunk(int32_t device) {
    Space& space = Space::get();
    auto block = make_block(kHugePage, device);
    if (!block) return nullptr;
    uint64_t base = space.take_range(2 * kHugePage, kHugePage);
    if (!base || !space.show(base, *block, 0, block->size, false)) return nullptr;
    chunks().push_back({base, device, block, {}});
    return &chunks().back();
}

Region* allocate_small(uint64_t size, int32_t device) {
    uint64_t offset;
    for (Chunk& chunk : chunks()) {
        if (chunk.device == device && cut(chunk, size, &offset)) {
            return Space::get().put({chunk.base + offset, size, Kind::malloc, device, chunk.block, offset});
        }
    }
    Chunk* chunk = new_chunk(device);
    if (!chunk || !cut(*chunk, size, &offset)) return nullptr;
    return Space::get().put({chunk->base + offset, size, Kind::malloc, device, chunk->block, offset});
}

Region* allocate_large(uint64_t size, int32_t device, uint64_t page) {
    Space& space = Space::get();
    auto block = make_block(round_up(size, page), device);
    if (!block) return nullptr;
    uint64_t base = space.take_range(round_up(block->size, kHugePage) + kHugePage, kHugePage);
    if (!base || !space.show(base, *block, 0, block->size, false)) return nullptr;
    Region region{base, size, Kind::malloc, device, block};
    region.page = page;
    return space.put(region);
}

aclError allocate(void** out, uint64_t size, uint32_t policy, int32_t device) {
    if (!out) return breach(Rule::null_out, "devPtr is null");
    if (!size) return breach(Rule::malloc_size, "size 0");
    uint32_t paging = policy & 0xFF;
    if (paging > ACL_MEM_MALLOC_HUGE1G_ONLY_P2P || policy & ~0x1011FFu) {
        return breach(Rule::malloc_policy, "policy 0x%x", policy);
    }
    bool huge_only = paging == ACL_MEM_MALLOC_HUGE_ONLY || paging == ACL_MEM_MALLOC_HUGE_ONLY_P2P;
    bool normal = paging == ACL_MEM_MALLOC_NORMAL_ONLY || paging == ACL_MEM_MALLOC_NORMAL_ONLY_P2P;
    Space& space = Space::get();
    std::unique_lock<std::shared_mutex> lock(space.mutex);
    bool small = size < kSmallLimit && !huge_only && paging < ACL_MEM_MALLOC_HUGE1G_ONLY;
    Region* region = small ? allocate_small(size, device)
                           : allocate_large(size, device, normal ? kSmallPage : kHugePage);
    if (!region) {
        return breach(Rule::memory_exhausted, "device %d: %lu bytes wanted, %lu of %lu in use", device,
                      static_cast<unsigned long>(size), static_cast<unsigned long>(memory_used(device)),
                      static_cast<unsigned long>(settings().memory));
    }
    *out = reinterpret_cast<void*>(region->base);
    return ACL_SUCCESS;
}

// release gives an allocation back. Needs Space::mutex.
void release(Region region) {
    Space& space = Space::get();
    space.remove(region.base);
    for (auto chunk = chunks().begin(); chunk != chunks().end(); ++chunk) {
        if (region.base < chunk->base || region.base >= chunk->base + kHugePage) continue;
        chunk->taken.erase(region.base - chunk->base);
        if (!chunk->taken.empty()) return;
        space.hide(chunk->base, kHugePage, false);
        space.give_range(chunk->base, 2 * kHugePage);
        chunks().erase(chunk);
        return;
    }
    space.hide(region.base, region.block->size, false);
    space.give_range(region.base, round_up(region.block->size, kHugePage) + kHugePage);
}

}  // namespace
}  // namespace emu

using namespace emu;

aclError aclrtMalloc(void** out, size_t size, aclrtMemMallocPolicy policy) {
    ENTER(context);
    return allocate(out, size, policy, current()->device);
}

extern "C" aclError aclrtMallocAlign32(void** out, size_t size, aclrtMemMallocPolicy policy) {
    ENTER(context);
    return allocate(out, size, policy, current()->device);
}

aclError aclrtMallocWithCfg(void** out, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig* config) {
    ENTER(context);
    int32_t device = current()->device;
    for (size_t i = 0; config && i < config->numAttrs; i++) {
        const aclrtMallocAttribute& a = config->attrs[i];
        if (a.attr == ACL_RT_MEM_ATTR_DEVICE_ID) device = static_cast<int32_t>(a.value.deviceId);
    }
    if (!device_exists(device)) return breach(Rule::device_id, "device %d of %u", device, settings().devices);
    return allocate(out, size, policy, device);
}

aclError aclrtFree(void* pointer) {
    ENTER(context);
    Space& space = Space::get();
    std::unique_lock<std::shared_mutex> lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    if (!region || region->kind != Kind::malloc || region->base != reinterpret_cast<uint64_t>(pointer)) {
        return breach(Rule::free_pointer, "%p is not the start of an aclrtMalloc allocation", pointer);
    }
    release(*region);
    return ACL_SUCCESS;
}

namespace emu {
namespace {

aclError allocate_host(void** out, uint64_t size) {
    if (!out) return breach(Rule::null_out, "hostPtr is null");
    if (!size) return breach(Rule::malloc_size, "size 0");
    uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    void* at = mmap(nullptr, round_up(size, page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return breach(Rule::memory_exhausted, "%lu bytes of host memory", static_cast<unsigned long>(size));
    Space& space = Space::get();
    std::unique_lock<std::shared_mutex> lock(space.mutex);
    space.put({reinterpret_cast<uint64_t>(at), size, Kind::pinned, -1, nullptr});
    *out = at;
    return ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

aclError aclrtMallocHost(void** out, size_t size) {
    ENTER(context);
    return allocate_host(out, size);
}

extern "C" aclError aclrtMallocHostWithCfg(void** out, uint64_t size, aclrtMallocConfig*) {
    ENTER(context);
    return allocate_host(out, size);
}

aclError aclrtFreeHost(void* pointer) {
    ENTER(context);
    Space& space = Space::get();
    std::unique_lock<std::shared_mutex> lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    if (!region || region->kind != Kind::pinned || region->base != reinterpret_cast<uint64_t>(pointer)) {
        return breach(Rule::free_pointer, "%p is not the start of an aclrtMallocHost allocation", pointer);
    }
    uint64_t size = region->size;
    space.remove(region->base);
    munmap(pointer, round_up(size, static_cast<uint64_t>(sysconf(_SC_PAGESIZE))));
    return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void* pointer, aclrtPtrAttributes* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "attributes is null");
    memset(out, 0, sizeof *out);
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    out->location.type = !region              ? ACL_MEM_LOCATION_TYPE_UNREGISTERED
                         : region->device < 0 ? ACL_MEM_LOCATION_TYPE_HOST
                                              : ACL_MEM_LOCATION_TYPE_DEVICE;
    // Memory of a peer counts as the caller's device: that is where it is mapped.
    bool foreign = region && region->block && region->block->imported;
    if (region && region->device >= 0) out->location.id = static_cast<uint32_t>(foreign ? current()->device : region->device);
    if (region) out->pageSize = static_cast<uint32_t>(region->page);
    return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr attribute, size_t* free_out, size_t* total_out) {
    ENTER(context);
    if (!free_out || !total_out) return breach(Rule::null_out, "free or total is null");
    if (attribute < ACL_DDR_MEM || attribute > ACL_MEM_P2P_HUGE1G) {
        return breach(Rule::physical_attr, "attribute %d", attribute);
    }
    *total_out = settings().memory;
    *free_out = settings().memory - memory_used(current()->device);
    return ACL_SUCCESS;
}

aclError aclrtMemGetAddressRange(void* pointer, void** base, size_t* size) {
    ENTER(context);
    if (!base && !size) return breach(Rule::null_out, "pbase and psize are null");
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    if (!region) return breach(Rule::copy_unmapped, "%p", pointer);
    if (base) *base = reinterpret_cast<void*>(region->base);
    if (size) *size = region->size;
    return ACL_SUCCESS;
}
