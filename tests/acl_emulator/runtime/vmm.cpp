// Virtual memory management: reservations of addresses, physical memory, and mapping one into the other.
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "device.h"
#include "entry.h"
#include "memory.h"
#include "profile.h"
#include "vmm.h"

namespace emu {
namespace {

struct Reservation {
    uint64_t size;
    int32_t device;
};

// reservations is guarded by Space::mutex.
std::map<uint64_t, Reservation>& reservations() {
    static auto& all = *new std::map<uint64_t, Reservation>;
    return all;
}

bool huge1g(int attribute) {
    return attribute == ACL_HBM_MEM_HUGE1G || attribute == ACL_HBM_MEM_P2P_HUGE1G || attribute == ACL_MEM_HUGE1G ||
           attribute == ACL_MEM_P2P_HUGE1G;
}

bool host_attribute(int attribute) {
    return (attribute >= ACL_DDR_MEM_HUGE && attribute <= ACL_DDR_MEM_NORMAL) || attribute == ACL_DDR_MEM ||
           attribute == ACL_DDR_MEM_P2P_HUGE || attribute == ACL_DDR_MEM_P2P_NORMAL;
}

// Device memory is always served in huge pages, host memory as its attribute says.
uint64_t granularity(const aclrtPhysicalMemProp& prop) {
    if (huge1g(prop.memAttr)) return kGiB;
    bool small = prop.memAttr == ACL_DDR_MEM_NORMAL || prop.memAttr == ACL_DDR_MEM_P2P_NORMAL;
    return small ? kSmallPage : kHugePage;
}

int check_attribute(const aclrtPhysicalMemProp& prop) {
    const Profile& chip = settings().profile;
    int attribute = prop.memAttr;
    if (attribute < ACL_DDR_MEM || attribute > ACL_MEM_P2P_HUGE1G) {
        return breach(Rule::physical_attr, "attribute %d", attribute);
    }
    bool on_host = prop.location.type != ACL_MEM_LOCATION_TYPE_DEVICE;
    bool either = attribute >= ACL_MEM_NORMAL;
    if (!either && host_attribute(attribute) != on_host) {
        return breach(Rule::physical_attr, "attribute %d at a %s location", attribute, on_host ? "host" : "device");
    }
    if ((attribute == ACL_MEM_HUGE1G && !chip.huge1g_plain) || (attribute == ACL_MEM_P2P_HUGE1G && !chip.huge1g_p2p) ||
        (on_host && huge1g(attribute))) {
        return breach(Rule::physical_attr, "attribute %d on %s", attribute, chip.soc);
    }
    return 0;
}

int check_prop(const aclrtPhysicalMemProp* prop) {
    if (!prop) return breach(Rule::null_out, "prop is null");
    if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE || prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED ||
        prop->reserve) {
        return breach(Rule::physical_prop, "handle type %d, allocation type %d, reserve %lu", prop->handleType,
                      prop->allocationType, static_cast<unsigned long>(prop->reserve));
    }
    switch (prop->location.type) {
        case ACL_MEM_LOCATION_TYPE_HOST:
        case ACL_MEM_LOCATION_TYPE_HOST_NUMA: break;
        case ACL_MEM_LOCATION_TYPE_DEVICE:
            if (device_exists(static_cast<int32_t>(prop->location.id))) break;
            [[fallthrough]];
        default:
            return breach(Rule::physical_prop, "location %d id %u", prop->location.type, prop->location.id);
    }
    return check_attribute(*prop);
}

int expected_address(uint64_t want, uint64_t size) {
    if (!settings().profile.chosen_address) return breach(Rule::reserve_chosen, "address 0x%lx", static_cast<unsigned long>(want));
    uint64_t align = 1;
    while (align < size && align < kGiB) align <<= 1;
    if (want % align || want < 16 * kTiB || want + size > kArenaHigh) {
        return breach(Rule::reserve_expected, "address 0x%lx, size %lu, alignment wanted %lu",
                      static_cast<unsigned long>(want), static_cast<unsigned long>(size), static_cast<unsigned long>(align));
    }
    return 0;
}

int reserve(void** out, size_t size, size_t alignment, void* expected, uint64_t flags) {
    if (!out) return breach(Rule::null_out, "virPtr is null");
    if (!size) return breach(Rule::malloc_size, "size 0");
    if (alignment) return breach(Rule::reserve_align, "alignment %zu", alignment);
    if (flags > 1) return breach(Rule::reserve_flags, "flags %lu", static_cast<unsigned long>(flags));
    uint64_t rounded = (size + kHugePage - 1) / kHugePage * kHugePage, base = reinterpret_cast<uint64_t>(expected);
    Space& space = Space::get();
    if (base) {
        if (int code = expected_address(base, size)) return code;
        Lock lock(space.mutex);
        if (!space.take_exact(base, rounded)) return breach(Rule::reserve_taken, "address %p, size %zu", expected, size);
        reservations()[base] = {rounded, current()->device};
    } else {
        Lock lock(space.mutex);
        base = space.take_range(rounded, rounded >= kGiB ? kGiB : kHugePage);
        if (!base) return breach(Rule::reserve_taken, "no room for %zu bytes", size);
        reservations()[base] = {rounded, current()->device};
    }
    *out = reinterpret_cast<void*>(base);
    return 0;
}

// holding finds the reservation that contains [base, base + size). Needs Space::mutex.
const std::pair<const uint64_t, Reservation>* holding(uint64_t base, uint64_t size) {
    auto& all = reservations();
    auto next = all.upper_bound(base);
    if (next == all.begin()) return nullptr;
    const auto& found = *std::prev(next);
    return base + size <= found.first + found.second.size ? &found : nullptr;
}

// mixes says whether a mapping of `block` would put a second kind of memory into the reservation.
bool mixes(const std::pair<const uint64_t, Reservation>& reservation, const Block& block, uint64_t* conflict) {
    Space& space = Space::get();
    for (uint64_t at = reservation.first; at < reservation.first + reservation.second.size; at += kHugePage) {
        Region* r = space.find(at);
        if (!r) continue;
        if (r->device != block.device || r->block->imported != block.imported) {
            *conflict = at;
            return true;
        }
        at = r->base + r->size - kHugePage;
    }
    return false;
}

}  // namespace

Handles& Handles::get() {
    static Handles& one = *new Handles;
    return one;
}

Handle Handles::find(aclrtDrvMemHandle handle) const {
    auto at = live.find(handle);
    return at == live.end() ? nullptr : at->second;
}

}  // namespace emu

using namespace emu;

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop, aclrtMemGranularityOptions option, size_t* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "granularity is null");
    if (int code = check_prop(prop)) return code;
    if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
        return breach(Rule::physical_prop, "granularity option %d", option);
    }
    *out = granularity(*prop);
    return ACL_SUCCESS;
}

aclError aclrtReserveMemAddress(void** out, size_t size, size_t alignment, void* expected, uint64_t flags) {
    ENTER(context);
    return reserve(out, size, alignment, expected, flags);
}

aclError aclrtReserveMemAddressNoUCMemory(void** out, size_t size, size_t alignment, void* expected, uint64_t flags) {
    ENTER(context);
    if (expected) return breach(Rule::reserve_expected, "the emulator has no addresses above 24T");
    return reserve(out, size, alignment, nullptr, flags);
}

aclError aclrtReleaseMemAddress(void* pointer) {
    ENTER(context);
    Space& space = Space::get();
    Lock lock(space.mutex);
    auto at = reservations().find(reinterpret_cast<uint64_t>(pointer));
    if (at == reservations().end()) return breach(Rule::release_pointer, "%p", pointer);
    for (uint64_t page = at->first; page < at->first + at->second.size; page += kHugePage) {
        if (space.find(page)) return breach(Rule::release_mapped, "0x%lx is mapped", static_cast<unsigned long>(page));
    }
    space.give_range(at->first, at->second.size);
    reservations().erase(at);
    return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* out, size_t size, const aclrtPhysicalMemProp* prop, uint64_t flags) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "handle is null");
    if (flags) return breach(Rule::physical_flags, "flags %lu", static_cast<unsigned long>(flags));
    if (int code = check_prop(prop)) return code;
    if (!size || size % granularity(*prop)) {
        return breach(Rule::physical_size, "size %zu, granularity %lu", size, static_cast<unsigned long>(granularity(*prop)));
    }
    bool on_device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
    int32_t device = on_device ? static_cast<int32_t>(prop->location.id) : -1;
    Lock lock(Space::get().mutex);
    Handle block = make_block(size, device);
    if (!block) return breach(Rule::memory_exhausted, "%zu bytes of device %d", size, device);
    block->prop = *prop;
    block->ticket->attribute = prop->memAttr;
    Handles::get().live[block.get()] = block;
    *out = block.get();
    return ACL_SUCCESS;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    ENTER(context);
    Lock lock(Space::get().mutex);
    Handle block = Handles::get().find(handle);
    if (!block) return breach(Rule::physical_handle, "handle %p", handle);
    if (!block->imported) block->ticket->revoked = 1;
    Handles::get().live.erase(handle);
    Handles::get().shared.erase(handle);
    return ACL_SUCCESS;
}

aclError aclrtMapMem(void* pointer, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    ENTER(context);
    Space& space = Space::get();
    Lock lock(space.mutex);
    Handle block = Handles::get().find(handle);
    if (!block) return breach(Rule::physical_handle, "handle %p", handle);
    uint64_t base = reinterpret_cast<uint64_t>(pointer), unit = granularity(block->prop);
    if (offset || flags) return breach(Rule::map_offset, "offset %zu, flags %lu", offset, static_cast<unsigned long>(flags));
    if (size != block->size) return breach(Rule::map_size, "size %zu, physical size %lu", size, static_cast<unsigned long>(block->size));
    if (base % unit) return breach(Rule::map_align, "address %p, granularity %lu", pointer, static_cast<unsigned long>(unit));
    const auto* reservation = holding(base, size);
    uint64_t conflict = 0;
    if (!reservation) return breach(Rule::map_reservation, "%p + %zu is not inside a reservation", pointer, size);
    for (uint64_t at = base; at < base + size; at += kHugePage) {
        if (space.find(at)) return breach(Rule::map_reservation, "0x%lx is mapped already", static_cast<unsigned long>(at));
    }
    if (mixes(*reservation, *block, &conflict)) {
        return breach(Rule::map_mixed, "other memory is at 0x%lx", static_cast<unsigned long>(conflict));
    }
    bool fabric = block->prop.handleType == kFabric;
    if (block->imported && !fabric && block->device >= 0 && !peer_enabled(current()->device, block->device)) {
        return breach(Rule::map_peer, "device %d has not enabled access to device %d", current()->device, block->device);
    }
    Region region{base, size, Kind::vmm, block->device, block};
    region.page = unit;
    region.device_access = block->device >= 0;
    if (!space.put(std::move(region))) return report(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "mmap failed");
    return ACL_SUCCESS;
}

aclError aclrtMemMapNoAccess(void* pointer, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    return aclrtMapMem(pointer, size, offset, handle, flags);
}

aclError aclrtUnmapMem(void* pointer) {
    ENTER(context);
    Space& space = Space::get();
    Lock lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    if (!region || region->kind != Kind::vmm || region->base != reinterpret_cast<uint64_t>(pointer)) {
        return breach(Rule::unmap_pointer, "%p is not the start of a mapping", pointer);
    }
    space.remove(region->base);
    return ACL_SUCCESS;
}

aclError aclrtMemSetAccess(void* pointer, size_t size, aclrtMemAccessDesc* desc, size_t count) {
    ENTER(context);
    if (!desc) return breach(Rule::null_out, "desc is null");
    Space& space = Space::get();
    Lock lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    bool fits = region && region->kind == Kind::vmm && region->base == reinterpret_cast<uint64_t>(pointer) &&
                size == region->size;
    if (!fits || count != 1 || desc->flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE) {
        return breach(Rule::access_range, "%p + %zu, count %zu, flags %d", pointer, size, count, desc->flags);
    }
    if (desc->location.type == ACL_MEM_LOCATION_TYPE_DEVICE) region->device_access = true;
    return ACL_SUCCESS;
}

aclError aclrtMemGetAccess(void* pointer, aclrtMemLocation* location, uint64_t* flags) {
    ENTER(context);
    if (!location || !flags) return breach(Rule::null_out, "location or flag is null");
    Space& space = Space::get();
    Lock lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    if (!region || region->kind != Kind::vmm) return breach(Rule::access_range, "%p is not mapped", pointer);
    bool device = location->type == ACL_MEM_LOCATION_TYPE_DEVICE;
    bool may = device ? region->device_access : region->device < 0;
    *flags = may ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : ACL_RT_MEM_ACCESS_FLAGS_NONE;
    return ACL_SUCCESS;
}

aclError aclrtMemRetainAllocationHandle(void* pointer, aclrtDrvMemHandle* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "handle is null");
    Lock lock(Space::get().mutex);
    Region* region = Space::get().find(reinterpret_cast<uint64_t>(pointer));
    if (!region || region->kind != Kind::vmm) return breach(Rule::unmap_pointer, "%p is not mapped", pointer);
    Handles::get().live[region->block.get()] = region->block;
    *out = region->block.get();
    return ACL_SUCCESS;
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle, aclrtPhysicalMemProp* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "prop is null");
    Lock lock(Space::get().mutex);
    Handle block = Handles::get().find(handle);
    if (!block) return breach(Rule::physical_handle, "handle %p", handle);
    *out = block->prop;
    out->handleType = ACL_MEM_HANDLE_TYPE_NONE;
    return ACL_SUCCESS;
}

extern "C" uint64_t aclemu_live_handles() {
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    return Handles::get().live.size();
}

extern "C" uint64_t aclemu_live_reservations() {
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    return reservations().size();
}
