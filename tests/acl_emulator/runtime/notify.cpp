// Notifies: one-bit signals between streams, also of different processes.
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "cell.h"
#include "entry.h"
#include "profile.h"
#include "stream.h"

namespace emu {
namespace {

struct Notify {
    std::shared_ptr<CellRef> cell;
    int32_t device;
    uint32_t id;
    bool exported = false;
};

using NotifyRef = std::shared_ptr<Notify>;

struct Registry {
    std::mutex mutex;
    std::map<void*, NotifyRef> notifies;
    std::map<int32_t, uint32_t> per_device;
    uint32_t next_id = 0;
};

Registry& registry() {
    static Registry& one = *new Registry;
    return one;
}

NotifyRef find(aclrtNotify handle) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    auto at = registry().notifies.find(handle);
    return at == registry().notifies.end() ? nullptr : at->second;
}

}  // namespace
}  // namespace emu

using namespace emu;

#define NOTIFY(variable, handle)       \
    NotifyRef variable = find(handle); \
    if (!variable) return breach(Rule::notify_handle, "notify %p", handle)

#define STREAM(variable, handle)                      \
    int variable##_code = 0;                          \
    auto variable = stream_of(handle, &variable##_code); \
    if (!variable) return variable##_code

aclError aclrtCreateNotify(aclrtNotify* out, uint64_t flag) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "notify is null");
    if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) return breach(Rule::notify_flags, "flag %lu", static_cast<unsigned long>(flag));
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    int32_t device = current()->device;
    if (r.per_device[device] >= settings().profile.notify_limit) {
        return breach(Rule::notify_limit, "device %d has %u", device, r.per_device[device]);
    }
    auto notify = std::make_shared<Notify>(Notify{CellRef::make(device), device, r.next_id, false});
    if (!notify->cell) return report(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "no memory for a notify");
    r.next_id++;
    r.per_device[device]++;
    r.notifies[notify.get()] = notify;
    *out = notify.get();
    return ACL_SUCCESS;
}

aclError aclrtDestroyNotify(aclrtNotify handle) {
    ENTER(context);
    NOTIFY(notify, handle);
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    if (notify->cell->own()) r.per_device[notify->device]--;
    r.notifies.erase(handle);
    return ACL_SUCCESS;
}

aclError aclrtRecordNotify(aclrtNotify handle, aclrtStream stream_handle) {
    ENTER(context);
    NOTIFY(notify, handle);
    STREAM(stream, stream_handle);
    stream->enqueue(__func__, [notify] {
        // Release: pairs with the acquire of the waiter, so work before the record is seen after the wait.
        (*notify->cell)->recorded.store(1, std::memory_order_release);
        return 0;
    });
    return ACL_SUCCESS;
}

aclError aclrtWaitAndResetNotify(aclrtNotify handle, aclrtStream stream_handle, uint32_t timeout) {
    ENTER(context);
    NOTIFY(notify, handle);
    STREAM(stream, stream_handle);
    int32_t ms = timeout ? static_cast<int32_t>(timeout) * 1000 : -1;
    stream->enqueue(__func__, [notify, ms, s = stream.get()] {
        bool set = wait_on(*s, deadline_after(ms), [&] {
            uint64_t one = 1;
            return (*notify->cell)->recorded.compare_exchange_strong(one, 0, std::memory_order_acquire);
        });
        if (set || s->ending()) return 0;
        s->set_failure_text("the notify was not recorded in time; rule [wait_timeout]");
        return static_cast<int>(ACL_ERROR_RT_WAIT_TIMEOUT);
    });
    return ACL_SUCCESS;
}

aclError aclrtGetNotifyId(aclrtNotify handle, uint32_t* id) {
    ENTER(context);
    if (!id) return breach(Rule::null_out, "notifyId is null");
    NOTIFY(notify, handle);
    *id = notify->id;
    return ACL_SUCCESS;
}

aclError aclrtNotifyBatchReset(aclrtNotify* handles, size_t count) {
    ENTER(context);
    if (!handles) return breach(Rule::null_out, "notifies is null");
    for (size_t i = 0; i < count; i++) {
        NOTIFY(notify, handles[i]);
        (*notify->cell)->recorded = 0;
    }
    return ACL_SUCCESS;
}

aclError aclrtNotifyGetExportKey(aclrtNotify handle, char* key, size_t length, uint64_t flags) {
    ENTER(context);
    if (!key) return breach(Rule::null_out, "key is null");
    if (flags & ~ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
        return breach(Rule::notify_flags, "flags %lu", static_cast<unsigned long>(flags));
    }
    NOTIFY(notify, handle);
    if (length < 65) return breach(Rule::ipc_key, "the buffer has %zu bytes", length);
    // The page of cells is shared by all notifies and events, so an open export opens all of them.
    if (flags) notify->cell->ticket().validate = 0;
    notify->exported = true;
    strcpy(key, passport_text(notify->cell->passport()).c_str());
    return ACL_SUCCESS;
}

aclError aclrtNotifySetImportPid(aclrtNotify handle, int32_t* pids, size_t count) {
    ENTER(context);
    if (!pids) return breach(Rule::null_out, "pid is null");
    NOTIFY(notify, handle);
    if (!notify->exported) return breach(Rule::share_handle, "notify %p has no key yet", handle);
    Ticket& t = notify->cell->ticket();
    for (size_t i = 0; i < count && t.pid_count < 512; i++) t.pids[t.pid_count++] = pids[i];
    return ACL_SUCCESS;
}

aclError aclrtNotifySetImportPidInterServer(aclrtNotify handle, aclrtServerPid* servers, size_t count) {
    if (!servers) {
        ENTER(context);
        return breach(Rule::null_out, "serverPids is null");
    }
    for (size_t i = 0; i < count; i++) {
        if (int code = aclrtNotifySetImportPid(handle, servers[i].pid, servers[i].num)) return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtNotifyImportByKey(aclrtNotify* out, const char* key, uint64_t flags) {
    ENTER(context);
    if (!out || !key) return breach(Rule::null_out, "notify or key is null");
    if (flags & ~ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
        return breach(Rule::notify_flags, "flags %lu", static_cast<unsigned long>(flags));
    }
    Passport passport;
    if (!passport_read(key, &passport)) return breach(Rule::ipc_key, "the key is damaged");
    if (passport.pid == getpid()) return breach(Rule::import_own, "process %d exported it itself", passport.pid);
    auto cell = CellRef::open(passport);
    if (!cell) return breach(Rule::import_dead, "process %d is gone", passport.pid);
    if (!may_import(cell->ticket())) return breach(Rule::import_pid, "process %d", getpid());
    Registry& r = registry();
    std::lock_guard<std::mutex> lock(r.mutex);
    auto notify = std::make_shared<Notify>(Notify{cell, static_cast<int32_t>((*cell)->device), r.next_id++, false});
    r.notifies[notify.get()] = notify;
    *out = notify.get();
    return ACL_SUCCESS;
}

extern "C" uint64_t aclemu_live_notifies() {
    std::lock_guard<std::mutex> lock(registry().mutex);
    return registry().notifies.size();
}
