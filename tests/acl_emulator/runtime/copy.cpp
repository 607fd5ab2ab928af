#include "copy.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "device.h"
#include "entry.h"
#include "profile.h"

namespace emu {

int locate(const char* role, const void* pointer, uint64_t bytes, End* out) {
    Space& space = Space::get();
    End end;
    end.address = reinterpret_cast<uint64_t>(pointer);
    end.bytes = bytes;
    Region* region = space.find(end.address);
    if (!region) {
        if (in_arena(end.address)) return breach(Rule::copy_unmapped, "%s %p is not allocated", role, pointer);
        *out = end;
        return 0;
    }
    if (region->kind == Kind::window) return breach(Rule::copy_window, "%s %p shows host memory to kernels", role, pointer);
    end.known = true;
    end.device = region->device;
    end.kind = region->kind;
    end.imported = region->block && region->block->imported;
    end.serial = region->serial;
    while (region->base + region->size < end.address + bytes) {
        uint64_t next = region->base + region->size;
        Region* more = space.find(next);
        bool same = more && more->kind == end.kind && more->device == end.device && end.kind == Kind::vmm;
        if (!same && !in_arena(end.address)) break;  // host memory beside pinned memory
        if (!same) {
            return breach(Rule::copy_unmapped, "%s %p + %lu bytes runs over the end at 0x%lx", role, pointer,
                          static_cast<unsigned long>(bytes), static_cast<unsigned long>(next));
        }
        region = more;
    }
    *out = end;
    return 0;
}

bool still_there(const End& end) {
    if (!end.known) return true;
    Region* region = Space::get().find(end.address);
    return region && region->serial == end.serial;
}

namespace {

void* shadow(const End& end) { return shadow_of(end.address); }

int check_kind(aclrtMemcpyKind kind, const End& dst, const End& src) {
    bool from = src.on_device(), to = dst.on_device(), fits = false;
    switch (kind) {
        case ACL_MEMCPY_HOST_TO_HOST: fits = !from && !to; break;
        case ACL_MEMCPY_HOST_TO_DEVICE:
        case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: fits = !from && to; break;
        case ACL_MEMCPY_DEVICE_TO_HOST: fits = from && !to; break;
        case ACL_MEMCPY_DEVICE_TO_DEVICE: fits = from && to; break;
        case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE: fits = from && to && src.device == dst.device; break;
        case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE: fits = from && to && src.device != dst.device; break;
        case ACL_MEMCPY_DEFAULT: fits = true; break;
    }
    if (fits) return 0;
    return breach(Rule::copy_kind, "kind %d, but the source is %s memory and the destination %s memory", kind,
                  from ? "device" : "host", to ? "device" : "host");
}

// check_devices enforces what copies of device memory need: peer access, and the limits of mapped and IPC memory.
int check_devices(aclrtMemcpyKind kind, const End& dst, const End& src, bool synchronous) {
    bool both = src.on_device() && dst.on_device();
    bool ipc = src.kind == Kind::ipc || dst.kind == Kind::ipc;
    if (ipc && kind == ACL_MEMCPY_DEFAULT) return breach(Rule::copy_ipc, "kind DEFAULT");
    if (ipc && !both) return breach(Rule::copy_ipc, "one side is host memory");
    if (ipc && synchronous && src.device == dst.device) return breach(Rule::copy_ipc, "synchronous, same device");
    if (!both) return 0;
    bool vmm = src.kind == Kind::vmm || dst.kind == Kind::vmm;
    if (vmm && synchronous && src.device != dst.device) {
        return breach(Rule::copy_vmm_sync, "devices %d and %d", src.device, dst.device);
    }
    int32_t here = current()->device;
    for (int32_t there : {src.device, dst.device}) {
        if (src.device == dst.device || !settings().profile.copy_needs_peer || peer_enabled(here, there)) continue;
        return breach(Rule::copy_peer, "device %d has not enabled access to device %d", here, there);
    }
    return 0;
}

int check_room(const void* dst, size_t room, const void* src, size_t count) {
    if (!dst || !src) return breach(Rule::null_out, "%s is null", dst ? "src" : "dst");
    if (count > room) return breach(Rule::copy_room, "count %zu, destMax %zu", count, room);
    return 0;
}

void move(const End& dst, const End& src, size_t count) {
    memmove(shadow(dst), shadow(src), count);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the acquire of whoever sees a later flag
}

int copy_now(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind) {
    if (int code = check_room(dst, room, src, count)) return code;
    Space& space = Space::get();
    std::shared_lock<std::shared_mutex> lock(space.mutex);
    End to, from;
    if (int code = locate("dst", dst, count, &to)) return code;
    if (int code = locate("src", src, count, &from)) return code;
    if (int code = check_devices(kind, to, from, true)) return code;
    move(to, from, count);
    return 0;
}

int lost(Stream& stream, const char* what, const End& end) {
    char text[160];
    snprintf(text, sizeof text, "%s: memory at 0x%lx was freed before the work ran; rule [use_after_free]", what,
             static_cast<unsigned long>(end.address));
    stream.set_failure_text(text);
    return ACL_ERROR_RT_DEVICE_MEM_ERROR;
}

int copy_later(Stream& stream, void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind,
               const char* name) {
    if (int code = check_room(dst, room, src, count)) return code;
    End to, from;
    {
        std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
        if (int code = locate("dst", dst, count, &to)) return code;
        if (int code = locate("src", src, count, &from)) return code;
        if (int code = check_kind(kind, to, from)) return code;
        if (int code = check_devices(kind, to, from, false)) return code;
    }
    std::shared_ptr<std::vector<char>> aside;
    if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
        const char* bytes = static_cast<const char*>(src);
        aside = std::make_shared<std::vector<char>>(bytes, bytes + count);
        from = End{};
        from.address = reinterpret_cast<uint64_t>(aside->data());
    }
    uint64_t task = stream.enqueue(name, [&stream, to, from, count, aside] {
        std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
        if (!still_there(to)) return lost(stream, "dst", to);
        if (!still_there(from)) return lost(stream, "src", from);
        move(to, from, count);
        return 0;
    });
    // Pageable host memory belongs to the caller again when the call returns.
    if ((!to.known || !from.known) && !aside) stream.wait(task, deadline_after(-1));
    return 0;
}

int set_now(void* pointer, size_t room, int32_t value, size_t count) {
    if (int code = check_room(pointer, room, pointer, count)) return code;
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    End to;
    if (int code = locate("devPtr", pointer, count, &to)) return code;
    memset(shadow(to), value, count);
    return 0;
}

int copy_rows_check(size_t dpitch, size_t spitch, size_t width) {
    if (width <= dpitch && width <= spitch) return 0;
    return breach(Rule::copy_2d, "width %zu, pitches %zu and %zu", width, dpitch, spitch);
}

}  // namespace
}  // namespace emu

using namespace emu;

#define STREAM(variable, handle)                      \
    int variable##_code = 0;                          \
    auto variable = stream_of(handle, &variable##_code); \
    if (!variable) return variable##_code

aclError aclrtMemcpy(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind) {
    ENTER(context);
    return copy_now(dst, room, src, count, kind);
}

aclError aclrtMemcpyAsync(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    return copy_later(*stream, dst, room, src, count, kind, __func__);
}

aclError aclrtMemset(void* pointer, size_t room, int32_t value, size_t count) {
    ENTER(context);
    return set_now(pointer, room, value, count);
}

aclError aclrtMemsetAsync(void* pointer, size_t room, int32_t value, size_t count, aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    if (int code = check_room(pointer, room, pointer, count)) return code;
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    End to;
    if (int code = locate("devPtr", pointer, count, &to)) return code;
    lock.unlock();
    stream->enqueue(__func__, [s = stream.get(), to, value, count] {
        std::shared_lock<std::shared_mutex> shared(Space::get().mutex);
        if (!still_there(to)) return lost(*s, "devPtr", to);
        memset(shadow(to), value, count);
        return 0;
    });
    return ACL_SUCCESS;
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
    ENTER(context);
    if (int code = copy_rows_check(dpitch, spitch, width)) return code;
    for (size_t row = 0; row < height; row++) {
        int code = copy_now(static_cast<char*>(dst) + row * dpitch, width,
                            static_cast<const char*>(src) + row * spitch, width, kind);
        if (code) return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    if (int code = copy_rows_check(dpitch, spitch, width)) return code;
    for (size_t row = 0; row < height; row++) {
        int code = copy_later(*stream, static_cast<char*>(dst) + row * dpitch, width,
                              static_cast<const char*>(src) + row * spitch, width, kind, __func__);
        if (code) return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtMemcpyBatch(void** dsts, size_t* rooms, void** srcs, size_t* sizes, size_t batches,
                          aclrtMemcpyBatchAttr*, size_t*, size_t, size_t* failed) {
    ENTER(context);
    if (!dsts || !rooms || !srcs || !sizes) return breach(Rule::null_out, "a list is null");
    for (size_t i = 0; i < batches; i++) {
        int code = copy_now(dsts[i], rooms[i], srcs[i], sizes[i], ACL_MEMCPY_DEFAULT);
        if (code && failed) *failed = i;
        if (code) return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* rooms, void** srcs, size_t* sizes, size_t batches,
                               aclrtMemcpyBatchAttr*, size_t*, size_t, size_t* failed, aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    if (!dsts || !rooms || !srcs || !sizes) return breach(Rule::null_out, "a list is null");
    for (size_t i = 0; i < batches; i++) {
        int code = copy_later(*stream, dsts[i], rooms[i], srcs[i], sizes[i], ACL_MEMCPY_DEFAULT, __func__);
        if (code && failed) *failed = i;
        if (code) return code;
    }
    return ACL_SUCCESS;
}

aclError aclrtCmoAsync(void* pointer, size_t size, aclrtCmoType, aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    End end;
    if (int code = locate("src", pointer, size, &end)) return code;
    stream->enqueue(__func__, [] { return 0; });  // caches are not modelled here
    return ACL_SUCCESS;
}
