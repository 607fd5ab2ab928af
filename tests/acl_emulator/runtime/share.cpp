// Shareable handles: how physical memory travels to another process.
#include <unistd.h>

#include <cstring>

#include "device.h"
#include "entry.h"
#include "profile.h"
#include "vmm.h"

namespace emu {
namespace {

// A DEFAULT handle is 64 bits: pid 22, descriptor 20, nonce 22. A FABRIC handle is the same as text.
uint64_t pack(const Passport& p) {
    return static_cast<uint64_t>(p.pid) << 42 | static_cast<uint64_t>(p.fd) << 22 | p.nonce;
}

Passport unpack(uint64_t handle) {
    return {static_cast<int32_t>(handle >> 42), static_cast<int32_t>(handle >> 22 & 0xFFFFF), handle & kNonceMask, 0, 0};
}

struct ShareType {
    bool fabric;
    int code;
};

ShareType share_type(int type) {
    if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return {false, 0};
    if (type != ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
        return {false, breach(Rule::share_handle, "share type %d", type)};
    }
    if (!settings().profile.fabric_handles) return {true, breach(Rule::export_fabric, "%s", settings().profile.soc)};
    return {true, 0};
}

int export_handle(aclrtDrvMemHandle handle, uint64_t flags, Passport* out) {
    if (flags > ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
        return breach(Rule::export_flags, "flags %lu", static_cast<unsigned long>(flags));
    }
    Handle block = Handles::get().find(handle);
    if (!block) return breach(Rule::physical_handle, "handle %p", handle);
    if (block->imported) return breach(Rule::export_imported, "handle %p was imported", handle);
    if (block->exported) return breach(Rule::export_twice, "handle %p", handle);
    block->exported = true;
    block->ticket->validate = flags == ACL_RT_VMM_EXPORT_FLAG_DEFAULT;
    *out = {static_cast<int32_t>(getpid()), block->fd, block->ticket->nonce, 0, block->size};
    Handles::get().shared[handle] = pack(*out);
    return 0;
}

int set_pids(uint64_t packed, int32_t* pids, size_t count) {
    if (!pids || !count) return breach(Rule::null_out, "no pids");
    for (const auto& entry : Handles::get().shared) {
        if (entry.second != packed) continue;
        Ticket& t = *Handles::get().find(entry.first)->ticket;
        for (size_t i = 0; i < count && t.pid_count < 512; i++) t.pids[t.pid_count++] = pids[i];
        return 0;
    }
    return breach(Rule::share_handle, "this process has not exported 0x%lx", static_cast<unsigned long>(packed));
}

int import_handle(const Passport& from, bool fabric, aclrtDrvMemHandle* out) {
    if (!out) return breach(Rule::null_out, "handle is null");
    if (from.pid == getpid()) return breach(Rule::import_own, "process %d exported it itself", from.pid);
    auto block = open_block(from);
    if (!block) return breach(Rule::import_dead, "process %d is gone or has freed the memory", from.pid);
    if (!may_import(*block->ticket)) return breach(Rule::import_pid, "process %d is not on the list of %d", getpid(), from.pid);
    block->prop.location = {static_cast<uint32_t>(block->device), block->device < 0 ? ACL_MEM_LOCATION_TYPE_HOST_NUMA
                                                                                    : ACL_MEM_LOCATION_TYPE_DEVICE};
    // Remembered for aclrtMapMem: memory that came by a fabric handle needs no peer access.
    if (fabric) block->prop.handleType = kFabric;
    Handles::get().live[block.get()] = block;
    *out = block.get();
    return 0;
}

}  // namespace
}  // namespace emu

using namespace emu;

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType, uint64_t flags, uint64_t* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "shareableHandle is null");
    if (flags) return breach(Rule::export_flags, "flags %lu", static_cast<unsigned long>(flags));
    Lock lock(Space::get().mutex);
    Passport passport;
    if (int code = export_handle(handle, flags, &passport)) return code;
    *out = pack(passport);
    return ACL_SUCCESS;
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType type,
                                           void* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "shareableHandle is null");
    ShareType share = share_type(type);
    if (share.code) return share.code;
    Lock lock(Space::get().mutex);
    Passport passport;
    if (int code = export_handle(handle, flags, &passport)) return code;
    if (share.fabric) {
        memset(out, 0, sizeof(aclrtMemFabricHandle));
        strcpy(static_cast<char*>(out), passport_text(passport).c_str());
    } else {
        *static_cast<uint64_t*>(out) = pack(passport);
    }
    return ACL_SUCCESS;
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareable, int32_t* pids, size_t count) {
    ENTER(context);
    Lock lock(Space::get().mutex);
    return set_pids(shareable, pids, count);
}

aclError aclrtMemSetPidToShareableHandleV2(void* shareable, aclrtMemSharedHandleType type, int32_t* pids, size_t count) {
    ENTER(context);
    if (!shareable) return breach(Rule::null_out, "shareableHandle is null");
    ShareType share = share_type(type);
    if (share.code) return share.code;
    Passport passport{};
    if (!share.fabric) passport = unpack(*static_cast<uint64_t*>(shareable));
    if (share.fabric && !passport_read(static_cast<char*>(shareable), &passport)) {
        return breach(Rule::share_handle, "the fabric handle is damaged");
    }
    Lock lock(Space::get().mutex);
    return set_pids(pack(passport), pids, count);
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareable, int32_t device, aclrtDrvMemHandle* out) {
    ENTER(context);
    if (!device_exists(device)) return breach(Rule::device_id, "device %d of %u", device, settings().devices);
    Lock lock(Space::get().mutex);
    return import_handle(unpack(shareable), false, out);
}

aclError aclrtMemImportFromShareableHandleV2(void* shareable, aclrtMemSharedHandleType type, uint64_t flags,
                                             aclrtDrvMemHandle* out) {
    ENTER(context);
    if (!shareable) return breach(Rule::null_out, "shareableHandle is null");
    if (flags) return breach(Rule::export_flags, "import flags %lu", static_cast<unsigned long>(flags));
    ShareType share = share_type(type);
    if (share.code) return share.code;
    Passport passport{};
    if (!share.fabric) passport = unpack(*static_cast<uint64_t*>(shareable));
    if (share.fabric && !passport_read(static_cast<char*>(shareable), &passport)) {
        return breach(Rule::share_handle, "the fabric handle is damaged");
    }
    Lock lock(Space::get().mutex);
    return import_handle(passport, share.fabric, out);
}

aclError aclrtMemMapSelectedLink(void*, size_t, void*, uint32_t) {
    ENTER(context);
    return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the emulator has one link");
}

aclError aclrtMemMapSetLink(aclrtDrvMemHandle, aclrtMemLinkType) {
    ENTER(context);
    return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the emulator has one link");
}

aclError aclrtMemP2PMap(void*, size_t, int32_t, uint64_t) {
    ENTER(context);
    return report(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "not emulated");
}
