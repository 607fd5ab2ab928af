// Memory shared by name: the older way, for aclrtMalloc memory.
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "device.h"
#include "entry.h"
#include "profile.h"
#include "vmm.h"

namespace emu {
namespace {

// Shared is what a key stands for in this process. Guarded by Space::mutex.
struct Shared {
    std::shared_ptr<Block> block;
    uint64_t base = 0;      // of the imported mapping; 0 for an export
    uint64_t reserved = 0;  // addresses taken for it
};

std::map<std::string, Shared>& keys() {
    static auto& all = *new std::map<std::string, Shared>;
    return all;
}

int check_export(uint64_t at, size_t size, Region** out) {
    Region* region = Space::get().find(at);
    bool inside = region && region->kind == Kind::malloc && at + size <= region->base + region->size;
    if (!inside || !size) return breach(Rule::ipc_pointer, "0x%lx + %zu", static_cast<unsigned long>(at), size);
    if (at % region->page || region->block_offset) {
        return breach(Rule::ipc_align, "0x%lx lies inside a page of %lu bytes", static_cast<unsigned long>(at),
                      static_cast<unsigned long>(region->page));
    }
    *out = region;
    return 0;
}

}  // namespace
}  // namespace emu

using namespace emu;

aclError aclrtIpcMemGetExportKey(void* pointer, size_t size, char* key, size_t length, uint64_t flags) {
    ENTER(context);
    if (!pointer || !key) return breach(Rule::null_out, "devPtr or key is null");
    if (length < 65) return breach(Rule::ipc_key, "the buffer has %zu bytes", length);
    if (flags > ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
        return breach(Rule::ipc_flags, "flags %lu", static_cast<unsigned long>(flags));
    }
    Lock lock(Space::get().mutex);
    Region* region = nullptr;
    uint64_t at = reinterpret_cast<uint64_t>(pointer);
    if (int code = check_export(at, size, &region)) return code;
    Ticket& t = *region->block->ticket;
    t.validate = flags == ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT;
    t.revoked = 0;
    Passport p{static_cast<int32_t>(getpid()), region->block->fd, t.nonce,
               region->block_offset + at - region->base, size};
    strcpy(key, passport_text(p).c_str());
    keys()[key] = {region->block, 0, 0};
    return ACL_SUCCESS;
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pids, size_t count) {
    ENTER(context);
    if (!key || !pids) return breach(Rule::null_out, "key or pid is null");
    Lock lock(Space::get().mutex);
    auto at = keys().find(key);
    if (at == keys().end() || at->second.base) return breach(Rule::ipc_key, "this process has not exported %s", key);
    Ticket& t = *at->second.block->ticket;
    for (size_t i = 0; i < count && t.pid_count < 512; i++) t.pids[t.pid_count++] = pids[i];
    return ACL_SUCCESS;
}

aclError aclrtIpcMemImportPidInterServer(const char* key, aclrtServerPid* servers, size_t count) {
    if (!servers) {
        ENTER(context);
        return breach(Rule::null_out, "serverPids is null");
    }
    for (size_t i = 0; i < count; i++) {
        if (int code = aclrtIpcMemSetImportPid(key, servers[i].pid, servers[i].num)) return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtIpcMemImportByKey(void** out, const char* key, uint64_t flags) {
    ENTER(context);
    if (!out || !key) return breach(Rule::null_out, "devPtr or key is null");
    if (flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
        return breach(Rule::ipc_flags, "flags %lu", static_cast<unsigned long>(flags));
    }
    Passport p;
    if (!passport_read(key, &p)) return breach(Rule::ipc_key, "the key is damaged");
    if (p.pid == getpid()) return breach(Rule::import_own, "process %d exported it itself", p.pid);
    auto block = open_block(p);
    if (!block) return breach(Rule::import_dead, "process %d is gone or has freed the memory", p.pid);
    if (!may_import(*block->ticket)) return breach(Rule::import_pid, "process %d is not on the list of %d", getpid(), p.pid);
    if (!flags && !peer_enabled(current()->device, block->device)) {
        return breach(Rule::ipc_peer, "device %d has not enabled access to device %d", current()->device, block->device);
    }
    Space& space = Space::get();
    Lock lock(space.mutex);
    // An importer maps whole pages, though it may use only what was exported.
    uint64_t reserved = (block->size + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
    uint64_t base = space.take_range(reserved, kHugePage);
    Region region{base, p.size, Kind::ipc, block->device, block, p.offset};
    if (!base || !space.put(std::move(region))) return report(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "no address for the import");
    keys()[key] = {block, base, reserved};
    *out = reinterpret_cast<void*>(base);
    return ACL_SUCCESS;
}

aclError aclrtIpcMemClose(const char* key) {
    ENTER(context);
    if (!key) return breach(Rule::null_out, "key is null");
    Space& space = Space::get();
    Lock lock(space.mutex);
    auto at = keys().find(key);
    if (at == keys().end()) return breach(Rule::ipc_closed, "%s is not open here", key);
    if (at->second.base) {
        space.remove(at->second.base);
        space.give_range(at->second.base, at->second.reserved);
    } else {
        at->second.block->ticket->revoked = 1;
    }
    keys().erase(at);
    return ACL_SUCCESS;
}

aclError aclrtIpcMemSetAttr(const char* key, aclrtIpcMemAttrType type, uint64_t attribute) {
    ENTER(context);
    if (!key) return breach(Rule::null_out, "key is null");
    if (!settings().profile.link_choice || type != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK || attribute > 1) {
        return breach(Rule::ipc_link, "%s, link %lu", settings().profile.soc, static_cast<unsigned long>(attribute));
    }
    return ACL_SUCCESS;
}
