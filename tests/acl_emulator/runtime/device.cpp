#include "device.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "entry.h"
#include "memory.h"
#include "profile.h"
#include "stream.h"

namespace emu {
namespace {

struct Device {
    int references = 0;                 // SetDevice calls not yet answered by ResetDevice
    std::shared_ptr<Context> primary;
};

// Process is everything that belongs to aclInit; guarded by mutex.
struct Process {
    std::mutex mutex;
    pid_t initialised_by = 0;  // 0: aclInit has not been called, or aclFinalize was
    bool finalized = false;
    int32_t default_device = -1;  // from the configuration file of aclInit; -1 none
    std::map<int32_t, Device> devices;
    std::set<std::shared_ptr<Context>> contexts;
    std::set<std::pair<int32_t, int32_t>> peers;
};

Process& process() {
    static Process& one = *new Process;
    return one;
}

thread_local std::shared_ptr<Context> mine;

std::shared_ptr<Context> make_context(Process& p, int32_t device, bool primary) {
    auto context = std::make_shared<Context>(device, primary);
    context->default_stream = Stream::make(context);
    p.contexts.insert(context);
    return context;
}

// primary_locked needs process().mutex.
std::shared_ptr<Context> primary_locked(Process& p, int32_t device) {
    Device& d = p.devices[device];
    if (!d.primary) d.primary = make_context(p, device, true);
    return d.primary;
}

void end_context(const std::shared_ptr<Context>& context) {
    context->alive = false;
    end_streams_of(context);
}

// default_device_of reads {"defaultDevice":{"default_device":"<n>"}} from the text of a configuration file.
int32_t default_device_of(const char* path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    std::string all = text.str();
    size_t at = all.find("\"default_device\"");
    if (at == std::string::npos) return -1;
    at = all.find_first_of("0123456789", at);
    return at == std::string::npos ? -1 : std::stoi(all.substr(at));
}

}  // namespace

bool device_exists(int64_t id) { return id >= 0 && id < static_cast<int64_t>(settings().devices); }

int admit(bool needs_context) {
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    if (!p.initialised_by) return breach(Rule::init_first, "aclInit has not been called");
    if (p.initialised_by != getpid()) {
        return breach(Rule::forked_child, "process %d was forked from %d", getpid(), p.initialised_by);
    }
    if (!needs_context) return 0;
    if (mine && mine->alive) return 0;
    if (p.default_device < 0) return breach(Rule::set_device_first, "this thread has set no device");
    mine = primary_locked(p, p.default_device);
    return 0;
}

std::shared_ptr<Context> current() { return mine; }

bool peer_enabled(int32_t from, int32_t to) {
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    return from == to || p.peers.count({from, to});
}

}  // namespace emu

using namespace emu;

aclError aclInit(const char* path) {
    ENTER(nothing);
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    if (p.initialised_by == getpid()) return breach(Rule::init_twice, "already initialised");
    if (p.initialised_by) return breach(Rule::forked_child, "the parent %d has initialised", p.initialised_by);
    p.initialised_by = getpid();
    p.finalized = false;
    p.default_device = path && *path ? default_device_of(path) : -1;
    return ACL_SUCCESS;
}

aclError aclFinalize() {
    ENTER(nothing);
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    if (p.finalized) return breach(Rule::finalize_twice, "already finalized");
    if (p.initialised_by != getpid()) return breach(Rule::init_first, "aclInit has not been called");
    for (const auto& context : p.contexts) end_context(context);
    p.contexts.clear();
    p.devices.clear();
    p.peers.clear();
    p.initialised_by = 0;
    p.finalized = true;
    return ACL_SUCCESS;
}

aclError aclFinalizeReference(uint64_t* count) {
    aclError code = aclFinalize();
    if (!code && count) *count = 0;
    return code;
}

aclError aclrtSetDevice(int32_t id) {
    ENTER(init);
    if (!device_exists(id)) {
        return breach(Rule::device_id, "device %d of %u", id, settings().devices);
    }
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    mine = primary_locked(p, id);
    p.devices[id].references++;
    return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* id) {
    ENTER(context);
    if (!id) return breach(Rule::null_out, "deviceId is null");
    *id = current()->device;
    return ACL_SUCCESS;
}

namespace {

aclError reset(int32_t id, bool force) {
    if (!device_exists(id)) return breach(Rule::device_id, "device %d of %u", id, settings().devices);
    Process& p = process();
    std::unique_lock<std::mutex> lock(p.mutex);
    auto at = p.devices.find(id);
    if (at == p.devices.end() || !at->second.primary) {
        return breach(Rule::reset_unset, "device %d was not set", id);
    }
    if (!force && --at->second.references > 0) return ACL_SUCCESS;
    auto context = at->second.primary;
    p.devices.erase(at);
    p.contexts.erase(context);
    lock.unlock();
    end_context(context);
    return ACL_SUCCESS;
}

}  // namespace

aclError aclrtResetDevice(int32_t id) {
    ENTER(init);
    return reset(id, false);
}

aclError aclrtResetDeviceForce(int32_t id) {
    ENTER(init);
    return reset(id, true);
}

aclError aclrtGetDeviceCount(uint32_t* count) {
    ENTER(nothing);
    if (!count) return breach(Rule::null_out, "count is null");
    *count = settings().devices;
    return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext* out, int32_t id) {
    ENTER(init);
    if (!out) return breach(Rule::null_out, "context is null");
    if (!device_exists(id)) return breach(Rule::device_id, "device %d of %u", id, settings().devices);
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    mine = make_context(p, id, false);
    *out = mine.get();
    return ACL_SUCCESS;
}

extern "C" aclError aclrtDestroyContext(aclrtContext handle) {
    ENTER(init);
    Process& p = process();
    std::unique_lock<std::mutex> lock(p.mutex);
    for (const auto& context : p.contexts) {
        if (context.get() != handle) continue;
        if (context->primary) return breach(Rule::context_handle, "a device's own context ends with aclrtResetDevice");
        auto ended = context;
        p.contexts.erase(ended);
        lock.unlock();
        end_context(ended);
        return ACL_SUCCESS;
    }
    return breach(Rule::context_handle, "context %p", handle);
}

aclError aclrtGetCurrentContext(aclrtContext* out) {
    ENTER(context);
    if (!out) return breach(Rule::null_out, "context is null");
    *out = current().get();
    return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext handle) {
    ENTER(init);
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    for (const auto& context : p.contexts) {
        if (context.get() != handle) continue;
        mine = context;
        return ACL_SUCCESS;
    }
    return breach(Rule::context_handle, "context %p", handle);
}

aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer) {
    ENTER(nothing);
    if (!can) return breach(Rule::null_out, "canAccessPeer is null");
    if (!device_exists(device) || !device_exists(peer)) {
        return breach(Rule::device_id, "devices %d and %d of %u", device, peer, settings().devices);
    }
    if (device == peer) return breach(Rule::peer_self, "device %d twice", device);
    *can = !settings().profile.reach_by_eight || device / 8 == peer / 8;
    return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
    ENTER(context);
    if (!device_exists(peer)) return breach(Rule::device_id, "device %d of %u", peer, settings().devices);
    if (flags) return breach(Rule::peer_flags, "flags %u", flags);
    int32_t device = current()->device;
    if (device == peer) return breach(Rule::peer_self, "device %d twice", device);
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    p.peers.insert({device, peer});
    return ACL_SUCCESS;
}

aclError aclrtDeviceDisablePeerAccess(int32_t peer) {
    ENTER(context);
    if (!device_exists(peer)) return breach(Rule::device_id, "device %d of %u", peer, settings().devices);
    Process& p = process();
    std::lock_guard<std::mutex> lock(p.mutex);
    p.peers.erase({current()->device, peer});
    return ACL_SUCCESS;
}

aclError aclrtDevicePeerAccessStatus(int32_t device, int32_t peer, int32_t* status) {
    ENTER(init);
    if (!status) return breach(Rule::null_out, "status is null");
    if (!device_exists(device) || !device_exists(peer)) {
        return breach(Rule::device_id, "devices %d and %d of %u", device, peer, settings().devices);
    }
    *status = device != peer && peer_enabled(device, peer);
    return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
    ENTER(nothing);
    if (!pid) return breach(Rule::null_out, "pid is null");
    *pid = getpid();
    return ACL_SUCCESS;
}
