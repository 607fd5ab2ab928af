// Words written and waited for by streams, and reductions by the copy engine.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "../number/number.h"
#include "cell.h"
#include "copy.h"
#include "device.h"
#include "entry.h"

namespace emu {
namespace {

std::atomic<uint64_t>* word(const End& end) { return static_cast<std::atomic<uint64_t>*>(shadow_of(end.address)); }

int locate_word(void* address, End* out) {
    if (reinterpret_cast<uint64_t>(address) % 8) return breach(Rule::value_align, "address %p", address);
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    if (int code = locate("devAddr", address, 8, out)) return code;
    if (!out->on_device()) return breach(Rule::value_align, "%p is host memory", address);
    return 0;
}

bool satisfied(uint32_t flag, uint64_t seen, uint64_t value) {
    switch (flag) {
        case ACL_STREAM_WAIT_VALUE_GEQ: return static_cast<int64_t>(seen - value) >= 0;
        case ACL_STREAM_WAIT_VALUE_EQ: return seen == value;
        case ACL_STREAM_WAIT_VALUE_AND: return (seen & value) != 0;
        default: return ~(seen | value) != 0;
    }
}

template <typename T, typename Wide>
void fold(void* dst, const void* src, uint64_t bytes, aclrtReduceKind kind) {
    T* to = static_cast<T*>(dst);
    const T* from = static_cast<const T*>(src);
    for (uint64_t i = 0; i < bytes / sizeof(T); i++) {
        Wide a = static_cast<Wide>(to[i]), b = static_cast<Wide>(from[i]);
        Wide result = kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM   ? static_cast<Wide>(a + b)
                      : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX ? std::max(a, b)
                      : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN ? std::min(a, b)
                                                                 : b;
        to[i] = static_cast<T>(result);
    }
}

using Fold = void (*)(void*, const void*, uint64_t, aclrtReduceKind);

Fold fold_for(aclDataType type) {
    switch (type) {
        case ACL_FLOAT: return fold<float, float>;
        case ACL_FLOAT16: return fold<Half, float>;
        case ACL_BF16: return fold<BFloat16, float>;
        case ACL_INT8: return fold<int8_t, int32_t>;
        case ACL_INT16: return fold<int16_t, int32_t>;
        case ACL_INT32: return fold<int32_t, int64_t>;
        default: return nullptr;
    }
}

}  // namespace
}  // namespace emu

using namespace emu;

#define STREAM(variable, handle)                      \
    int variable##_code = 0;                          \
    auto variable = stream_of(handle, &variable##_code); \
    if (!variable) return variable##_code

aclError aclrtValueWrite(void* address, uint64_t value, uint32_t flag, aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    End end;
    if (flag) return breach(Rule::value_flag, "flag %u", flag);
    if (int code = locate_word(address, &end)) return code;
    stream->enqueue(__func__, [end, value] {
        std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
        if (!still_there(end)) return static_cast<int>(ACL_ERROR_RT_DEVICE_MEM_ERROR);
        word(end)->store(value, std::memory_order_release);  // pairs with the acquire of aclrtValueWait and of kernels
        return 0;
    });
    return ACL_SUCCESS;
}

aclError aclrtValueWait(void* address, uint64_t value, uint32_t flag, aclrtStream handle) {
    ENTER(context);
    STREAM(stream, handle);
    End end;
    if (flag > ACL_STREAM_WAIT_VALUE_NOR) return breach(Rule::value_flag, "flag %u", flag);
    if (int code = locate_word(address, &end)) return code;
    stream->enqueue(__func__, [end, value, flag, s = stream.get()] {
        bool gone = false;
        wait_on(*s, deadline_after(-1), [&] {
            std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
            gone = !still_there(end);
            return gone || satisfied(flag, word(end)->load(std::memory_order_acquire), value);
        });
        return gone ? static_cast<int>(ACL_ERROR_RT_DEVICE_MEM_ERROR) : 0;
    });
    return ACL_SUCCESS;
}

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t bytes, aclrtReduceKind kind, aclDataType type,
                          aclrtStream handle, void*) {
    ENTER(context);
    STREAM(stream, handle);
    Fold work = fold_for(type);
    if (!work || kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
        return breach(Rule::reduce_type, "type %d, kind %d", type, kind);
    }
    std::shared_lock<std::shared_mutex> lock(Space::get().mutex);
    End to, from;
    if (int code = locate("dst", dst, bytes, &to)) return code;
    if (int code = locate("src", src, bytes, &from)) return code;
    if (to.device != stream->device || from.device != stream->device) {
        return breach(Rule::reduce_device, "dst on %d, src on %d, stream on %d", to.device, from.device, stream->device);
    }
    lock.unlock();
    stream->enqueue(__func__, [to, from, bytes, kind, work] {
        std::shared_lock<std::shared_mutex> shared(Space::get().mutex);
        if (!still_there(to) || !still_there(from)) return static_cast<int>(ACL_ERROR_RT_DEVICE_MEM_ERROR);
        work(shadow_of(to.address), shadow_of(from.address), bytes, kind);
        return 0;
    });
    return ACL_SUCCESS;
}
