// Host memory that the process registers: kernels see it at an address of the device's, copies and the CPU at its own.
#include <cstdlib>
#include <mutex>

#include "device.h"
#include "entry.h"
#include "memory.h"
#include "profile.h"

namespace emu {
namespace {

constexpr uint32_t kFlags = ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_PINNED;

// The documents list the 910B and 910_93, and from 9.1 on the 950PR.
bool chip_registers() {
    if (settings().profile.npu_arch != 3510) return true;
    char* rest;
    long major = strtol(settings().cann, &rest, 10);
    return major > 9 || (major == 9 && *rest == '.' && strtol(rest + 1, nullptr, 10) >= 1);
}

int enroll(void* pointer, uint64_t size, bool mapped) {
    if (!pointer) return breach(Rule::null_out, "ptr is null");
    if (!size) return breach(Rule::malloc_size, "size 0");
    if (!chip_registers()) return breach(Rule::register_chip, "%s with CANN %s", settings().profile.soc, settings().cann);
    uint64_t base = reinterpret_cast<uint64_t>(pointer), room = (size + kHugePage - 1) / kHugePage * kHugePage;
    if (base % kSmallPage) return breach(Rule::register_page, "%p", pointer);
    Space& space = Space::get();
    std::unique_lock<std::shared_mutex> lock(space.mutex);
    if (in_arena(base) || space.find(base) || space.find(base + size - 1)) {
        return breach(Rule::register_twice, "%p is registered, pinned or device memory", pointer);
    }
    Region host{base, size, Kind::registered, -1, nullptr};
    if (mapped) {
        host.twin = space.take_range(room, kHugePage);
        if (!host.twin) return breach(Rule::memory_exhausted, "%lu bytes of device addresses", static_cast<unsigned long>(size));
        Region window{host.twin, size, Kind::window, -1, nullptr};
        window.twin = base;
        space.put(window);
    }
    space.put(host);
    return 0;
}

}  // namespace
}  // namespace emu

using namespace emu;

aclError aclrtHostRegister(void* pointer, uint64_t size, aclrtHostRegisterType type, void** device_pointer) {
    ENTER(context);
    if (!device_pointer) return breach(Rule::null_out, "devPtr is null");
    if (type != ACL_HOST_REGISTER_MAPPED) return breach(Rule::register_flags, "type %d", type);
    if (int code = enroll(pointer, size, true)) return code;
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    *device_pointer = reinterpret_cast<void*>(space.find(reinterpret_cast<uint64_t>(pointer))->twin);
    return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void* pointer, uint64_t size, uint32_t flag) {
    ENTER(context);
    if (!flag || flag & ~kFlags) return breach(Rule::register_flags, "flag 0x%x", flag);
    return enroll(pointer, size, flag & ACL_HOST_REG_MAPPED);
}

aclError aclrtHostGetDevicePointer(void* pointer, void** device_pointer, uint32_t flag) {
    ENTER(context);
    if (!device_pointer) return breach(Rule::null_out, "pDevice is null");
    if (flag) return breach(Rule::register_flags, "flag 0x%x, which is reserved", flag);
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    uint64_t at = reinterpret_cast<uint64_t>(pointer);
    Region* region = space.find(at);
    if (!region || region->kind != Kind::registered || !region->twin) return breach(Rule::register_twice, "%p is not registered as mapped", pointer);
    *device_pointer = reinterpret_cast<void*>(region->twin + (at - region->base));
    return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* pointer) {
    ENTER(context);
    Space& space = Space::get();
    std::unique_lock<std::shared_mutex> lock(space.mutex);
    Region* region = space.find(reinterpret_cast<uint64_t>(pointer));
    if (!region || region->kind != Kind::registered || region->base != reinterpret_cast<uint64_t>(pointer)) {
        return breach(Rule::register_twice, "%p is not registered", pointer);
    }
    if (region->twin) {
        space.give_range(region->twin, (region->size + kHugePage - 1) / kHugePage * kHugePage);
        space.remove(region->twin);
    }
    space.remove(reinterpret_cast<uint64_t>(pointer));
    return ACL_SUCCESS;
}
